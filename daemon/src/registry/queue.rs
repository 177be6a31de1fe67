//! Decides which pending process starts next. Pure: states, time and settings are arguments. A slot is never counted: it is
//! taken by every process of the queue that was started and has not ended.

use std::collections::{BTreeMap, HashMap};

/// Slots of a queue that neither the config nor `queues.set` knows.
const DEFAULT_SLOTS: u64 = 1;

/// The settings of one queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSettings {
    pub slots: u64,
    pub paused: bool,
}

impl Default for QueueSettings {
    fn default() -> Self {
        QueueSettings { slots: DEFAULT_SLOTS, paused: false }
    }
}

/// The condition of a process that waits for more than a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// It still waits. With the time at which that may change by itself.
    Closed {
        until_ms: Option<u64>,
    },
    Open,
    /// A process that had to end well did not.
    Failed,
    /// It does not wait any more: another owner starts or ends it.
    Gone,
}

/// A process, as the decision needs it.
pub trait Job {
    /// The place in the order: unique, and larger for a later call.
    fn order(&self) -> Order;
    fn queue(&self) -> Option<&str>;
    fn has_ended(&self) -> bool;
}

pub type Order = (u64, u64);

/// The outcome of a look at all processes that wait for more than a slot.
#[derive(Debug, PartialEq, Eq)]
pub struct Opened<J> {
    /// Those whose dependency failed. They are not waiting any more.
    pub failed: Vec<J>,
    /// The earliest time at which another look is due.
    pub next_ms: Option<u64>,
}

/// The pending processes and the queues.
#[derive(Debug)]
pub struct Queues<J> {
    pub settings: BTreeMap<String, QueueSettings>,
    /// Those that wait for more than a slot.
    blocked: BTreeMap<Order, J>,
    /// Those that wait for a slot of their queue, or without a queue only for `max_running`.
    ready: HashMap<Option<String>, BTreeMap<Order, J>>,
    /// Those that were started. Each queue has at most its slots, and those of a larger setting before.
    started: HashMap<String, Vec<J>>,
}

impl<J> Default for Queues<J> {
    fn default() -> Self {
        let settings = BTreeMap::new();
        Queues { settings, blocked: BTreeMap::new(), ready: HashMap::new(), started: HashMap::new() }
    }
}

impl<J: Job + Clone> Queues<J> {
    /// Adds a process that waits. `blocked`: for more than a slot.
    pub fn add(&mut self, job: J, blocked: bool) {
        if blocked {
            self.blocked.insert(job.order(), job);
        } else {
            self.ready.entry(job.queue().map(Into::into)).or_default().insert(job.order(), job);
        }
    }

    /// Adds a process that was started from its queue before.
    pub fn add_started(&mut self, job: J) {
        if let Some(queue) = job.queue() {
            self.started.entry(queue.into()).or_default().push(job);
        }
    }

    /// Removes a process that does not wait any more. Returns false if it was not known.
    pub fn remove(&mut self, job: &J) -> bool {
        let order = job.order();
        let key = job.queue().map(String::from);
        let mut found = self.blocked.remove(&order).is_some();
        if let Some(ready) = self.ready.get_mut(&key) {
            found |= ready.remove(&order).is_some();
            if ready.is_empty() {
                self.ready.remove(&key);
            }
        }
        found
    }

    /// Returns the number of processes that wait.
    pub fn waiting(&self) -> usize {
        self.blocked.len() + self.ready.values().map(BTreeMap::len).sum::<usize>()
    }

    /// Looks at every process that waits for more than a slot.
    pub fn open(&mut self, mut gate: impl FnMut(&J) -> Gate) -> Opened<J> {
        let mut opened = Opened { failed: Vec::new(), next_ms: None };
        let mut free = Vec::new();
        self.blocked.retain(|_, job| match gate(job) {
            Gate::Closed { until_ms } => {
                opened.next_ms = [opened.next_ms, until_ms].into_iter().flatten().min();
                true
            }
            Gate::Open => {
                free.push(job.clone());
                false
            }
            Gate::Failed => {
                opened.failed.push(job.clone());
                false
            }
            Gate::Gone => false,
        });
        free.into_iter().for_each(|job| self.add(job, false));
        opened
    }

    /// Returns the process that starts next: the oldest one whose queue has a free slot.
    pub fn next(&mut self) -> Option<J> {
        let (settings, started) = (&self.settings, &mut self.started);
        let free = self.ready.iter().filter(|(queue, _)| {
            let Some(queue) = queue else { return true };
            let QueueSettings { slots, paused } = settings.get(queue).copied().unwrap_or_default();
            let running = started.get_mut(queue).map_or(0, |jobs| {
                jobs.retain(|job| !job.has_ended());
                jobs.len()
            });
            !paused && (running as u64) < slots
        });
        free.filter_map(|(_, jobs)| jobs.first_key_value()).min_by_key(|(order, _)| **order).map(|(_, job)| job.clone())
    }

