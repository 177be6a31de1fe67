//! Parameters and results of `fs.*`.

use crate::params::{Encoding, params};
use crate::results::result;
use crate::sandbox::SandboxSetting;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The line ends of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LineEnding {
    Lf,
    Crlf,
    Cr,
    /// More than one kind.
    Mixed,
}

/// The encoding of a file, as its first bytes show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Charset {
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    #[serde(rename = "utf-16le")]
    Utf16Le,
    #[serde(rename = "utf-16be")]
    Utf16Be,
}

/// Treatment of a file that has several names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HardLinks {
    /// Leave it alone and answer with an error.
    #[default]
    Refuse,
    /// Give this name a file of its own. The other names keep the old content.
    Break,
}

params!(
    FsReadParams {
        required {
            /// A regular file. Absolute, or relative to `cwd`.
            path: String,
        }
        /// The directory of a relative path. Absolute.
        cwd: Option<String>,
        /// The first line, from 1 on. Default: 1.
        offset: Option<u64>,
        /// Lines, at most 2000. Default: 500.
        limit: Option<u64>,
        /// `base64` gives the bytes of the lines unchanged.
        encoding: Encoding,
        /// The first byte, from 0 on, in place of lines. Only with `encoding: "base64"`; for binary files and very long lines.
        from_byte: Option<u64>,
        /// The profile that the call is judged by. Default: that of an `exec` without `sandbox`.
        sandbox: Option<SandboxSetting>,
        session_key: Option<String>,
        task_id: Option<String>,
    }
);

result!(FsReadResult {
    /// Absolute, without links.
    path: String,
    /// Lines with their line ends; or base64. Empty for a binary file that is read as text.
    content: String,
    /// Lines of the file. Null: the file is larger than `fs.max_file_bytes`.
    total_lines: Option<u64>,
    /// Size of the file.
    bytes: u64,
    /// Hash of all bytes of the file, for `expect`. Null: the file is larger than `fs.max_file_bytes`.
    sha256: Option<String>,
    /// True if the file goes on after `content`.
    truncated: bool,
    /// `offset` of the next page. Null: there is none.
    next_offset: Option<u64>,
    /// `from_byte` of the next page. Null: there is none, or the page consists of lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next_byte: Option<u64>,
    /// Null: no line ends, or not known.
    line_ending: Option<LineEnding>,
    /// The file begins with a byte order mark. `content` does not.
    bom: bool,
    charset: Charset,
    /// The file is not text.
    #[serde(default)]
    binary: bool,
    /// Bytes that are not valid in the charset are U+FFFD in `content`.
    #[serde(default)]
    lossy: bool,
});

params!(
    FsWriteParams {
        required {
            /// A regular file, or a new name. Absolute, or relative to `cwd`. A link is followed.
            path: String,
        }
        /// The directory of a relative path. Absolute.
        cwd: Option<String>,
        /// The new content as text. Either this or `content_base64`.
        content: Option<String>,
        content_base64: Option<String>,
        /// The sha256 that the file must have, or `absent`.
        expect: Option<String>,
        /// Permissions in octal: `644`. Default: those of the file.
        mode: Option<String>,
        /// Create missing directories. Default: true.
        create_dirs: Option<bool>,
        hard_links: HardLinks,
        /// The profile that the call is judged by. Default: that of an `exec` without `sandbox`.
        sandbox: Option<SandboxSetting>,
        session_key: Option<String>,
        task_id: Option<String>,
        /// A call with the same key and the same change waits for the same approval.
        request_id: Option<String>,
        /// The time that a person has to decide, if the file is outside the roots. 0: deny instead of asking. Default: 600000.
        approval_timeout_ms: Option<u64>,
    }
);

result!(FsWriteResult {
    /// Absolute, without links.
    path: String,
    bytes: u64,
    sha256: String,
    /// Hash of the old content. Null: the file is new, or larger than `fs.max_file_bytes`.
    before_sha256: Option<String>,
    /// The change as a unified diff. Empty if the content was the same already; null if a side is binary or too large.
    diff: Option<String>,
    /// True if there was no such file.
    created: bool,
    /// Properties of the old file that the new one could not get: `owner`, `xattr …`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    not_kept: Vec<String>,
});

params!(
    FsEditParams {
        required {
            /// A regular text file. Absolute, or relative to `cwd`. A link is followed.
            path: String,
            /// The text to replace. Its line ends need not be those of the file.
            old: String,
            new: String,
        }
        /// The directory of a relative path. Absolute.
        cwd: Option<String>,
        /// Replace every match. Otherwise there must be exactly one.
        replace_all: bool,
        /// Accept a similar text too: strategies `block_anchor` and `similar_lines`.
        fuzzy: bool,
        /// The sha256 that the file must have.
        expect: Option<String>,
        hard_links: HardLinks,
        /// The profile that the call is judged by. Default: that of an `exec` without `sandbox`.
        sandbox: Option<SandboxSetting>,
        session_key: Option<String>,
        task_id: Option<String>,
        /// A call with the same key and the same change waits for the same approval.
        request_id: Option<String>,
        /// The time that a person has to decide, if the file is outside the roots. 0: deny instead of asking. Default: 600000.
        approval_timeout_ms: Option<u64>,
    }
);

