//! A page cut to its limit, with the whole text in a file.

use crate::page::PageText;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use toold_fetch_templates::{ExtractRequest, Page};

/// Files that one directory gets at most, so that a full one is an error and not a long search for a free name.
const MAX_FILES: usize = 10_000;

pub fn page(url: String, final_url: String, text: PageText, request: &ExtractRequest) -> Page {
    let PageText { title, content } = text;
    let page = Page { url, final_url, title, ..Page::default() };
    let Some((end, _)) = content.char_indices().nth(request.char_limit) else {
        return Page { content, ..page };
    };
    let saved = request.out_dir.as_deref().map(|dir| save(dir, &content)).transpose();
    let (path, error) = match saved {
        Ok(path) => (path, None),
        Err(e) => (None, Some(format!("the whole text could not be saved: {e}"))),
    };
    let total_chars = Some(content.chars().count());
    Page { content: content[..end].to_string(), truncated: true, total_chars, path, error, ..page }
}

/// Writes the text to a new file of the directory, as `web-1.md`.
fn save(dir: &Path, content: &str) -> io::Result<PathBuf> {
    let (mut file, path) = new_file(dir)?;
    file.write_all(content.as_bytes())?;
    Ok(path)
}

fn new_file(dir: &Path) -> io::Result<(File, PathBuf)> {
    for number in 1..=MAX_FILES {
        let path = dir.join(format!("web-{number}.md"));
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => return Ok((file, path)),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Err(io::Error::other(format!("{} has {MAX_FILES} pages already", dir.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(char_limit: usize, out_dir: Option<PathBuf>) -> ExtractRequest {
        let request = serde_json::from_str::<ExtractRequest>(r#"{"urls": ["https://a.test"]}"#).expect("a request");
        ExtractRequest { char_limit, out_dir, ..request }
    }

    fn cut(content: &str, request: &ExtractRequest) -> Page {
        let text = PageText { title: "T".into(), content: content.into() };
        page("u".into(), "f".into(), text, request)
    }

    #[test]
    fn a_page_is_cut_between_characters_and_saved_whole() {
        let dir = tempfile::tempdir().expect("a directory");
        let request = request(3, Some(dir.path().into()));
        assert_eq!(cut("äöü", &request).content, "äöü");
        for number in [1, 2] {
            let page = cut("äöüß", &request);
            let path = dir.path().join(format!("web-{number}.md"));
            assert_eq!((page.content.as_str(), page.truncated, page.total_chars), ("äöü", true, Some(4)));
            assert_eq!(page.path.as_deref(), Some(path.as_path()));
            assert_eq!(std::fs::read_to_string(path).expect("the file"), "äöüß");
        }
    }

    #[test]
    fn a_text_that_cannot_be_saved_is_still_given() {
        let page = cut("abcd", &request(2, Some("/nonexistent/dir".into())));
        assert_eq!((page.content.as_str(), page.path), ("ab", None));
        assert!(page.error.expect("a reason").starts_with("the whole text could not be saved"));
    }
}