    /// Notes that a process takes a slot from now on.
    pub fn start(&mut self, job: &J) {
        self.remove(job);
        self.add_started(job.clone());
    }

    /// Lists every queue with the number of its processes that run and wait.
    pub fn list(&mut self) -> BTreeMap<String, (QueueSettings, u64, u64)> {
        let mut all: BTreeMap<String, (QueueSettings, u64, u64)> =
            self.settings.iter().map(|(name, settings)| (name.clone(), (*settings, 0, 0))).collect();
        self.started.retain(|name, jobs| {
            jobs.retain(|job| !job.has_ended());
            if !jobs.is_empty() {
                all.entry(name.clone()).or_default().1 = jobs.len() as u64;
            }
            !jobs.is_empty()
        });
        let ready = self.ready.values().flat_map(BTreeMap::values);
        for queue in ready.chain(self.blocked.values()).filter_map(Job::queue) {
            all.entry(queue.into()).or_default().2 += 1;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    #[derive(Debug, Clone, PartialEq, Eq)]
    struct Fake(u64, Option<&'static str>, Rc<Cell<bool>>);

    impl Job for Fake {
        fn order(&self) -> Order {
            (self.0, 0)
        }
        fn queue(&self) -> Option<&str> {
            self.1
        }
        fn has_ended(&self) -> bool {
            self.2.get()
        }
    }

    fn fake(order: u64, queue: &'static str) -> Fake {
        Fake(order, Some(queue), Rc::default())
    }

    fn start_all(queues: &mut Queues<Fake>) -> Vec<u64> {
        let mut started = Vec::new();
        while let Some(job) = queues.next() {
            queues.start(&job);
            started.push(job.0);
        }
        started
    }

    #[test]
    fn processes_start_in_order_and_never_more_than_there_are_slots() {
        let mut queues = Queues::default();
        queues.settings.insert("b".into(), QueueSettings { slots: 2, paused: false });
        let jobs: Vec<Fake> = [(5, "a"), (1, "b"), (4, "b"), (2, "a"), (3, "b")].map(|(n, q)| fake(n, q)).into();
        jobs.iter().for_each(|job| queues.add(job.clone(), false));
        assert_eq!(start_all(&mut queues), [1, 2, 3], "one slot in a, two in b");
        jobs[1].2.set(true);
        assert_eq!(start_all(&mut queues), [4]);
        assert_eq!(start_all(&mut queues), Vec::<u64>::new(), "a process that waits takes no slot");
        queues.settings.insert("a".into(), QueueSettings { slots: 9, paused: true });
        assert_eq!(start_all(&mut queues), Vec::<u64>::new(), "a paused queue starts nothing");
        queues.settings.insert("a".into(), QueueSettings { slots: 9, paused: false });
        assert_eq!(start_all(&mut queues), [5]);
        assert_eq!(queues.waiting(), 0);
    }

    #[test]
    fn a_smaller_number_of_slots_ends_nothing_and_starts_nothing_until_enough_have_ended() {
        let mut queues = Queues::default();
        queues.settings.insert("q".into(), QueueSettings { slots: 2, paused: false });
        let jobs: Vec<Fake> = (1..=4).map(|n| fake(n, "q")).collect();
        jobs.iter().for_each(|job| queues.add(job.clone(), false));
        assert_eq!(start_all(&mut queues), [1, 2]);
        queues.settings.insert("q".into(), QueueSettings { slots: 1, paused: false });
        jobs[0].2.set(true);
        assert_eq!(start_all(&mut queues), Vec::<u64>::new());
        jobs[1].2.set(true);
        assert_eq!(start_all(&mut queues), [3]);
    }

    #[test]
    fn one_that_waits_for_another_holds_up_no_other_and_keeps_its_place() {
        let mut queues = Queues::default();
        let (first, second) = (fake(1, "q"), fake(2, "q"));
        queues.add(first.clone(), true);
        queues.add(second.clone(), false);
        let closed = queues.open(|_| Gate::Closed { until_ms: Some(7) });
        assert_eq!(closed, Opened { failed: vec![], next_ms: Some(7) });
        queues.add(fake(3, "q"), false);
        assert_eq!(start_all(&mut queues), [2]);
        queues.open(|_| Gate::Open);
        second.2.set(true);
        assert_eq!(start_all(&mut queues), [1], "before 3, which came later");
        queues.add(fake(4, "q"), true);
        assert_eq!(queues.open(|_| Gate::Failed).failed.len(), 1);
        queues.add(fake(5, "q"), true);
        queues.open(|_| Gate::Gone);
        assert_eq!(queues.list()["q"], (QueueSettings::default(), 1, 1));
        assert!(queues.remove(&fake(3, "q")) && !queues.remove(&fake(3, "q")));
    }
}
