//! Verifies a patch against the files, in memory: reads what it names, applies the operations, and changes nothing.

use super::ApplyError;
use super::bounds::{Bounds, refused_path};
use super::named::Named;
use crate::changes::{Action, Attributes, Before, Change, ChangePlace, Content, LastLink, Root, Seen, WalkError};
use crate::text::{NO_FILE, last_char_end, unified_diff};
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toold_patch::lines::Lines;
use toold_patch::{Change as PatchChange, Chunk, Operation};
use toold_proto::patch::{
    NearestPlace, PatchApplyParams, PatchFailure, PatchFile, PatchMode, PatchOp, PatchResult, PatchStatus,
};

/// The longest diff of a result.
const MAX_DIFF_BYTES: usize = 1 << 20;
/// The longest text of a nearest place.
const MAX_NEAREST_CHARS: usize = 200;
/// The expectation that there is no file.
pub const ABSENT: &str = "absent";

/// A patch that fits its files.
#[derive(Debug)]
pub struct Verified {
    pub roots: Vec<Arc<Root>>,
    pub changes: Vec<Change>,
    pub files: Vec<PatchFile>,
    pub diff: String,
    pub diff_truncated: bool,
    /// In sequential mode: the operation that does not fit. Those before it do.
    pub failed: Option<PatchFailure>,
}

impl Verified {
    pub fn into_result(self, patch_id: Option<String>, status: PatchStatus) -> PatchResult {
        let Verified { files, diff, diff_truncated, failed, .. } = self;
        PatchResult { patch_id, status, files, diff, diff_truncated, failed }
    }
}

/// Verifies a patch. The files of it, before and after, have at most `max_bytes`.
pub fn verify(call: &PatchApplyParams, bounds: Bounds, max_bytes: u64) -> Result<Verified, ApplyError> {
    if call.patch.len() as u64 > max_bytes {
        return Err(ApplyError::TooLarge { max: max_bytes });
    }
    let patch = toold_patch::parse(&call.patch).map_err(|error| invalid(error, None, b""))?;
    let cwd = call.cwd.as_deref().map(working_dir).transpose()?;
    let top = Root::open(Path::new("/")).map_err(ApplyError::Internal)?;
    let mut verifier = Verifier {
        cwd,
        top,
        bounds,
        mode: call.mode,
        max_bytes,
        left: max_bytes,
        files: HashMap::new(),
        parents: HashSet::new(),
        order: Vec::new(),
        done: Vec::new(),
        diff: String::new(),
        diff_truncated: false,
    };
    let mut failed = None;
    for operation in &patch.operations {
        match verifier.operation(operation) {
            Ok(()) => {}
            Err(ApplyError::Invalid(failure)) if call.mode == PatchMode::Sequential && !verifier.done.is_empty() => {
                failed = Some(failure);
                break;
            }
            Err(error) => return Err(error),
        }
    }
    verifier.check_expectations(call)?;
    Ok(verifier.finish(failed))
}

fn working_dir(cwd: &str) -> Result<PathBuf, ApplyError> {
    let wrong = |problem: String| ApplyError::Param { param: "cwd".into(), problem };
    let path = Path::new(cwd);
    if !path.is_absolute() {
        return Err(wrong("must be absolute".into()));
    }
    let real = std::fs::canonicalize(path).map_err(|e| wrong(format!("{cwd}: {e}")))?;
    if real.is_dir() { Ok(real) } else { Err(wrong(format!("{cwd}: is not a directory"))) }
}

struct Verifier {
    /// None: paths are absolute.
    cwd: Option<PathBuf>,
    top: Root,
    bounds: Bounds,
    mode: PatchMode,
    max_bytes: u64,
    /// Bytes that are left of them.
    left: u64,
    /// By real path from the root.
    files: HashMap<PathBuf, Tracked>,
    /// Directories of the files that the patch makes.
    parents: HashSet<PathBuf>,
    order: Vec<PathBuf>,
    done: Vec<PatchFile>,
    diff: String,
    diff_truncated: bool,
}