/// The way in which `fs.edit` found the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EditStrategy {
    /// The same characters.
    Exact,
    /// Each line without the blanks at its ends.
    LineTrimmed,
    /// Runs of blanks and tabs as one blank.
    WhitespaceNormalized,
    /// `\n`, `\t` and `\r` in the request as the characters that they stand for.
    EscapeNormalized,
    /// Typographic quotes, dashes, ellipses and spaces as their plain forms.
    UnicodeNormalized,
    /// The same first and last line, and a similar text between them. Only with `fuzzy`.
    BlockAnchor,
    /// Every line similar. Only with `fuzzy`.
    SimilarLines,
}

result!(FsEditResult {
    /// Absolute, without links.
    path: String,
    /// Null with `no_change`.
    strategy: Option<EditStrategy>,
    /// Replaced places.
    count: u64,
    /// The change as a unified diff. Null if it is too large.
    diff: Option<String>,
    sha256: String,
    before_sha256: String,
    /// True if the file has `new` already and `old` nowhere. Nothing was written.
    #[serde(default)]
    no_change: bool,
    /// Properties of the old file that the new one could not get: `owner`, `xattr …`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    not_kept: Vec<String>,
});

params!(
    FsListParams {
        required {
            /// A directory. Absolute, or relative to `cwd`.
            path: String,
        }
        /// The directory of a relative path. Absolute.
        cwd: Option<String>,
        /// Levels of directories, at most 64. Default: 1.
        depth: Option<u64>,
        /// Only names that match: `*.rs`; with a slash, paths below `path`: `src/**/*.rs`.
        glob: Option<String>,
        /// Names that begin with a dot too.
        hidden: bool,
        /// Leave out what ignore files name. Default: true.
        ignore: Option<bool>,
        /// Entries, at most 10000. Default: 1000.
        limit: Option<u64>,
        /// `next` of the page before.
        after: Option<String>,
        /// The profile that the call is judged by. Default: that of an `exec` without `sandbox`.
        sandbox: Option<SandboxSetting>,
        session_key: Option<String>,
        task_id: Option<String>,
    }
);

/// The type of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryType {
    File,
    Dir,
    Symlink,
    Fifo,
    Socket,
    Device,
    /// Of a kind that is not known.
    Other,
}

result!(
    /// One name in a directory.
    Entry {
        /// `path` of the call and the rest, so that it can be read with the same `cwd`.
        path: String,
        name: String,
        #[serde(rename = "type")]
        kind: EntryType,
        /// Size of a file. Null for others.
        bytes: Option<u64>,
        /// Time of the last change of the content. RFC 3339, UTC. Null: not known.
        modified_at: Option<String>,
        /// The path in a link. Null for others.
        target: Option<String>,
    }
);

result!(FsListResult {
    /// Absolute, without links.
    path: String,
    /// In the order of the names; a directory before its content.
    entries: Vec<Entry>,
    /// `after` of the next page. Null: there is none.
    next: Option<String>,
    /// Directories that could not be read, with the reason. At most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<Unreadable>,
});

result!(
    /// A file or directory that could not be read.
    Unreadable {
        path: String,
        why: String,
    }
);

/// The form of the results of `fs.search`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchMode {
    /// Lines that match.
    #[default]
    Content,
    /// Files with a line that matches.
    Files,
    /// Files with the number of their lines that match.
    Count,
}

params!(
    FsSearchParams {
        required {
            /// A regular expression of ripgrep, for one line.
            pattern: String,
            /// A directory or a file. Absolute, or relative to `cwd`.
            path: String,
        }
        /// The directory of a relative path. Absolute.
        cwd: Option<String>,
        /// Only files whose path matches, as `rg --glob`: `*.rs`, `!target`.
        glob: Option<String>,
        mode: SearchMode,
        /// Lines before and after each match, at most 20. Default: 0.
        context: Option<u64>,
        /// Results, at most 10000. Default: 50.
        limit: Option<u64>,
        /// `next` of the page before.
        after: Option<String>,
        /// Results that are left out first. With `limit` at most 10000; `after` reaches further. Default: 0.
        offset: Option<u64>,
        /// Answer after this time with what was found. Default: 10000.
        timeout_ms: Option<u64>,
        /// Files whose name begins with a dot too.
        hidden: bool,
        /// Leave out what ignore files name. Default: true.
        ignore: Option<bool>,
        /// The profile that the call is judged by. Default: that of an `exec` without `sandbox`.
        sandbox: Option<SandboxSetting>,
        session_key: Option<String>,
        task_id: Option<String>,
    }
);

result!(
    /// One result of a search.
    SearchMatch {
        /// `path` of the call and the rest, so that it can be read with the same `cwd`.
        path: String,
        /// From 1 on. Null with `files` and `count`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<u64>,
        /// The line without its end, at most 500 characters. Null with `files` and `count`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// True if the line is longer than `text`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cut: bool,
        /// Lines before the match, with `context`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        before: Vec<String>,
        /// Lines after the match, with `context`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        after: Vec<String>,
        /// Lines of the file that match, with `count`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        count: Option<u64>,
    }
);

impl SearchMatch {
    /// Makes a result that is a whole file.
    pub fn of_file(path: String, count: Option<u64>) -> SearchMatch {
        SearchMatch { path, line: None, text: None, cut: false, before: Vec::new(), after: Vec::new(), count }
    }
}

result!(FsSearchResult {
    /// In the order of paths and lines.
    matches: Vec<SearchMatch>,
    /// All lines that match; with `files`, all files. At least that many if `complete` is false.
    total: u64,
    /// Files with a line that matches.
    files: u64,
    /// False if not everything was searched.
    complete: bool,
    /// The cause if `complete` is false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// `after` of the next page. Null: there is none.
    next: Option<String>,
    /// Files that could not be read. At most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<Unreadable>,
});
