//! Paths in a journal: text where they are text, else bytes.

use serde::de::{self, Visitor};
use serde::{Deserializer, Serializer};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => serializer.serialize_str(text),
        None => serializer.collect_seq(path.as_os_str().as_bytes()),
    }
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    deserializer.deserialize_any(PathVisitor)
}

struct PathVisitor;

impl<'de> Visitor<'de> for PathVisitor {
    type Value = PathBuf;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a path as text or as bytes")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<PathBuf, E> {
        Ok(Path::new(OsStr::new(text)).into())
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut bytes: A) -> Result<PathBuf, A::Error> {
        let mut path = Vec::new();
        while let Some(byte) = bytes.next_element::<u8>()? {
            path.push(byte);
        }
        Ok(std::ffi::OsString::from_vec(path).into())
    }
}
