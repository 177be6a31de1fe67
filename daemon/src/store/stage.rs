//! The stage of a process: `procs/<id>/stage`. The job sees an overlay on each root, and everything that it changes there is in
//! an upper directory here. See `docs/stage.md`.

use super::remove_tree::remove_tree;
use crate::clock;
use rustix::time::{ClockId, clock_getres, clock_gettime};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use toold_format::fnv1a;

/// The part of a spec that only a staged process has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StageSpec {
    pub roots: Vec<StagedRoot>,
    /// The end of the stage. Not a part of the record: its own file has it.
    #[serde(skip)]
    pub end: StageEndCell,
}

impl StageSpec {
    /// Returns the paths of the roots for people and programs.
    pub fn shown_roots(&self) -> Vec<String> {
        self.roots.iter().map(|root| root.path.to_string_lossy().into_owned()).collect()
    }
}

/// A directory on which the job sees an overlay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedRoot {
    /// Absolute, without links.
    pub path: PathBuf,
    pub dev: u64,
    pub ino: u64,
}

/// The end of a stage. A clone belongs to another process, whose stage has not ended.
#[derive(Debug, Default)]
pub struct StageEndCell(AtomicU8);

impl Clone for StageEndCell {
    fn clone(&self) -> StageEndCell {
        StageEndCell::default()
    }
}

impl PartialEq for StageEndCell {
    fn eq(&self, _: &StageEndCell) -> bool {
        true
    }
}

/// The end of a stage, after which nothing is left of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageEnd {
    Committed,
    Discarded,
}

impl StageEndCell {
    pub fn get(&self) -> Option<StageEnd> {
        match self.0.load(Ordering::Acquire) {
            1 => Some(StageEnd::Committed),
            2 => Some(StageEnd::Discarded),
            _ => None,
        }
    }

    pub fn set(&self, end: StageEnd) {
        let number = match end {
            StageEnd::Committed => 1,
            StageEnd::Discarded => 2,
        };
        self.0.store(number, Ordering::Release);
    }
}

/// The moment after which a change below an overlay is one that the job may not have seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageStart {
    /// Nanoseconds since 1970.
    pub at_ns: i64,
    /// The difference between the wall clock and the time since the boot, which changes only if the clock is set.
    pub offset_ns: i64,
    pub boot: String,
}

/// The shortest time between two looks at the clock of file systems.
const MIN_LOOK_NS: i64 = 100_000;

impl StageStart {
    pub fn now() -> StageStart {
        let at_ns = now_ns(ClockId::Realtime);
        StageStart { at_ns, offset_ns: at_ns - now_ns(ClockId::Boottime), boot: boot() }
    }

    /// Returns the latest time of a change that the job has seen. A clock that was set back since then gives later changes an
    /// earlier time, so the limit moves back too.
    pub fn limit_ns(&self) -> i64 {
        let offset_ns = now_ns(ClockId::Realtime) - now_ns(ClockId::Boottime);
        // The clocks are read one after the other.
        const READ_NS: i64 = 1_000_000;
        let set_back = if self.boot == boot() { self.offset_ns - offset_ns } else { 0 };
        if set_back > READ_NS { self.at_ns - set_back } else { self.at_ns }
    }

    /// Returns the time after which to look again whether every later change of a file has a later time. None: it has. File
    /// systems read a clock that moves on in ticks of the kernel, and under load a tick comes late.
    pub fn until_distinct(&self) -> Option<Duration> {
        let (coarse_ns, now_ns) = (now_ns(ClockId::RealtimeCoarse), now_ns(ClockId::Realtime));
        // The limit allows for a clock that was set back.
        if coarse_ns > self.at_ns || now_ns < self.at_ns {
            return None;
        }
        let tick = clock_getres(ClockId::RealtimeCoarse);
        let tick_ns = tick.tv_sec * 1_000_000_000 + tick.tv_nsec;
        Some(Duration::from_nanos(
            (coarse_ns + tick_ns - now_ns).clamp(MIN_LOOK_NS, tick_ns.max(MIN_LOOK_NS)).cast_unsigned(),
        ))
    }
}

