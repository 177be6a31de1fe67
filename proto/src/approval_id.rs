//! The ids of approvals and grants: a prefix and 12 lowercase hex digits. They are never used again.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Declares an id: a prefix and 12 lowercase hex digits.
macro_rules! hex_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $pattern:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u64);

        impl $name {
            /// Makes an id of the low 48 bits.
            pub fn from_bits(bits: u64) -> $name {
                $name(bits & 0xffff_ffff_ffff)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{:012x}"), self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = &'static str;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let digits = text.strip_prefix($prefix).filter(|hex| hex.len() == 12);
                let is_digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
                let digits = digits.filter(|hex| hex.bytes().all(is_digit));
                let bits = digits.and_then(|hex| u64::from_str_radix(hex, 16).ok());
                bits.map($name).ok_or(concat!("must be ", $prefix, " and 12 lowercase hex digits"))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "pattern": $pattern })
            }
        }
    };
}

hex_id!(
    /// The id of an approval.
    ApprovalId, "appr_", "^appr_[0-9a-f]{12}$"
);
hex_id!(
    /// The id of a grant.
    GrantId, "grant_", "^grant_[0-9a-f]{12}$"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_back_and_nothing_else_is_one() {
        let id = ApprovalId::from_bits(0xabcd_0000_0001);
        assert_eq!(id.to_string(), "appr_abcd00000001");
        assert_eq!("appr_abcd00000001".parse(), Ok(id));
        for text in ["appr_abcd", "grant_abcd00000001", "appr_ABCD00000001", "appr_abcd000000011", "abcd00000001", ""] {
            assert!(text.parse::<ApprovalId>().is_err(), "{text}");
        }
        assert_eq!(GrantId::from_bits(1).to_string(), "grant_000000000001");
    }
}
