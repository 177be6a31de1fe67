//! The trailer of results: what happened to the session's processes since the last one. Pulled for the one consumer of the
//! session, and acknowledged once the client has read the text.

use crate::daemon_link::{Cancel, DaemonAddress, DaemonLink, Failure};
use crate::output::{Mark, Output};
use crate::reply::Stated;
use crate::sys;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use toold_client::agent_events::{self, AgentEvent, DeliveryLock, Subject, Unseen};
use toold_proto::event::EventBody;

/// The time that another carrier of the session may take to deliver. Then its events are its own.
const LOCK_PATIENCE: Duration = Duration::from_millis(100);
/// The time that the daemon may take to answer.
const PULL_TIMEOUT: Duration = Duration::from_secs(10);
/// The intervals of looks at what the client has read: the kernel has no event for it.
const READ_CHECK: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(50));

/// The carrier of events to the client of this server.
pub struct Carrier {
    sessions: Mutex<BTreeMap<String, Delivery>>,
    changed: Condvar,
}

/// The events of one session that are on their way.
#[derive(Default)]
struct Delivery {
    /// Keeps other carriers from reporting the same, until everything is acknowledged.
    lock: Option<DeliveryLock>,
    /// Events up to this number were written.
    delivered: u64,
    known_exits: BTreeSet<String>,
    known_questions: BTreeMap<String, u64>,
    written: Vec<Written>,
    /// Results that are being acknowledged.
    acknowledging: usize,
}

/// A result that was written, with what it reported.
struct Written {
    mark: Mark,
    seq: Option<u64>,
    exits: Vec<String>,
}

/// A trailer that is to be written now. No other result is written before it.
pub struct Trailer<'a> {
    sessions: MutexGuard<'a, BTreeMap<String, Delivery>>,
    carrier: &'a Carrier,
    session: &'a str,
    seq: Option<u64>,
    /// Ends that this result states and no one before.
    exits: Vec<String>,
    pub line: Option<String>,
}

impl Carrier {
    pub fn new() -> Carrier {
        Carrier { sessions: Mutex::default(), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Delivery>> {
        self.sessions.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Pulls what is unseen. Without a daemon, or while another carrier delivers, there is nothing to report.
    pub fn trailer<'a>(
        &'a self,
        link: &mut DaemonLink<'_>,
        address: &DaemonAddress,
        session: &'a str,
        stated: Stated,
    ) -> Trailer<'a> {
        let mut sessions = self.lock();
        let delivery = sessions.entry(session.to_owned()).or_default();
        let exits = delivery.state(&stated);
        if delivery.lock.is_none() {
            delivery.lock = DeliveryLock::acquire(&address.socket, session, LOCK_PATIENCE);
        }
        let mut unseen = Unseen::default();
        if delivery.lock.is_some()
            && let Ok(client) = link.client()
            && client.set_timeout(PULL_TIMEOUT).is_ok()
            && let Ok(pulled) = agent_events::pull(client, session)
        {
            unseen = pulled;
        }
        unseen.events.retain(|event| delivery.is_news(event, &stated));
        let line = unseen.line(now_ms());
        Trailer { sessions, carrier: self, session, seq: unseen.last_seq, exits, line }
    }

    /// Returns the processes of the session whose ends the client does not know of, oldest first.
    pub fn unseen_exits(&self, link: &mut DaemonLink<'_>, session: &str) -> Vec<String> {
        let pulled = link.client().ok().and_then(|client| {
            client.set_timeout(PULL_TIMEOUT).ok()?;
            agent_events::pull(client, session).ok()
        });
        let Some(unseen) = pulled else { return Vec::new() };
        let mut sessions = self.lock();
        let delivery = sessions.entry(session.to_owned()).or_default();
        let news = unseen.events.iter().filter(|event| event.subject == Subject::Exit);
        let news =
            news.filter(|event| delivery.is_news(event, &Stated::default())).filter_map(|event| event.id.clone());
        let ending = unseen.ending.into_iter().filter(|id| !delivery.known_exits.contains(id));
        news.chain(ending).collect()
    }

    /// Acknowledges what the client has read, until the process ends.
    pub fn acknowledge_for_ever(&self, output: &Output, address: &DaemonAddress) {
        let cancel = Cancel::default();
        let mut delay = READ_CHECK.0;
        loop {
            let due = {
                let mut sessions = self.lock();
                while sessions.values().all(|delivery| delivery.written.is_empty()) {
                    delay = READ_CHECK.0;
                    sessions = self.changed.wait(sessions).unwrap_or_else(|poisoned| poisoned.into_inner());
                }
                take_read(&mut sessions, output)
            };
            if due.is_empty() {
                sys::pause(delay);
                delay = (delay * 2).min(READ_CHECK.1);
                continue;
            }
            let mut link = DaemonLink::without_start(address, &cancel);
            for (session, written) in &due {
                if let Err(failure) = acknowledge(&mut link, session, written) {
                    eprintln!("toolctl-mcp: cannot acknowledge events of {session}: {failure}");
                }
            }
            self.release(due.into_iter().map(|(session, _)| session));
        }
    }

    /// Lets other carriers deliver again to sessions of which nothing is on its way.
    fn release(&self, done: impl Iterator<Item = String>) {
        let mut sessions = self.lock();
        for session in done {
            let Some(delivery) = sessions.get_mut(&session) else { continue };
            delivery.acknowledging = delivery.acknowledging.saturating_sub(1);
            if !delivery.is_busy() {
                delivery.lock = None;
            }
        }
        self.changed.notify_all();
    }

    /// Reports whether something was written and is not acknowledged yet.
    pub fn is_pending(&self) -> bool {
        self.lock().values().any(Delivery::is_busy)
    }
}

impl Delivery {
    /// Notes what a result states. Returns the ends that were not stated before.
    fn state(&mut self, stated: &Stated) -> Vec<String> {
        self.known_questions.extend(stated.questions.iter().cloned());
        stated.exits.iter().filter(|id| self.known_exits.insert((*id).clone())).cloned().collect()
    }

