//! Rules for addresses of pages: which URL may be fetched, and to which IP addresses its host may lead. Pure.

use crate::address::{AddressClass, classify};
use std::net::{IpAddr, SocketAddr};
use toold_proto::{ErrorKind, RpcError};
use url::{Host, Url};

/// Names of metadata services. Their addresses are refused too; a name may lead elsewhere inside a cloud.
const METADATA_HOSTS: [&str; 4] = ["metadata.google.internal", "metadata.goog", "metadata", "instance-data"];

/// A host and a port, both normalised: `0x7f.1` is `127.0.0.1`, `EXAMPLE.com.` is `example.com`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostPort {
    pub host: String,
    pub port: u16,
}

/// A URL that passed the rules, before its host is resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub url: Url,
    pub at: HostPort,
    /// The address itself, if the URL has one in place of a name.
    pub literal: Option<IpAddr>,
    pub is_tls: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Denied {
    /// A host and all below it.
    Host(String),
    Port(HostPort),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    allow: Vec<HostPort>,
    deny: Vec<Denied>,
}

impl Target {
    /// Parses a URL: http or https, with a host, without a user.
    pub fn parse(text: &str) -> Result<Target, RpcError> {
        let url = Url::parse(text.trim()).map_err(|e| RpcError::param("url", format!("is not a URL: {e}")))?;
        Target::new(url)
    }

    pub fn new(url: Url) -> Result<Target, RpcError> {
        let is_tls = match url.scheme() {
            "http" => false,
            "https" => true,
            other => return Err(denied("scheme", format!("only http and https are fetched, not `{other}:`"))),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(denied("userinfo", "the URL has a user or a password in it; remove it".into()));
        }
        let port = url.port_or_known_default().unwrap_or(if is_tls { 443 } else { 80 });
        let (host, literal) = match url.host() {
            Some(Host::Domain(name)) => (name.trim_end_matches('.').to_ascii_lowercase(), None),
            Some(Host::Ipv4(ip)) => (ip.to_string(), Some(IpAddr::V4(ip))),
            Some(Host::Ipv6(ip)) => (format!("[{ip}]"), Some(IpAddr::V6(ip))),
            None => (String::new(), None),
        };
        if host.is_empty() {
            return Err(RpcError::param("url", "has no host"));
        }
        Ok(Target { at: HostPort { host, port }, literal, is_tls, url })
    }

    /// Resolves the value of a `Location` header against this URL. The fragment of the old URL is not kept.
    pub fn redirect(&self, location: &str) -> Result<Target, RpcError> {
        let url = self.url.join(location);
        Target::new(url.map_err(|e| RpcError::param("url", format!("redirects to what is not a URL: {e}")))?)
    }

    pub fn has_same_origin(&self, other: &Target) -> bool {
        self.at == other.at && self.is_tls == other.is_tls
    }

    /// Returns path and query, as a request line has them.
    pub fn path(&self) -> String {
        let query = self.url.query().map(|query| format!("?{query}")).unwrap_or_default();
        format!("{}{query}", self.url.path())
    }

    /// Returns the value of the header `Host`.
    pub fn authority(&self) -> String {
        match self.url.port() {
            Some(port) => format!("{}:{port}", self.at.host),
            None => self.at.host.clone(),
        }
    }
}

impl Rules {
    /// Parses the rules. An entry of `allow` is `host:port`; one of `deny` may be a host alone.
    pub fn parse(allow: &[String], deny: &[String]) -> Result<Rules, RpcError> {
        let allow = allow.iter().map(|entry| match host_port(entry) {
            Some((host, Some(port))) => Ok(HostPort { host, port }),
            Some((_, None)) | None => Err(RpcError::param("allow", format!("must be host:port, not `{entry}`"))),
        });
        let deny = deny.iter().map(|entry| match host_port(entry) {
            Some((host, Some(port))) => Ok(Denied::Port(HostPort { host, port })),
            Some((host, None)) => Ok(Denied::Host(host)),
            None => Err(RpcError::param("deny", format!("must be a host or host:port, not `{entry}`"))),
        });
        Ok(Rules { allow: allow.collect::<Result<_, _>>()?, deny: deny.collect::<Result<_, _>>()? })
    }

    /// Makes the rules for a provider that the user configured: it may be private, its redirects elsewhere may not.
    pub fn provider(target: &Target) -> Rules {
        Rules { allow: vec![target.at.clone()], deny: Vec::new() }
    }

