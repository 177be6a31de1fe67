//! Classes of IP addresses: which of them a page from outside may lead to. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The class of an address. Only `Public` may be fetched without a rule that allows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressClass {
    Public,
    /// Services of clouds that hand out credentials. Never fetched.
    Metadata,
    Loopback,
    Private,
    LinkLocal,
    /// 100.64.0.0/10, between a provider and its customers.
    Cgnat,
    Multicast,
    Unspecified,
    Documentation,
    Benchmarking,
    /// Any other range that is not globally reachable.
    Reserved,
}

impl AddressClass {
    /// Returns the name for messages and `data.reason`.
    pub fn name(self) -> &'static str {
        match self {
            AddressClass::Public => "public",
            AddressClass::Metadata => "cloud metadata",
            AddressClass::Loopback => "loopback",
            AddressClass::Private => "private",
            AddressClass::LinkLocal => "link-local",
            AddressClass::Cgnat => "carrier-grade NAT",
            AddressClass::Multicast => "multicast",
            AddressClass::Unspecified => "unspecified",
            AddressClass::Documentation => "documentation",
            AddressClass::Benchmarking => "benchmarking",
            AddressClass::Reserved => "reserved",
        }
    }
}

/// Addresses of metadata services: AWS, Azure, Google, DigitalOcean and OpenStack (169.254.169.254), ECS tasks and EKS
/// pods, Tencent, Azure's wire server, Alibaba, Oracle.
const METADATA_V4: [Ipv4Addr; 7] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(169, 254, 170, 23),
    Ipv4Addr::new(169, 254, 0, 23),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
];

/// The same services over IPv6: AWS, EKS pods, Google.
const METADATA_V6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x254),
];

/// Classifies an address. An IPv6 address that carries an IPv4 address is at most as public as that one.
pub fn classify(ip: IpAddr) -> AddressClass {
    match ip {
        IpAddr::V4(ip) => classify_v4(ip),
        IpAddr::V6(ip) => classify_v6(ip),
    }
}

fn classify_v4(ip: Ipv4Addr) -> AddressClass {
    use AddressClass::*;
    if METADATA_V4.contains(&ip) {
        return Metadata;
    }
    match ip.octets() {
        [0, 0, 0, 0] => Unspecified,
        [127, ..] => Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Private,
        [169, 254, ..] => LinkLocal,
        [100, 64..=127, ..] => Cgnat,
        [224..=239, ..] => Multicast,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Documentation,
        [198, 18..=19, ..] => Benchmarking,
        // "This network", IETF protocols, the relays of 6to4, the last class, broadcast.
        [0, ..] | [192, 0, 0, _] | [192, 88, 99, _] | [240..=255, ..] => Reserved,
        // Everything that no registry sets apart.
        _ => Public,
    }
}

fn classify_v6(ip: Ipv6Addr) -> AddressClass {
    use AddressClass::*;
    if METADATA_V6.contains(&ip) {
        return Metadata;
    }
    // Carried addresses first: `::1` and `::` are also in the range of IPv4-compatible addresses, and carry no IPv4 address.
    let own = classify_own_v6(ip);
    let carried = embedded_v4(ip).into_iter().flatten().map(classify_v4).find(|class| *class != Public);
    match (own, carried) {
        (Public, Some(carried)) => carried,
        (own, _) => own,
    }
}

