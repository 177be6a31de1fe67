//! Every case as data: the hook where it pauses, the process that is killed there, and the expected result. Pure.

use std::fmt;

/// The action that brings a process to the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drive {
    /// `exec`.
    Start,
    /// The program reads a line and exits.
    Exit,
    /// `kill`.
    Kill,
    /// The daemon is killed and another one starts.
    Recover,
}

/// The program whose code has the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Daemon,
    Shim,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    pub name: &'static str,
    pub drive: Drive,
    pub side: Side,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    Daemon,
    Zygote,
    /// The shim of the process; where it has none yet, the spare ones.
    Shim,
    Program,
    /// No process is left that could have recorded anything.
    DaemonAndShim,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdio {
    Pipe,
    Pty,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Zygote,
    Exec,
}

/// The moment at which the paused process continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// At once after the kill: no daemon runs, or the old one.
    AtOnce,
    /// When the next daemon serves requests already.
    WhenServed,
}

#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub point: Point,
    pub victim: Victim,
    pub stdio: Stdio,
    pub mode: Mode,
    pub release: Release,
}

/// The expected end of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By its own exit, with all of its output.
    Exited,
    /// By the client's kill.
    Killed,
    /// By the test's SIGKILL.
    Signaled,
    Lost,
}

const fn point(name: &'static str, drive: Drive, side: Side) -> Point {
    Point { name, drive, side }
}

const POINTS: &[Point] = &[
    point("spawn.grouped", Drive::Start, Side::Daemon),
    point("spawn.recorded", Drive::Start, Side::Daemon),
    point("spawn.before_request", Drive::Start, Side::Daemon),
    point("spawn.requested", Drive::Start, Side::Daemon),
    point("shim.before_launch", Drive::Start, Side::Shim),
    point("spawn.opened", Drive::Start, Side::Shim),
    point("spawn.locked", Drive::Start, Side::Shim),
    point("spawn.launching", Drive::Start, Side::Shim),
    point("spawn.forked", Drive::Start, Side::Shim),
    point("spawn.running", Drive::Start, Side::Shim),
    point("spawn.told", Drive::Start, Side::Shim),
    point("output.read", Drive::Start, Side::Shim),
    point("output.appended", Drive::Start, Side::Shim),
    point("output.counted", Drive::Start, Side::Shim),
    point("exit.reaped", Drive::Exit, Side::Shim),
    point("exit.before_record", Drive::Exit, Side::Shim),
    point("exit.written", Drive::Exit, Side::Shim),
    point("exit.recorded", Drive::Exit, Side::Shim),
    point("exit.told", Drive::Exit, Side::Shim),
    point("exit.before_gone", Drive::Exit, Side::Shim),
    point("exit.gone", Drive::Exit, Side::Shim),
    point("kill.asked", Drive::Kill, Side::Shim),
    point("kill.listed", Drive::Kill, Side::Shim),
    point("kill.signalled", Drive::Kill, Side::Shim),
    point("kill.forced", Drive::Kill, Side::Shim),
    point("kill.before_report", Drive::Kill, Side::Shim),
    point("recovery.look", Drive::Recover, Side::Daemon),
    point("recovery.reach", Drive::Recover, Side::Daemon),
    point("recovery.hello", Drive::Recover, Side::Shim),
];

impl Point {
    /// A shim holds the record's lock.
    pub fn has_shim(&self) -> bool {
        !matches!(
            self.name,
            "spawn.grouped" | "spawn.recorded" | "spawn.before_request" | "shim.before_launch" | "spawn.opened"
        )
    }

    /// Only a start by the zygote reaches this point.
    fn only_zygote(&self) -> bool {
        matches!(self.name, "spawn.before_request" | "spawn.requested")
    }

    /// The shim has recorded that it is about to fork: a second start does not undo what happens from now on.
    pub fn has_started(&self) -> bool {
        self.has_shim() && self.name != "spawn.locked"
    }

    /// `exec` is answered although the shim pauses here.
    pub fn answered(&self) -> bool {
        self.drive != Drive::Start || self.name == "spawn.told" || self.name.starts_with("output.")
    }

    /// The exit is on disk.
    fn exit_recorded(&self) -> bool {
        matches!(
            self.name,
            "exit.written" | "exit.recorded" | "exit.told" | "exit.before_gone" | "exit.gone" | "kill.before_report"
        )
    }

    /// The program is running here, and can be killed by itself.
    fn has_program(&self) -> bool {
        match self.drive {
            Drive::Start => {
                matches!(self.name, "spawn.forked" | "spawn.running" | "spawn.told") || self.name.starts_with("output.")
            }
            Drive::Exit => false,
            Drive::Kill => self.name != "kill.before_report",
            Drive::Recover => true,
        }
    }
}

impl Case {
    pub fn end(&self) -> End {
        let asked = if self.point.drive == Drive::Kill { End::Killed } else { End::Exited };
        match self.victim {
            Victim::Daemon | Victim::Zygote => asked,
            // Killed before the shim had signalled it, it died by our signal and not by the kill.
            Victim::Program if matches!(self.point.name, "kill.asked" | "kill.listed") => End::Signaled,
            Victim::Program if self.point.drive == Drive::Kill => End::Killed,
            Victim::Program => End::Signaled,
            Victim::Shim | Victim::DaemonAndShim if self.point.exit_recorded() => asked,
            Victim::Shim | Victim::DaemonAndShim if self.point.has_started() => End::Lost,
            Victim::Shim | Victim::DaemonAndShim => asked,
        }
    }

    /// The allowed number of runs of the program.
    pub fn runs(&self) -> std::ops::RangeInclusive<usize> {
        let killed_early = matches!(self.victim, Victim::Shim | Victim::DaemonAndShim | Victim::Program);
        match self.point.name {
            "spawn.launching" if killed_early => 0..=0,
            // Killed while it started: it may not have reached its first line.
            "spawn.forked" | "spawn.running" | "spawn.told" if killed_early => 0..=1,
            // Everything else runs once, never twice.
            _ => 1..=1,
        }
    }

    pub fn daemon_dies(&self) -> bool {
        matches!(self.victim, Victim::Daemon | Victim::DaemonAndShim)
    }

    fn makes_sense(&self) -> bool {
        let shim_waits = self.point.side == Side::Shim && self.victim == Victim::Daemon;
        let sense = match self.victim {
            Victim::Daemon => true,
            Victim::Zygote => self.mode == Mode::Zygote,
            Victim::Shim => self.mode == Mode::Zygote || self.point.side == Side::Shim,
            Victim::Program => self.point.has_program(),
            Victim::DaemonAndShim => self.point.side == Side::Shim,
        };
        sense
            && (shim_waits || self.release == Release::AtOnce)
            && (self.mode == Mode::Zygote || !self.point.only_zygote())
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { point, victim, stdio, mode, release } = self;
        write!(f, "{} {victim:?} {stdio:?} {mode:?} {release:?}", point.name)
    }
}

/// The whole matrix.
pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    let victims = [Victim::Daemon, Victim::Zygote, Victim::Shim, Victim::Program, Victim::DaemonAndShim];
    for point in POINTS {
        for victim in victims {
            for stdio in [Stdio::Pipe, Stdio::Pty] {
                for mode in [Mode::Zygote, Mode::Exec] {
                    for release in [Release::AtOnce, Release::WhenServed] {
                        cases.push(Case { point: *point, victim, stdio, mode, release });
                    }
                }
            }
        }
    }
    cases.retain(Case::makes_sense);
    cases
}