    /// Checks what the URL alone shows.
    pub fn check_target(&self, target: &Target) -> Result<(), RpcError> {
        let HostPort { host, port } = &target.at;
        let is_denied = self.deny.iter().any(|denied| match denied {
            Denied::Host(name) => host == name || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.')),
            Denied::Port(at) => *at == target.at,
        });
        if is_denied {
            return Err(denied("deny", format!("`{host}` is in `web.extract.deny`")));
        }
        if METADATA_HOSTS.contains(&host.as_str()) {
            return Err(refused_address(target, AddressClass::Metadata, host));
        }
        if !matches!(port, 80 | 443) && !self.allow.contains(&target.at) {
            let message =
                format!("port {port} is not fetched; add `{host}:{port}` to `web.extract.allow` if it should be");
            return Err(denied("port", message));
        }
        target.literal.map_or(Ok(()), |ip| self.check_address(target, ip))
    }

    /// Checks every address of a host: one that is refused refuses the host.
    pub fn check_addresses(&self, target: &Target, addresses: &[SocketAddr]) -> Result<(), RpcError> {
        addresses.iter().try_for_each(|address| self.check_address(target, address.ip()))
    }

    fn check_address(&self, target: &Target, ip: IpAddr) -> Result<(), RpcError> {
        match classify(ip) {
            AddressClass::Public => Ok(()),
            AddressClass::Metadata => Err(refused_address(target, AddressClass::Metadata, &ip.to_string())),
            _ if self.allow.contains(&target.at) => Ok(()),
            class => Err(refused_address(target, class, &ip.to_string())),
        }
    }
}

fn denied(reason: &str, message: String) -> RpcError {
    RpcError::new(ErrorKind::Denied, message).with("reason", reason)
}

fn refused_address(target: &Target, class: AddressClass, address: &str) -> RpcError {
    let HostPort { host, port } = &target.at;
    let remedy = match class {
        AddressClass::Metadata => "; it is never fetched".into(),
        _ => format!("; add `{host}:{port}` to `web.extract.allow` if it should be fetched"),
    };
    let message = format!("`{host}` leads to the {} address {address}{remedy}", class.name());
    denied("address", message).with("class", class.name()).with("address", address)
}