/// Classifies an address by its own ranges. Ranges that carry IPv4 addresses to public networks count as public here.
fn classify_own_v6(ip: Ipv6Addr) -> AddressClass {
    use AddressClass::*;
    let s = ip.segments();
    match s {
        [0, 0, 0, 0, 0, 0, 0, 0] => Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => Loopback,
        // IPv4-mapped, IPv4-translated, IPv4-compatible, NAT64: as the address that they carry.
        [0, 0, 0, 0, 0, 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] | [0, 0, 0, 0, 0, 0, ..] => Public,
        [0x0064, 0xff9b, 0, 0, 0, 0, ..] => Public,
        // NAT64 of a network's own choice: it leads into that network.
        [0x0064, 0xff9b, 1, ..] => Private,
        [0xfc00..=0xfdff, ..] => Private,
        [0xfe80..=0xfebf, ..] => LinkLocal,
        // Site-local, deprecated and still routed by some.
        [0xfec0..=0xfeff, ..] => Private,
        [0xff00..=0xffff, ..] => Multicast,
        [0x2001, 0x0db8, ..] | [0x3fff, 0x0000..=0x0fff, ..] => Documentation,
        [0x2001, 0x0002, 0, ..] => Benchmarking,
        // Teredo: as the addresses that it carries.
        [0x2001, 0x0000, ..] => Public,
        // Other assignments of the IETF below 2001::/23: hashes as identifiers, anycast.
        [0x2001, 0x0001..=0x01ff, ..] => Reserved,
        [0x2000..=0x3fff, ..] => Public,
        // The rest is not global unicast.
        _ => Reserved,
    }
}

/// Returns the IPv4 addresses that an IPv6 address carries: Teredo has two, its server and its client.
fn embedded_v4(ip: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let s = ip.segments();
    let pair = |high: u16, low: u16| Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match s {
        [0, 0, 0, 0, 0, 0xffff, a, b] | [0, 0, 0, 0, 0xffff, 0, a, b] | [0, 0, 0, 0, 0, 0, a, b] => [pair(a, b), None],
        [0x0064, 0xff9b, 0, 0, 0, 0, a, b] => [pair(a, b), None],
        [0x2002, a, b, ..] => [pair(a, b), None],
        // The client's address is stored inverted.
        [0x2001, 0x0000, a, b, _, _, c, d] => [pair(a, b), pair(!c, !d)],
        // ISATAP: the interface part has the address behind 0:5efe or 200:5efe.
        [_, _, _, _, 0 | 0x0200, 0x5efe, a, b] => [pair(a, b), None],
        _ => [None, None],
    }
}

#[cfg(test)]
mod tests {
    use super::AddressClass::*;
    use super::*;

    fn class(text: &str) -> AddressClass {
        classify(text.parse().unwrap_or_else(|_| panic!("an address: {text}")))
    }

    #[test]
    fn ipv4_ranges_have_their_class_up_to_their_last_address() {
        for (text, expected) in [
            ("0.0.0.0", Unspecified),
            ("0.0.0.1", Reserved),
            ("0.255.255.255", Reserved),
            ("9.255.255.255", Public),
            ("10.0.0.0", Private),
            ("10.255.255.255", Private),
            ("11.0.0.0", Public),
            ("100.63.255.255", Public),
            ("100.64.0.0", Cgnat),
            ("100.100.100.200", Metadata),
            ("100.127.255.255", Cgnat),
            ("100.128.0.0", Public),
            ("127.0.0.1", Loopback),
            ("127.255.255.255", Loopback),
            ("128.0.0.0", Public),
            ("168.63.129.16", Metadata),
            ("168.63.129.17", Public),
            ("169.254.0.1", LinkLocal),
            ("169.254.0.23", Metadata),
            ("169.254.169.254", Metadata),
            ("169.254.170.2", Metadata),
            ("169.254.170.23", Metadata),
            ("169.254.255.255", LinkLocal),
            ("172.15.255.255", Public),
            ("172.16.0.0", Private),
            ("172.31.255.255", Private),
            ("172.32.0.0", Public),
            ("192.0.0.1", Reserved),
            ("192.0.0.192", Metadata),
            ("192.0.2.1", Documentation),
            ("192.88.99.1", Reserved),
            ("192.168.0.0", Private),
            ("192.168.255.255", Private),
            ("198.17.255.255", Public),
            ("198.18.0.0", Benchmarking),
            ("198.19.255.255", Benchmarking),
            ("198.51.100.1", Documentation),
            ("203.0.113.255", Documentation),
            ("223.255.255.255", Public),
            ("224.0.0.1", Multicast),
            ("239.255.255.255", Multicast),
            ("240.0.0.1", Reserved),
            ("255.255.255.255", Reserved),
            ("8.8.8.8", Public),
        ] {
            assert_eq!(class(text), expected, "{text}");
        }
    }

