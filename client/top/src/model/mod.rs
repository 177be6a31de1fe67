//! The state of `top`: what is known of the daemon and its processes, and what the user looks at. No I/O and no clock.

pub mod arrangement;
pub mod event_line;
pub mod grep;
pub mod line_edit;
pub mod log_view;
pub mod row;

use arrangement::{ListLine, Sort};
use event_line::EventLine;
use grep::GrepView;
use line_edit::LineEdit;
use log_view::LogView;
use row::Row;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use toold_proto::process::Member;

/// The number of events that are kept for the strip.
pub const MAX_EVENTS: usize = 200;

/// The connection to the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reachability {
    Up,
    /// Since this time no process answers.
    Lost {
        since_ms: u64,
    },
}

/// The parts of the screen that keys go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pane {
    List,
    Log,
    Events,
}

/// The content of the pane below the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    Log,
    Tree,
}

/// A question that one key answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Confirm {
    Kill { ids: Vec<String>, text: String },
    Restart { ids: Vec<String>, text: String },
    Forget { ids: Vec<String>, text: String },
}

/// The current use of the keys.
#[derive(Debug, Clone, PartialEq)]
pub enum Mode {
    Normal,
    Filter(LineEdit),
    Search(LineEdit),
    GrepPattern(LineEdit),
    Answer {
        id: String,
        title: String,
        line: LineEdit,
        /// The typed text is not shown, and is kept out of events and logs.
        hidden: bool,
    },
    Confirm(Confirm),
    Help,
}

/// The tree of one process.
#[derive(Debug, Clone, PartialEq)]
pub struct TreeView {
    pub id: String,
    pub members: Vec<Member>,
    /// CPU times of the sample before, with its time.
    before: BTreeMap<i32, u64>,
    before_ms: u64,
    at_ms: u64,
}

impl TreeView {
    pub fn new(id: String, members: Vec<Member>, earlier: Option<&TreeView>, now_ms: u64) -> TreeView {
        let earlier = earlier.filter(|earlier| earlier.id == id);
        let before = earlier.map(|view| view.members.iter().map(|member| (member.pid, member.cpu_ms)).collect());
        let before_ms = earlier.map_or(now_ms, |view| view.at_ms);
        TreeView { id, members, before: before.unwrap_or_default(), before_ms, at_ms: now_ms }
    }

    /// Returns the percent of one CPU that a member used since the sample before. None: it was not there.
    pub fn cpu_percent(&self, member: &Member) -> Option<u64> {
        let used = member.cpu_ms.saturating_sub(*self.before.get(&member.pid)?);
        let passed = self.at_ms.checked_sub(self.before_ms).filter(|passed| *passed > 0)?;
        Some(used * 100 / passed)
    }
}

/// Facts about the daemon.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DaemonFacts {
    pub started_ms: Option<u64>,
    /// The newest event when it was asked.
    pub last_event: u64,
    /// Sessions with a live client. None: the daemon does not know.
    pub live_sessions: Option<BTreeSet<String>>,
}

/// Everything that a frame is drawn from.
pub struct State {
    pub columns: u16,
    pub lines: u16,
    pub now_ms: u64,
    /// Midnight in the local time zone, for "failed today".
    pub midnight_ms: u64,
    pub colours: bool,
    pub link: Reachability,
    pub daemon: DaemonFacts,
    pub rows: Vec<Row>,
    pub loaded: bool,
    /// The lines of the list, from the rows, the filter and the order.
    pub shown: Vec<ListLine>,
    /// The process under the cursor.
    pub selected: Option<String>,
    /// The process that a result of a search opened, in place of the one under the cursor.
    pub pinned: Option<String>,
    /// The process to select when it is listed.
    pub wanted: Option<String>,
    /// The first line of the list on the screen.
    pub list_top: usize,
    pub marked: BTreeSet<String>,
    pub filter: String,
    pub session: Option<String>,
    pub sort: Sort,
    pub by_owner: bool,
    pub pane: Pane,
    pub detail: Detail,
    /// The log takes the place of the list.
    pub zoomed: bool,
    pub log: Option<LogView>,
    pub tree: Option<TreeView>,
    pub grep: Option<GrepView>,
    pub events: VecDeque<EventLine>,
    pub last_seq: Option<u64>,
    /// Lines that the strip of events is scrolled back.
    pub events_back: usize,
    pub mode: Mode,
    /// A sentence for the user, and the time until which it is shown.
    pub notice: Option<(String, u64)>,
    pub timers: Timers,
}

