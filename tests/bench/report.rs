//! Figures with floors and targets: a line of JSON for each as soon as it is measured, and one table at the end.

use crate::sample::{max, median, min};
use crate::saved::Saved;
use serde_json::{Value, json};

/// Unit of a figure, which also decides whether more is better.
#[derive(Clone, Copy, PartialEq)]
pub enum Unit {
    Us,
    Ms,
    KiB,
    MiB,
    /// Events or jobs.
    PerSecond,
    MiBPerSecond,
    /// Context switches, which should not happen at all.
    SwitchesPerSecond,
    /// Of a core.
    Percent,
    /// Things that should not be there at all.
    Count,
}

impl Unit {
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Us => "µs",
            Unit::Ms => "ms",
            Unit::KiB => "KiB",
            Unit::MiB => "MiB",
            Unit::PerSecond | Unit::SwitchesPerSecond => "/s",
            Unit::MiBPerSecond => "MiB/s",
            Unit::Percent => "%",
            Unit::Count => "",
        }
    }

    pub fn more_is_better(self) -> bool {
        matches!(self, Unit::PerSecond | Unit::MiBPerSecond)
    }
}

/// Target of a figure.
#[derive(Clone, Copy)]
pub enum Target {
    /// At most this many times its floor.
    TimesFloor(f64),
    /// At least this part of its floor.
    PartOfFloor(f64),
    AtMost(f64),
    AtLeast(f64),
}

impl Target {
    fn held(self, value: f64, ratio: Option<f64>) -> bool {
        match self {
            Target::TimesFloor(most) => ratio.is_some_and(|ratio| ratio <= most),
            Target::PartOfFloor(least) => ratio.is_some_and(|ratio| ratio >= least),
            Target::AtMost(most) => value <= most,
            Target::AtLeast(least) => value >= least,
        }
    }

    fn text(self) -> String {
        match self {
            Target::TimesFloor(most) => format!("≤{most}× floor"),
            Target::PartOfFloor(least) => format!("≥{:.0}% of floor", least * 100.0),
            Target::AtMost(most) => format!("≤{most}"),
            Target::AtLeast(least) => format!("≥{least}"),
        }
    }
}

/// One figure: a value for each repetition, and for its floor as many.
pub struct Figure {
    pub name: String,
    pub unit: Unit,
    pub runs: Vec<f64>,
    floor: Option<(String, Vec<f64>)>,
    target: Option<Target>,
    note: String,
}

impl Figure {
    pub fn new(name: impl Into<String>, unit: Unit, runs: &[f64]) -> Figure {
        let name = name.into();
        assert!(!runs.is_empty(), "{name} was never measured");
        Figure { name, unit, runs: runs.to_vec(), floor: None, target: None, note: String::new() }
    }

    pub fn floor(mut self, name: impl Into<String>, runs: &[f64]) -> Figure {
        self.floor = Some((name.into(), runs.to_vec()));
        self
    }

    pub fn target(mut self, target: Target) -> Figure {
        self.target = Some(target);
        self
    }

    pub fn note(mut self, note: impl Into<String>) -> Figure {
        self.note = note.into();
        self
    }

    pub fn value(&self) -> f64 {
        median(&self.runs)
    }

    /// Returns the ratio to the floor of each repetition: a disturbance affects both sides of its ratio.
    pub fn ratios(&self) -> Option<Vec<f64>> {
        let (_, floor) = self.floor.as_ref()?;
        Some(self.runs.iter().zip(floor).map(|(ours, floor)| ours / floor).collect())
    }

    fn ratio(&self) -> Option<f64> {
        self.ratios().map(|all| median(&all))
    }

    fn held(&self) -> Option<bool> {
        Some(self.target?.held(self.value(), self.ratio()))
    }