/// A file of the patch.
struct Tracked {
    /// Its root, and the real path from there.
    root: usize,
    path: PathBuf,
    /// The file as it is. None: there is none.
    before: Option<FileBefore>,
    /// The bytes after the operations so far.
    now: Option<Vec<u8>>,
    /// The mode of the file that was moved here.
    mode: Option<u32>,
}

struct FileBefore {
    seen: Seen,
    mode: u32,
    hash: [u8; 32],
}

impl Verifier {
    fn operation(&mut self, operation: &Operation) -> Result<(), ApplyError> {
        let Operation { line, path, change } = operation;
        let at = Named { line: *line, path };
        match change {
            PatchChange::Add { content } => self.add(at, content),
            PatchChange::Delete => self.delete(at),
            PatchChange::Update { move_to, chunks } => self.update(at, move_to.as_deref(), chunks),
        }
    }

    fn add(&mut self, at: Named<'_>, content: &str) -> Result<(), ApplyError> {
        let real = self.track(at, LastLink::Follow)?;
        self.spend(content.len())?;
        let before = self.replace(&real, Some(content.as_bytes().to_vec()));
        let added = content.lines().count() as u64;
        let removed = before.as_deref().map_or(0, |bytes| Lines::split(bytes).lines.len() as u64);
        self.note(at.path, PatchOp::Add, None, before.as_deref(), Some(content.as_bytes()), (added, removed, 0));
        Ok(())
    }

    fn delete(&mut self, at: Named<'_>) -> Result<(), ApplyError> {
        let real = self.track(at, LastLink::Keep)?;
        let Some(before) = self.replace(&real, None) else { return Err(at.invalid("there is no such file")) };
        let removed = Lines::split(&before).lines.len() as u64;
        self.note(at.path, PatchOp::Delete, None, Some(&before), None, (0, removed, 0));
        Ok(())
    }

    fn update(&mut self, at: Named<'_>, move_to: Option<&str>, chunks: &[Chunk]) -> Result<(), ApplyError> {
        // A link that is moved would be removed, and the file that it leads to be left.
        let real = self.track(at, if move_to.is_some() { LastLink::Keep } else { LastLink::Follow })?;
        let Some(before) = self.files.get(&real).and_then(|file| file.now.clone()) else {
            return Err(at.invalid("there is no such file"));
        };
        let applied = toold_patch::apply(&before, chunks).map_err(|error| invalid(error, Some(at.path), &before))?;
        self.spend(applied.content.len())?;
        let counts = (applied.added as u64, applied.removed as u64, applied.likeness as u8);
        let mode = self.files.get(&real).and_then(|file| file.mode.or(file.before.as_ref().map(|b| b.mode)));
        let to = match move_to {
            None => None,
            Some(to) => {
                let to_real = self.place(Named { line: at.line, path: to }, LastLink::Follow)?.0;
                (to_real != real).then_some(to)
            }
        };
        match to {
            None => {
                self.replace(&real, Some(applied.content.clone()));
            }
            Some(to) => {
                let to_real = self.track(Named { line: at.line, path: to }, LastLink::Follow)?;
                self.replace(&to_real, Some(applied.content.clone()));
                if let Some(file) = self.files.get_mut(&to_real) {
                    file.mode = mode;
                }
                self.replace(&real, None);
            }
        }
        self.note(at.path, PatchOp::Update, to, Some(&before), Some(&applied.content), counts);
        Ok(())
    }

    /// Sets the bytes of a file, and returns those before.
    fn replace(&mut self, real: &Path, bytes: Option<Vec<u8>>) -> Option<Vec<u8>> {
        self.files.get_mut(real).and_then(|file| std::mem::replace(&mut file.now, bytes))
    }

    fn spend(&mut self, bytes: usize) -> Result<(), ApplyError> {
        let too_large = ApplyError::TooLarge { max: self.max_bytes };
        self.left = self.left.checked_sub(bytes as u64).ok_or(too_large)?;
        Ok(())
    }

