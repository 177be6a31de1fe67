//! The files of `client/agents` and `client/editors`, as they were when this program was built.

/// Each file with its path below `client/`. The build script lists them.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/embedded_files.rs"));

/// Returns the files below a directory such as `agents/codex`, with their paths in it.
pub fn files(dir: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    FILES.iter().filter_map(move |(path, text)| Some((path.strip_prefix(dir)?.strip_prefix('/')?, *text)))
}

/// Returns the text of one file.
pub fn file(path: &str) -> &'static str {
    FILES.iter().find(|(known, _)| *known == path).map_or("", |(_, text)| text)
}