    /// Reports whether something is on its way to the client.
    fn is_busy(&self) -> bool {
        !self.written.is_empty() || self.acknowledging > 0
    }

    /// Reports whether the client does not know of the event yet.
    fn is_news(&self, event: &AgentEvent, stated: &Stated) -> bool {
        let id = event.id.as_deref().unwrap_or_default();
        event.seq > self.delivered
            && match (&event.body, event.subject) {
                (EventBody::NeedsInput(question), _) => {
                    self.known_questions.get(id).is_none_or(|cursor| *cursor < question.cursor)
                }
                (EventBody::ApprovalRequested(asked), _) => !stated.approvals.contains(&asked.approval.to_string()),
                (EventBody::ApprovalDecided(decided), _) => !stated.approvals.contains(&decided.approval.to_string()),
                (_, Subject::Exit) => !self.known_exits.contains(id),
                (_, Subject::Question | Subject::Approval | Subject::Other) => true,
            }
    }
}

impl Trailer<'_> {
    /// Leaves the events for the next result: this one has no place for them.
    pub fn report_nothing(&mut self) {
        (self.seq, self.line) = (None, None);
    }

    /// Records that the result with this trailer was written.
    pub fn written(mut self, mark: Mark) {
        let Some(delivery) = self.sessions.get_mut(self.session) else { return };
        delivery.delivered = delivery.delivered.max(self.seq.unwrap_or(0));
        if self.seq.is_none() && self.exits.is_empty() {
            return;
        }
        delivery.written.push(Written { mark, seq: self.seq, exits: std::mem::take(&mut self.exits) });
        self.carrier.changed.notify_all();
    }
}

impl Drop for Trailer<'_> {
    /// Lets other carriers deliver, if nothing of this session is on its way.
    fn drop(&mut self) {
        if let Some(delivery) = self.sessions.get_mut(self.session).filter(|delivery| !delivery.is_busy()) {
            delivery.lock = None;
        }
    }
}

/// Takes out what the client has read.
fn take_read(sessions: &mut BTreeMap<String, Delivery>, output: &Output) -> Vec<(String, Written)> {
    let mut due = Vec::new();
    for (session, delivery) in sessions {
        let (read, unread) = std::mem::take(&mut delivery.written)
            .into_iter()
            .partition(|written: &Written| output.is_read(written.mark));
        delivery.written = unread;
        let read: Vec<Written> = read;
        delivery.acknowledging += read.len();
        due.extend(read.into_iter().map(|written| (session.clone(), written)));
    }
    due
}

fn acknowledge(link: &mut DaemonLink<'_>, session: &str, written: &Written) -> Result<(), Failure> {
    let unreachable = |error: toold_client::blocking::CallError| Failure::Unreachable(error.to_string());
    let client = link.client()?;
    client.set_timeout(Duration::from_secs(30)).map_err(unreachable)?;
    if let Some(seq) = written.seq {
        agent_events::acknowledge(client, session, seq).map_err(unreachable)?;
    }
    agent_events::acknowledge_exits(client, session, &written.exits).map_err(unreachable)
}

/// Returns milliseconds since 1970.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}

/// Starts the thread that acknowledges.
pub fn start_acknowledging(carrier: Arc<Carrier>, output: Arc<Output>, address: DaemonAddress) {
    std::thread::spawn(move || carrier.acknowledge_for_ever(&output, &address));
}