    /// Finds the place of a path. Also returns its real path from the root.
    fn place(&self, at: Named<'_>, last: LastLink) -> Result<(PathBuf, ChangePlace), ApplyError> {
        let asked = at.absolute(self.cwd.as_deref())?;
        let found = self.top.find(asked.strip_prefix("/").unwrap_or(&asked), last);
        let place = found.map_err(|error| match error {
            WalkError::Escapes { .. } => at.invalid("it leads out of the root"),
            WalkError::Directory => at.invalid("it names a directory"),
            WalkError::Io(source) => at.invalid(&source.to_string()),
        })?;
        Ok((place.path(), place))
    }

    /// Reads the file at a path, unless an operation before did. In atomic mode a path has one operation.
    fn track(&mut self, at: Named<'_>, last: LastLink) -> Result<PathBuf, ApplyError> {
        let (real, place) = self.place(at, last)?;
        if self.files.contains_key(&real) {
            return match self.mode {
                PatchMode::Sequential => Ok(real),
                PatchMode::Atomic => Err(at.invalid(
                    "an operation before is on the same file; only one is possible, but for mode `sequential`",
                )),
            };
        }
        if self.parents.contains(&real) {
            return Err(at.invalid("an operation before makes it a directory"));
        }
        let above = |dir: &&Path| self.files.get(*dir).is_some_and(|file| file.now.is_some());
        if let Some(file) = real.ancestors().skip(1).find(above) {
            return Err(at.invalid(&format!("an operation before makes /{} a file", file.display())));
        }
        let asked = at.absolute(self.cwd.as_deref())?;
        let judged = self.bounds.judge(&asked, &Path::new("/").join(&real));
        let (root, path) = judged.map_err(|refused| refused_path(asked.clone(), refused))?;
        let file = match self.read(&place).map_err(|source| ApplyError::Io { doing: "read", path: asked, source })? {
            FileRead::Absent => Tracked { root, path, before: None, now: None, mode: None },
            FileRead::Regular(before, bytes) => {
                self.spend(bytes.len())?;
                Tracked { root, path, before: Some(before), now: Some(bytes), mode: None }
            }
            FileRead::Link => return Err(at.invalid("it is a link; name the file that it leads to")),
            FileRead::Directory => return Err(at.invalid("it is a directory")),
            FileRead::Other => return Err(at.invalid("it is not a regular file")),
            FileRead::TooLarge => return Err(ApplyError::TooLarge { max: self.max_bytes }),
        };
        if file.before.is_none() {
            self.parents.extend(real.ancestors().skip(1).map(Path::to_path_buf));
        }
        self.files.insert(real.clone(), file);
        self.order.push(real.clone());
        Ok(real)
    }

