//! placeholder
use std::path::Path;
pub enum Asks {
    Yes { pid: i32, echo: Option<bool> },
    No,
    Unknown,
}
pub fn asks(_: i32, _: i32, _: bool) -> Asks {
    Asks::No
}
pub fn prompt(_: &Path, _: u64) -> String {
    String::new()
}