fn now_ns(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn boot() -> String {
    clock::boot_id().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The directory of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageDir(PathBuf);

/// A stage whose process is not recorded yet. It is removed unless it becomes that of a process.
#[derive(Debug)]
pub struct FreshStage {
    pub dir: StageDir,
    pub start: StageStart,
}

impl FreshStage {
    /// Makes a stage in a directory that only stages without a process are in.
    pub fn create(all: &Path, name: &str, roots: usize) -> io::Result<FreshStage> {
        std::fs::DirBuilder::new().mode(0o700).recursive(true).create(all)?;
        let dir = StageDir(all.join(name));
        match dir.create(roots) {
            Ok(start) => Ok(FreshStage { dir, start }),
            Err(e) => {
                let _ = remove_tree(&dir.0);
                Err(e)
            }
        }
    }

    /// Gives the stage to the process with this directory. An overlay does not notice that its layers move.
    pub fn give_to(mut self, process_dir: &Path) -> io::Result<StageStart> {
        let to = StageDir::of(process_dir);
        std::fs::rename(&self.dir.0, &to.0)?;
        self.dir = StageDir(PathBuf::new());
        Ok(self.start.clone())
    }
}

impl Drop for FreshStage {
    fn drop(&mut self) {
        if !self.dir.0.as_os_str().is_empty()
            && let Err(e) = remove_tree(&self.dir.0)
        {
            tracing::warn!(dir = %self.dir.0.display(), %e, "failed to remove a stage that no process has");
        }
    }
}

const START_FILE: &str = "start";
const END_FILE: &str = "end";

impl StageDir {
    /// Returns the stage of the process with this directory.
    pub fn of(process_dir: &Path) -> StageDir {
        StageDir(process_dir.join("stage"))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn upper(&self, root: usize) -> PathBuf {
        self.0.join(root.to_string()).join("upper")
    }

    pub fn work(&self, root: usize) -> PathBuf {
        self.0.join(root.to_string()).join("work")
    }

    /// Makes the directories for the overlays, and notes the start.
    pub fn create(&self, roots: usize) -> io::Result<StageStart> {
        let mut builder = std::fs::DirBuilder::new();
        builder.mode(0o700);
        builder.create(&self.0)?;
        for root in 0..roots {
            builder.create(self.0.join(root.to_string()))?;
            builder.create(self.upper(root))?;
            builder.create(self.work(root))?;
        }
        let start = StageStart::now();
        self.write(START_FILE, &start)?;
        Ok(start)
    }

    /// Returns the start. None: a power cut took it.
    pub fn start(&self) -> io::Result<Option<StageStart>> {
        self.read(START_FILE)
    }

    pub fn end(&self) -> io::Result<Option<StageEnd>> {
        self.read(END_FILE)
    }

    /// Records the end durably, then removes the directories of the overlays. After a crash in between, the next daemon removes
    /// them.
    pub fn finish(&self, roots: usize, end: StageEnd) -> io::Result<()> {
        self.write(END_FILE, &end)?;
        toold_shim::hooks::at("stage.ended");
        self.remove_layers(roots)
    }

    /// Removes the directories of the overlays.
    pub fn remove_layers(&self, roots: usize) -> io::Result<()> {
        (0..roots).try_for_each(|root| remove_tree(&self.0.join(root.to_string())))
    }

    /// Writes a small file whole and durably.
    pub fn write<T: Serialize>(&self, name: &str, value: &T) -> io::Result<()> {
        let (fresh, path) = (self.0.join(format!("{name}.new")), self.0.join(name));
        let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        let json = serde_json::to_string(value)?;
        file.write_all(format!("{:016x}\n{json}\n", fnv1a(json.as_bytes())).as_bytes())?;
        file.sync_data()?;
        std::fs::rename(&fresh, &path)?;
        File::open(&self.0)?.sync_all()
    }

    /// Reads a small file. None: it is not there.
    pub fn read<T: for<'de> Deserialize<'de>>(&self, name: &str) -> io::Result<Option<T>> {
        let opened =
            File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(self.0.join(name));
        let mut file = match opened {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let is_whole = |(sum, json): &(&str, &str)| *sum == format!("{:016x}", fnv1a(json.as_bytes()));
        let parts = text.strip_suffix('\n').and_then(|text| text.split_once('\n'));
        let damaged =
            || io::Error::new(io::ErrorKind::InvalidData, format!("stage/{name} does not match its checksum"));
        let (_, json) = parts.filter(is_whole).ok_or_else(damaged)?;
        Ok(Some(serde_json::from_str(json)?))
    }

    /// Removes a small file.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match std::fs::remove_file(self.0.join(name)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_moves_back_with_a_clock_that_was_set_back() {
        let start = StageStart::now();
        assert_eq!(start.limit_ns(), start.at_ns);
        let hour = 3_600_000_000_000;
        // The clock showed an hour more at the start than it would now.
        let set_back = StageStart { at_ns: start.at_ns + hour, offset_ns: start.offset_ns + hour, ..start.clone() };
        assert!((set_back.limit_ns() - start.at_ns).abs() < 1_000_000_000);
        let set_forward = StageStart { at_ns: start.at_ns - hour, offset_ns: start.offset_ns - hour, ..start.clone() };
        assert_eq!(set_forward.limit_ns(), set_forward.at_ns);
        let rebooted = StageStart { boot: "another".into(), ..set_back };
        assert_eq!(rebooted.limit_ns(), rebooted.at_ns);
    }

    #[test]
    fn a_stage_ends_once_and_leaves_only_its_end() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let stage = StageDir::of(dir.path());
        let start = stage.create(2).expect("writable");
        assert_eq!((stage.start().expect("readable"), stage.end().expect("readable")), (Some(start), None));
        std::fs::write(stage.upper(1).join("file"), "x").expect("writable");
        stage.finish(2, StageEnd::Committed).expect("writable");
        assert_eq!(stage.end().expect("readable"), Some(StageEnd::Committed));
        let mut left: Vec<_> =
            std::fs::read_dir(stage.path()).expect("listed").flatten().map(|e| e.file_name()).collect();
        left.sort();
        assert_eq!(left, ["end", "start"]);
    }

    #[test]
    fn the_small_files_of_a_stage_are_as_recorded_and_any_change_is_found() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let stage = StageDir::of(dir.path());
        stage.create(0).expect("writable");
        stage.write(END_FILE, &StageEnd::Discarded).expect("writable");
        let bytes = std::fs::read(stage.path().join(END_FILE)).expect("readable");
        assert_eq!(String::from_utf8_lossy(&bytes), "9b0545fc586999ce\n\"discarded\"\n");
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            for damaged in [&changed[..], &bytes[..at]] {
                std::fs::write(stage.path().join(END_FILE), damaged).expect("writable");
                assert!(stage.end().is_err(), "byte {at}");
            }
        }
    }

    #[test]
    fn a_clone_belongs_to_another_process() {
        let cell = StageEndCell::default();
        assert_eq!(cell.get(), None);
        cell.set(StageEnd::Discarded);
        assert_eq!((cell.get(), cell.clone().get()), (Some(StageEnd::Discarded), None));
    }
}
