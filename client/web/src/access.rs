//! The check of each request: it must be to our own address, from our own page, with the token or the cookie. Pure.

use std::io;

/// Bytes of the token and of the cookie: 128 bits.
const SECRET_LEN: usize = 16;

pub struct Access {
    port: u16,
    token: String,
    cookie: String,
}

/// The parts of a request that decide. Values as they were sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Credentials<'a> {
    pub host: Option<&'a str>,
    pub origin: Option<&'a str>,
    pub token: Option<&'a str>,
    pub cookies: Option<&'a str>,
}

/// The outcome of the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Allow,
    /// 401: neither a token nor a cookie.
    NoToken,
    /// 403: one of them is wrong.
    WrongToken,
    /// 403: another host name. A page on that name could point it at this address.
    ForeignHost,
    /// 403: the request comes from a page of another origin.
    ForeignOrigin,
}

impl Access {
    pub fn new(port: u16) -> io::Result<Access> {
        Ok(Access { port, token: secret()?, cookie: secret()? })
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token)
    }

    /// Returns the header that gives a browser its cookie. A cookie is for all ports, so its name has ours.
    pub fn set_cookie(&self) -> String {
        format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie_name(), self.cookie)
    }

    fn cookie_name(&self) -> String {
        format!("toold-web-{}", self.port)
    }

    pub fn check(&self, given: Credentials<'_>) -> Decision {
        let port = self.port;
        let hosts = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
        if !given.host.is_some_and(|host| hosts.iter().any(|ours| ours.eq_ignore_ascii_case(host))) {
            return Decision::ForeignHost;
        }
        // Programs send none; a browser sends it with every WebSocket and every request of another page.
        let is_ours = |origin: &str| hosts.iter().any(|ours| origin.eq_ignore_ascii_case(&format!("http://{ours}")));
        if !given.origin.is_none_or(is_ours) {
            return Decision::ForeignOrigin;
        }
        let name = self.cookie_name();
        let cookie = given.cookies.and_then(|all| {
            all.split(';')
                .filter_map(|one| one.trim().split_once('='))
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value)
        });
        match (given.token, cookie) {
            (Some(token), _) if is_same(token, &self.token) => Decision::Allow,
            (Some(_), _) => Decision::WrongToken,
            (None, Some(cookie)) if is_same(cookie, &self.cookie) => Decision::Allow,
            (None, Some(_)) => Decision::WrongToken,
            (None, None) => Decision::NoToken,
        }
    }
}

/// Compares without a hint at the first difference.
fn is_same(given: &str, secret: &str) -> bool {
    let differences = given.bytes().zip(secret.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == secret.len() && differences == 0
}

/// Returns random bytes in hex.
pub fn secret() -> io::Result<String> {
    let mut bytes = [0; SECRET_LEN];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_host_our_origin_and_the_right_token_or_cookie_enter() {
        let access = Access { port: 8000, token: "aa".into(), cookie: "cc".into() };
        let right = Credentials { host: Some("127.0.0.1:8000"), token: Some("aa"), ..Default::default() };
        let check = |given| access.check(given);
        assert_eq!(check(right), Decision::Allow);
        assert_eq!(check(Credentials { host: Some("localhost:8000"), ..right }), Decision::Allow);
        for host in [None, Some("evil.example:8000"), Some("127.0.0.1"), Some("127.0.0.1:8000.evil.example"), Some("")]
        {
            assert_eq!(check(Credentials { host, ..right }), Decision::ForeignHost, "{host:?}");
        }
        for origin in ["http://evil.example", "null", "https://127.0.0.1:8000", "http://127.0.0.1:8001", ""] {
            assert_eq!(check(Credentials { origin: Some(origin), ..right }), Decision::ForeignOrigin, "{origin}");
        }
        assert_eq!(check(Credentials { origin: Some("http://127.0.0.1:8000"), ..right }), Decision::Allow);
        for token in ["", "a", "ab", "aaa"] {
            assert_eq!(check(Credentials { token: Some(token), ..right }), Decision::WrongToken, "{token}");
        }
        let cookie = |cookies| Credentials { token: None, cookies: Some(cookies), ..right };
        assert_eq!(check(cookie("x=1; toold-web-8000=cc")), Decision::Allow);
        assert_eq!(check(cookie("toold-web-8000=cd")), Decision::WrongToken);
        assert_eq!(check(cookie("toold-web-8001=cc")), Decision::NoToken);
        assert_eq!(check(Credentials { token: None, ..right }), Decision::NoToken);
    }

    #[test]
    fn a_secret_has_128_bits_and_differs_each_time() {
        let (a, b) = (secret().expect("random bytes"), secret().expect("random bytes"));
        assert_eq!((a.len(), a == b), (32, false));
    }
}