    fn read(&self, place: &ChangePlace) -> io::Result<FileRead> {
        use rustix::fs::FileType;
        let Some(stat) = place.stat()? else { return Ok(FileRead::Absent) };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Symlink => return Ok(FileRead::Link),
            FileType::Directory => return Ok(FileRead::Directory),
            _ => return Ok(FileRead::Other),
        }
        let fd = place.open()?;
        let stat = rustix::fs::fstat(&fd)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(FileRead::Other);
        }
        let mut bytes = Vec::new();
        File::from(fd).take(self.left + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > self.left {
            return Ok(FileRead::TooLarge);
        }
        let hash = Sha256::digest(&bytes).into();
        Ok(FileRead::Regular(FileBefore { seen: Seen::of(&stat), mode: stat.st_mode & 0o7777, hash }, bytes))
    }

    /// Compares the hashes that the call expects with those of the files before the patch.
    fn check_expectations(&mut self, call: &PatchApplyParams) -> Result<(), ApplyError> {
        let mut conflicts = Vec::new();
        for (path, wanted) in &call.expect {
            let param = || format!("expect.{path}");
            if wanted != ABSENT && (wanted.len() != 64 || !wanted.bytes().all(|b| b.is_ascii_hexdigit())) {
                let problem = format!("must be a SHA-256 in 64 hexadecimal digits, or `{ABSENT}`");
                return Err(ApplyError::Param { param: param(), problem });
            }
            let at = Named { line: 0, path };
            let (real, place) = self.place(at, LastLink::Follow)?;
            let asked = at.absolute(self.cwd.as_deref())?;
            // The answer depends on the content of the file.
            let judged = self.bounds.judge_read(&asked, &Path::new("/").join(&real));
            judged.map_err(|refused| refused_path(asked.clone(), refused))?;
            let found = match self.files.get(&real) {
                Some(file) => file.before.as_ref().map(|before| before.hash),
                None => match self.read(&place) {
                    Ok(FileRead::Regular(before, _)) => Some(before.hash),
                    Ok(FileRead::Absent) => None,
                    _ => {
                        let problem = "is not a regular file that can be read".into();
                        return Err(ApplyError::Param { param: param(), problem });
                    }
                },
            };
            let found = found.map_or(ABSENT.to_owned(), |hash| hex(&hash));
            if !found.eq_ignore_ascii_case(wanted) {
                conflicts.push(asked);
            }
        }
        if conflicts.is_empty() { Ok(()) } else { Err(ApplyError::Conflict(conflicts)) }
    }

    fn note(
        &mut self,
        path: &str,
        op: PatchOp,
        to: Option<&str>,
        before: Option<&[u8]>,
        after: Option<&[u8]>,
        (added, removed, fuzz): (u64, u64, u8),
    ) {
        let hash = |bytes: &[u8]| hex(&Sha256::digest(bytes).into());
        self.done.push(PatchFile {
            path: path.into(),
            op,
            to: to.map(String::from),
            before_sha256: before.map(hash),
            after_sha256: after.map(hash),
            added,
            removed,
            fuzz,
        });
        if self.diff_truncated {
            return;
        }
        let name = |side: &str, name: &str, bytes: Option<&[u8]>| match bytes {
            Some(_) => format!("{side}/{name}"),
            None => NO_FILE.to_owned(),
        };
        let target = to.unwrap_or(path);
        let text = unified_diff(
            &name("a", path, before),
            &name("b", target, after),
            before.unwrap_or_default(),
            after.unwrap_or_default(),
        );
        if to.is_some() {
            self.diff += &format!("rename from {path}\nrename to {target}\n");
        }
        self.diff += &text.text;
        if self.diff.len() > MAX_DIFF_BYTES {
            let end = last_char_end(&self.diff, MAX_DIFF_BYTES);
            let end = self.diff[..end].rfind('\n').map_or(end, |at| at + 1);
            self.diff.truncate(end);
            self.diff_truncated = true;
        }
    }

    fn finish(mut self, failed: Option<PatchFailure>) -> Verified {
        let mut changes = Vec::new();
        for real in self.order {
            let Some(file) = self.files.remove(&real) else { continue };
            let is_same = |before: &FileBefore, now: &[u8]| before.hash == <[u8; 32]>::from(Sha256::digest(now));
            let expect = file.before.as_ref().map_or(Before::Absent, |before| Before::Same(before.seen));
            let action = match (&file.before, file.now) {
                (None, None) => continue,
                (Some(before), Some(now)) if is_same(before, &now) && file.mode.is_none() => continue,
                (_, Some(now)) => {
                    let attributes = Attributes { mode: file.mode, ..Attributes::default() };
                    Action::Write { content: Content::Bytes(now), attributes }
                }
                (Some(_), None) => Action::Remove,
            };
            changes.push(Change { root: file.root, path: file.path, expect, action });
        }
        Verified {
            roots: self.bounds.roots,
            changes,
            files: self.done,
            diff: self.diff,
            diff_truncated: self.diff_truncated,
            failed,
        }
    }
}

enum FileRead {
    Absent,
    Regular(FileBefore, Vec<u8>),
    Link,
    Directory,
    Other,
    TooLarge,
}

fn invalid(error: toold_patch::PatchError, path: Option<&str>, content: &[u8]) -> ApplyError {
    let lines = Lines::split(content).lines;
    let nearest = error.nearest.iter().filter_map(|line| {
        let text = String::from_utf8_lossy(lines.get(line - 1)?.text).chars().take(MAX_NEAREST_CHARS).collect();
        Some(NearestPlace { line: *line, text })
    });
    let message = match path {
        Some(path) => format!("{path}: {}", error.message),
        None => error.message,
    };
    ApplyError::Invalid(PatchFailure {
        message,
        line: Some(error.line),
        path: path.map(String::from),
        nearest: nearest.collect(),
    })
}

fn hex(hash: &[u8; 32]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