    #[test]
    fn ipv6_ranges_have_their_class() {
        for (text, expected) in [
            ("::", Unspecified),
            ("::1", Loopback),
            ("fc00::1", Private),
            ("fdff:ffff::1", Private),
            ("fd00:ec2::254", Metadata),
            ("fd00:ec2::23", Metadata),
            ("fd20:ce::254", Metadata),
            ("fe80::1", LinkLocal),
            ("febf::1", LinkLocal),
            ("fec0::1", Private),
            ("ff02::1", Multicast),
            ("2001:db8::1", Documentation),
            ("3fff::1", Documentation),
            ("3fff:1000::1", Public),
            ("2001:2::1", Benchmarking),
            ("2001:10::1", Reserved),
            ("2001:20::1", Reserved),
            ("2001:1ff::1", Reserved),
            ("2001:200::1", Public),
            ("64:ff9b:1::a00:1", Private),
            ("100::1", Reserved),
            ("5f00::1", Reserved),
            ("4000::1", Reserved),
            ("2606:4700:4700::1111", Public),
            ("2a00:1450:4001::1", Public),
        ] {
            assert_eq!(class(text), expected, "{text}");
        }
    }

    #[test]
    fn an_address_that_carries_another_is_as_public_as_that_one() {
        type Carry = fn(Ipv4Addr) -> Ipv6Addr;
        let carriers: [(&str, Carry); 8] = [
            ("mapped", |ip| ip.to_ipv6_mapped()),
            ("compatible", |ip| ip.to_ipv6_compatible()),
            ("translated", |ip| Ipv6Addr::from((0xffff_u128 << 48) | u128::from(u32::from(ip)))),
            ("NAT64", |ip| Ipv6Addr::from((0x0064_ff9b_u128 << 96) | u128::from(u32::from(ip)))),
            ("6to4", |ip| Ipv6Addr::from((0x2002_u128 << 112) | (u128::from(u32::from(ip)) << 80) | 1)),
            ("Teredo server", |ip| {
                let client = u128::from(!u32::from(Ipv4Addr::new(8, 8, 8, 8)));
                Ipv6Addr::from((0x2001_0000_u128 << 96) | (u128::from(u32::from(ip)) << 64) | client)
            }),
            ("Teredo client", |ip| {
                let server = u128::from(u32::from(Ipv4Addr::new(8, 8, 8, 8)));
                Ipv6Addr::from((0x2001_0000_u128 << 96) | (server << 64) | u128::from(!u32::from(ip)))
            }),
            ("ISATAP", |ip| Ipv6Addr::from((0x2606_u128 << 112) | (0x5efe_u128 << 32) | u128::from(u32::from(ip)))),
        ];
        let inside =
            ["127.0.0.1", "10.1.2.3", "192.168.1.1", "172.16.0.1", "169.254.1.1", "169.254.169.254", "100.64.0.1"];
        let other = ["224.0.0.1", "192.0.2.1", "198.18.0.1", "255.255.255.255", "8.8.8.8", "93.184.216.34"];
        for (name, carry) in carriers {
            for text in inside.iter().chain(&other) {
                let v4: Ipv4Addr = text.parse().expect("an address");
                let v6 = carry(v4);
                assert_eq!(classify(v6.into()), classify(v4.into()), "{name} of {v4}: {v6}");
            }
        }
    }

    #[test]
    fn written_forms_of_carried_addresses_are_refused() {
        for (text, expected) in [
            ("::ffff:127.0.0.1", Loopback),
            ("::ffff:7f00:1", Loopback),
            ("::127.0.0.1", Loopback),
            ("::ffff:0:10.0.0.1", Private),
            ("64:ff9b::169.254.169.254", Metadata),
            ("2002:7f00:1::", Loopback),
            ("2002:a9fe:a9fe::1", Metadata),
            ("2001:0:7f00:1::", Loopback),
        ] {
            assert_eq!(class(text), expected, "{text}");
        }
    }
}