/// Parses `host` or `host:port` with the parser that parses URLs, so that spellings are normalised in the same way.
fn host_port(entry: &str) -> Option<(String, Option<u16>)> {
    let after_host = entry.rsplit(']').next().unwrap_or(entry);
    let port = after_host.rsplit_once(':').map(|(_, port)| port.parse::<u16>()).transpose().ok()?;
    let target = Target::parse(&format!("http://{entry}/")).ok()?;
    let is_whole = target.url.path() == "/" && target.url.query().is_none() && target.url.fragment().is_none();
    is_whole.then_some((target.at.host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allow: &[&str], deny: &[&str]) -> Rules {
        let owned = |entries: &[&str]| entries.iter().map(|entry| entry.to_string()).collect::<Vec<_>>();
        Rules::parse(&owned(allow), &owned(deny)).expect("rules")
    }

    fn reason(rules: &Rules, url: &str) -> String {
        match Target::parse(url).and_then(|target| rules.check_target(&target)) {
            Ok(()) => "ok".into(),
            Err(error) => {
                let field = if error.data.contains_key("class") { "class" } else { "reason" };
                error.data.get(field).and_then(|value| value.as_str()).unwrap_or("invalid").into()
            }
        }
    }

    #[test]
    fn odd_spellings_of_an_address_are_that_address() {
        let none = Rules::default();
        for url in [
            "http://127.0.0.1/",
            "http://0x7f.1/",
            "http://0X7F.0.0.1/",
            "http://2130706433/",
            "http://017700000001/",
            "http://0177.0.0.1/",
            "http://127.1/",
            "http://127.0.1/",
            "http://127.0.0.1./",
            "http://127%2e0%2e0%2e1/",
            "http://１２７.0.0.1/",
            "http://127。0。0。1/",
            "http://[::1]/",
            "http://[0:0:0:0:0:0:0:1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[::127.0.0.1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[2002:7f00:1::]/",
            "https:127.0.0.1",
            "http:\\\\127.0.0.1\\x",
            "  http://127.0.0.1/  ",
            "http://127.0.0.1\t/",
        ] {
            assert_eq!(reason(&none, url), "loopback", "{url}");
        }
        for (url, expected) in [
            ("http://0/", "unspecified"),
            ("http://[::]/", "unspecified"),
            ("http://0xa9fea9fe/", "cloud metadata"),
            ("http://2852039166/", "cloud metadata"),
            ("http://169.254.169.254/", "cloud metadata"),
            ("http://METADATA.google.internal./", "cloud metadata"),
            ("http://10.1/", "private"),
            ("http://192.168.257/", "private"),
            ("http://[fe80::1]/", "link-local"),
            ("http://[fd00::1]/", "private"),
            ("http://100.64.1.1/", "carrier-grade NAT"),
            ("http://224.0.0.1/", "multicast"),
            ("http://192.0.2.7/", "documentation"),
            ("http://198.18.0.1/", "benchmarking"),
            ("http://255.255.255.255/", "reserved"),
            ("http://[2001:0:7f00:1::]/", "loopback"),
        ] {
            assert_eq!(reason(&none, url), expected, "{url}");
        }
        for url in
            ["http://256.1.1.1/", "http://1.2.3.4.5/", "http://0x100000000/", "http://127.0.0.1.1/", "http://[::1/"]
        {
            assert_eq!(reason(&none, url), "invalid", "{url}");
        }
    }

    #[test]
    fn schemes_users_and_ports_are_refused() {
        let none = Rules::default();
        for (url, expected) in [
            ("file:///etc/passwd", "scheme"),
            ("ftp://example.com/", "scheme"),
            ("gopher://example.com/", "scheme"),
            ("data:text/html,x", "scheme"),
            ("javascript:alert(1)", "scheme"),
            ("http://user@example.com/", "userinfo"),
            ("http://user:pass@example.com/", "userinfo"),
            ("http://:pass@example.com/", "userinfo"),
            ("http://example.com@127.0.0.1/", "userinfo"),
            ("http://example.com:22/", "port"),
            ("https://example.com:8443/", "port"),
            ("http://example.com:0/", "port"),
            ("not a url", "invalid"),
            ("http:///", "invalid"),
            ("", "invalid"),
            ("http://example.com:80/", "ok"),
            ("https://example.com/", "ok"),
            ("http://example.com:443/", "ok"),
            ("https://bücher.example/", "ok"),
        ] {
            assert_eq!(reason(&none, url), expected, "{url}");
        }
        assert_eq!(Target::parse("https://Bücher.example/").expect("a URL").at.host, "xn--bcher-kva.example");
    }

    #[test]
    fn allow_is_exact_and_never_includes_metadata() {
        let rules = rules(&["127.0.0.1:8080", "intranet.test:80", "169.254.169.254:80", "[::1]:9", "0x7f.2:81"], &[]);
        for (url, expected) in [
            ("http://127.0.0.1:8080/", "ok"),
            ("http://2130706433:8080/", "ok"),
            ("http://127.0.0.1:8081/", "port"),
            ("http://127.0.0.1/", "loopback"),
            ("http://127.0.0.2:81/", "ok"),
            ("http://[::1]:9/", "ok"),
            ("http://169.254.169.254/", "cloud metadata"),
            ("http://[::ffff:169.254.169.254]/", "cloud metadata"),
        ] {
            assert_eq!(reason(&rules, url), expected, "{url}");
        }
        let private = ["10.0.0.1:80".parse().expect("an address")];
        let check = |host: &str| {
            let target = Target::parse(&format!("http://{host}/")).expect("a URL");
            rules.check_addresses(&target, &private).is_ok()
        };
        assert!(check("intranet.test") && check("INTRANET.test."));
        assert!(!check("x.intranet.test") && !check("other.test"));
    }

    #[test]
    fn one_refused_address_refuses_the_host() {
        let target = Target::parse("http://example.com/").expect("a URL");
        let public: SocketAddr = "93.184.216.34:80".parse().expect("an address");
        let private: SocketAddr = "[::ffff:10.0.0.1]:80".parse().expect("an address");
        assert_eq!(Rules::default().check_addresses(&target, &[public]), Ok(()));
        assert!(Rules::default().check_addresses(&target, &[public, private]).is_err());
    }

    #[test]
    fn deny_includes_what_is_below_a_host_and_wins() {
        let rules = rules(&["bad.test:8080"], &["bad.test", "x.test:443"]);
        for (url, expected) in [
            ("https://bad.test/", "deny"),
            ("https://a.b.bad.test/", "deny"),
            ("http://bad.test:8080/", "deny"),
            ("https://notbad.test/", "ok"),
            ("https://x.test/", "deny"),
            ("http://x.test/", "ok"),
        ] {
            assert_eq!(reason(&rules, url), expected, "{url}");
        }
    }

    #[test]
    fn entries_without_a_port_or_with_a_path_are_refused() {
        for entry in
            ["example.com", "example.com:", "example.com:x", "http://example.com:80", "a:80/x", "", ":80", "u@h:80"]
        {
            assert!(Rules::parse(&[entry.into()], &[]).is_err(), "{entry}");
        }
    }

    #[test]
    fn a_redirect_is_a_url_of_its_own() {
        let target = Target::parse("https://example.com/a/b?q#f").expect("a URL");
        for (location, expected) in [
            ("/x", "https://example.com/x"),
            ("c", "https://example.com/a/c"),
            ("//127.0.0.1/", "https://127.0.0.1/"),
            ("http://[::1]/", "http://[::1]/"),
        ] {
            assert_eq!(target.redirect(location).expect("a URL").url.as_str(), expected);
        }
        assert!(target.redirect("file:///etc/passwd").is_err());
        assert!(target.redirect("//user@example.com/").is_err());
    }
}
