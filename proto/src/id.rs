//! Process ids: `proc_` and 12 lowercase hex digits. They are not pids, and are never used again.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

const PREFIX: &str = "proc_";
const DIGITS: usize = 12;
/// Minimum digits of a prefix that selects a process. A shorter one would match too many.
const MIN_PREFIX_DIGITS: usize = 4;

/// 48 bits that identify one process. Ordered by value, so that a prefix is a range.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcId(u64);

impl ProcId {
    /// Makes an id of the low 48 bits.
    pub fn from_bits(bits: u64) -> ProcId {
        ProcId(bits & 0xffff_ffff_ffff)
    }

    pub fn bits(self) -> u64 {
        self.0
    }

    /// Returns true if `text` is the start of an id and too short for a prefix.
    pub fn is_short_prefix(text: &str) -> bool {
        let hex = text.strip_prefix(PREFIX).unwrap_or(text);
        (1..MIN_PREFIX_DIGITS).contains(&hex.len()) && hex.bytes().all(is_digit)
    }

    /// Returns the lowest and the highest id that start with `text` (with or without `proc_`); None if `text` has fewer
    /// than 4 digits or is not lowercase hex.
    pub fn prefix_range(text: &str) -> Option<(ProcId, ProcId)> {
        let hex = text.strip_prefix(PREFIX).unwrap_or(text);
        if hex.len() < MIN_PREFIX_DIGITS || hex.len() > DIGITS || !hex.bytes().all(is_digit) {
            return None;
        }
        let value = u64::from_str_radix(hex, 16).ok()?;
        let shift = 4 * (DIGITS - hex.len()) as u32;
        let low = value << shift;
        Some((ProcId(low), ProcId(low | ((1u64 << shift) - 1))))
    }
}

fn is_digit(b: u8) -> bool {
    b.is_ascii_digit() || (b'a'..=b'f').contains(&b)
}

impl fmt::Display for ProcId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{:012x}", self.0)
    }
}

impl fmt::Debug for ProcId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ProcId {
    type Err = NotAnId;
    fn from_str(text: &str) -> Result<Self, NotAnId> {
        match ProcId::prefix_range(text) {
            Some((low, high)) if low == high && text.starts_with(PREFIX) => Ok(low),
            // A prefix, a bare number or any other text is not a whole id.
            _ => Err(NotAnId),
        }
    }
}

/// The text is not `proc_` and 12 lowercase hex digits.
#[derive(Debug, PartialEq, Eq)]
pub struct NotAnId;

impl fmt::Display for NotAnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a process id: proc_ and 12 lowercase hex digits")
    }
}

impl std::error::Error for NotAnId {}

impl Serialize for ProcId {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ProcId {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for ProcId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ProcId".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^proc_[0-9a-f]{12}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_and_a_prefix_is_a_range() {
        let id = ProcId::from_bits(0xabcd_0000_0001);
        assert_eq!(id.to_string(), "proc_abcd00000001");
        assert_eq!("proc_abcd00000001".parse(), Ok(id));
        for text in ["abcd", "proc_abcd"] {
            let (low, high) = ProcId::prefix_range(text).expect("four digits are enough");
            assert!(low <= id && id <= high && high.bits() - low.bits() == 0xffff_ffff);
        }
        for text in ["abc", "ABCD", "proc_", "proc_abcd000000011", "wxyz"] {
            assert_eq!(ProcId::prefix_range(text), None, "{text}");
        }
        assert_eq!("abcd00000001".parse::<ProcId>(), Err(NotAnId));
        let short = ["9", "abc", "proc_ab", "abcd", "", "proc_", "ABC", "web"].map(ProcId::is_short_prefix);
        assert_eq!(short, [true, true, true, false, false, false, false, false]);
    }
}