    fn json(&self) -> Value {
        let mut line = json!({
            "name": self.name, "value": self.value(), "unit": self.unit.symbol(),
            "min": min(&self.runs), "max": max(&self.runs), "repetitions": self.runs.len(),
        });
        if let Some((name, runs)) = &self.floor {
            line["floor"] = json!({ "name": name, "value": median(runs), "min": min(runs), "max": max(runs) });
            let ratios = self.ratios().unwrap_or_default();
            line["ratio"] = json!({ "value": median(&ratios), "min": min(&ratios), "max": max(&ratios) });
        }
        if let Some(target) = self.target {
            line["target"] = json!(target.text());
            line["held"] = json!(self.held());
        }
        if !self.note.is_empty() {
            line["note"] = json!(self.note);
        }
        line
    }
}

#[derive(Default)]
pub struct Report {
    figures: Vec<Figure>,
    /// Names of figures that could not be measured here, and the reasons.
    skipped: Vec<(&'static str, String)>,
}

impl Report {
    pub fn add(&mut self, figure: Figure) {
        println!("{}", figure.json());
        self.figures.push(figure);
    }

    /// Reports a figure that cannot be measured on this machine.
    pub fn skip(&mut self, name: &'static str, why: &str) {
        println!("{}", json!({ "name": name, "skipped": why }));
        self.skipped.push((name, why.into()));
    }

    /// The figures as `--save` writes them.
    pub fn lines(&self) -> String {
        self.figures.iter().map(|figure| figure.json().to_string() + "\n").collect()
    }

    pub fn print(&self, against: Option<&Saved>) {
        let mut rows =
            vec![["figure", "value", "min..max", "floor", "value", "ratio", "target", "", "then"].map(String::from)];
        rows.extend(self.figures.iter().map(|figure| row(figure, against)));
        if against.is_none() {
            rows.iter_mut().for_each(|row| row[8].clear());
        }
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: [usize; 9] = std::array::from_fn(width);
        println!();
        for row in &rows {
            let cells = row.iter().enumerate().map(|(column, cell)| {
                let pad = " ".repeat(widths[column] - cell.chars().count());
                // Align text to the left, numbers to the right.
                if matches!(column, 0 | 3 | 6 | 7) { format!("{cell}{pad}") } else { format!("{pad}{cell}") }
            });
            println!("{}", cells.collect::<Vec<_>>().join("  ").trim_end());
        }
        println!();
        for figure in self.figures.iter().filter(|figure| !figure.note.is_empty()) {
            println!("{}: {}", figure.name, figure.note);
        }
        for (name, why) in &self.skipped {
            println!("{name}: skipped: {why}");
        }
        let missed: Vec<&str> =
            self.figures.iter().filter(|f| f.held() == Some(false)).map(|f| f.name.as_str()).collect();
        let held = self.figures.iter().filter(|f| f.held() == Some(true)).count();
        println!("\ntargets: {held} held, {} missed{}", missed.len(), listed(&missed));
        if let Some(saved) = against {
            let worse: Vec<&str> =
                self.figures.iter().filter(|f| saved.got_worse(f)).map(|f| f.name.as_str()).collect();
            println!("worse than the saved run by more than both spreads: {}{}", worse.len(), listed(&worse));
        }
    }
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) }
}

fn row(figure: &Figure, against: Option<&Saved>) -> [String; 9] {
    let unit = figure.unit.symbol();
    let spread = match figure.runs.len() {
        1 => String::new(),
        // More than one.
        _ => format!("{}..{}", short(min(&figure.runs)), short(max(&figure.runs))),
    };
    let (floor, floor_value) = match &figure.floor {
        Some((name, runs)) => (name.clone(), short(median(runs))),
        None => Default::default(),
    };
    let ratio = figure.ratio().map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
    let held = match figure.held() {
        None => "",
        Some(true) => "held",
        Some(false) => "MISSED",
    };
    let then = match against.and_then(|saved| saved.ratio(figure).map(|ratio| (saved, ratio))) {
        None => String::new(),
        Some((saved, ratio)) => format!("{ratio:.2}{}", if saved.got_worse(figure) { " worse" } else { "" }),
    };
    let target = figure.target.map(Target::text).unwrap_or_default();
    let value = format!("{} {unit:<5}", short(figure.value()));
    [figure.name.clone(), value, spread, floor, floor_value, ratio, target, held.into(), then]
}

/// Formats a value with at least three digits.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || size == 0.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        // Below ten.
        _ => format!("{value:.2}"),
    }
}