/// Times at which something is due, and calls that are under way.
#[derive(Debug, Default)]
pub struct Timers {
    /// The next full list, after an event.
    pub list_at: Option<u64>,
    /// The time of the last list of any kind.
    pub listed_ms: u64,
    /// The CPU time that the last list cost us, in microseconds. The next one comes more than a hundred times later.
    pub cost_us: u64,
    /// The same for one frame.
    pub frame_us: u64,
    /// The time of the last frame.
    pub drawn_ms: u64,
    pub list_pending: bool,
    pub usage_pending: bool,
    pub inspect_pending: bool,
    /// The time of the last facts about the daemon.
    pub info_ms: u64,
    pub info_pending: bool,
    /// The next read of the log.
    pub log_at: Option<u64>,
    pub log_pending: bool,
    /// The daemon does not know one of the fields: it is asked for all.
    pub all_fields: bool,
    /// The number of the current log, so that answers of an earlier one are dropped.
    pub log_generation: u64,
    pub grep_generation: u64,
}

impl State {
    pub fn new(columns: u16, lines: u16, now_ms: u64) -> State {
        State {
            columns,
            lines,
            now_ms,
            midnight_ms: 0,
            colours: true,
            link: Reachability::Up,
            daemon: DaemonFacts::default(),
            rows: Vec::new(),
            loaded: false,
            shown: Vec::new(),
            selected: None,
            pinned: None,
            wanted: None,
            list_top: 0,
            marked: BTreeSet::new(),
            filter: String::new(),
            session: None,
            sort: Sort::State,
            by_owner: false,
            pane: Pane::List,
            detail: Detail::Log,
            zoomed: false,
            log: None,
            tree: None,
            grep: None,
            events: VecDeque::new(),
            last_seq: None,
            events_back: 0,
            mode: Mode::Normal,
            notice: None,
            timers: Timers::default(),
        }
    }

    pub fn row(&self, id: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.id == id)
    }

    /// Returns the process that keys act on.
    pub fn current(&self) -> Option<&String> {
        self.pinned.as_ref().or(self.selected.as_ref())
    }

    pub fn current_row(&self) -> Option<&Row> {
        self.row(self.current()?)
    }

    /// Returns the marked processes, else the selected one.
    pub fn targets(&self) -> Vec<&Row> {
        if self.marked.is_empty() {
            return self.current_row().into_iter().collect();
        }
        self.rows.iter().filter(|row| self.marked.contains(&row.id)).collect()
    }

    pub fn has_running(&self) -> bool {
        self.rows.iter().any(|row| row.usage.is_some() || !row.has_ended())
    }

    /// Returns true if no client of this session is connected, as far as the daemon knows.
    pub fn is_session_gone(&self, session: &str) -> bool {
        self.daemon.live_sessions.as_ref().is_some_and(|live| !live.contains(session))
    }

    /// Shows a sentence for some seconds.
    pub fn notify(&mut self, text: impl Into<String>) {
        const NOTICE_MS: u64 = 6_000;
        self.notice = Some((text.into(), self.now_ms + NOTICE_MS));
    }

    /// Computes the lines of the list again, and keeps the cursor on its process.
    pub fn arrange(&mut self) {
        let place = self.cursor_line();
        self.shown = arrangement::arrange(self);
        let is_there = |id: &String| self.shown.iter().any(|line| line.id() == Some(id));
        if self.selected.as_ref().is_some_and(is_there) {
            return;
        }
        // The process is gone from the list: the cursor stays where it was.
        let at = place.unwrap_or(0).min(self.shown.len().saturating_sub(1));
        let after = self.shown[at.min(self.shown.len())..].iter().find_map(ListLine::id);
        let before = || self.shown[..at.min(self.shown.len())].iter().rev().find_map(ListLine::id);
        self.selected = after.or_else(before).cloned();
    }

    /// Returns the line of the list that the cursor is on.
    pub fn cursor_line(&self) -> Option<usize> {
        let selected = self.selected.as_ref()?;
        self.shown.iter().position(|line| line.id() == Some(selected))
    }
}
