//! A run that was saved, to compare with: the same lines of JSON that a run prints.

use crate::report::Figure;
use crate::sample::{max, median, min};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;

/// What a figure may differ by though its repetitions agree.
const MIN_NOISE: f64 = 0.05;
/// The same for a figure that was taken once, and cannot tell how much it varies.
const SINGLE_RUN_NOISE: f64 = 0.2;

pub struct Saved {
    figures: HashMap<String, SavedFigure>,
}

struct SavedFigure {
    value: Range,
    ratio: Option<Range>,
}

/// A median, and what it is the median of.
struct Range {
    value: f64,
    min: f64,
    max: f64,
}

impl Range {
    fn of(runs: &[f64]) -> Range {
        Range { value: median(runs), min: min(runs), max: max(runs) }
    }

    fn parsed(json: &Value) -> Option<Range> {
        Some(Range { value: json["value"].as_f64()?, min: json["min"].as_f64()?, max: json["max"].as_f64()? })
    }

    /// Whether it is worse than `then` by more than either of them varies.
    fn is_worse(&self, then: &Range, more_is_better: bool, least: f64) -> bool {
        let sign = if more_is_better { -1.0 } else { 1.0 };
        let noise = (self.max - self.min).max(then.max - then.min).max(least * then.value.abs());
        (self.value - then.value) * sign > noise
    }
}

impl Saved {
    pub fn read(path: &Path) -> Result<Saved, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("read {}: {e}", path.display()))?;
        let mut figures = HashMap::new();
        for line in text.lines() {
            let (name, then) = parsed(line).ok_or_else(|| format!("{}: not a figure: {line}", path.display()))?;
            figures.insert(name, then);
        }
        Ok(Saved { figures })
    }

    /// The value now, in times of the value then.
    pub fn ratio(&self, now: &Figure) -> Option<f64> {
        self.figures.get(&now.name).map(|then| now.value() / then.value.value).filter(|ratio| ratio.is_finite())
    }

    /// Worse by more than either run's repetitions differ among themselves, and also beside the floor: otherwise the
    /// machine got slower, and not we.
    pub fn got_worse(&self, now: &Figure) -> bool {
        let Some(then) = self.figures.get(&now.name) else { return false };
        let (better, least) =
            (now.unit.more_is_better(), if now.runs.len() == 1 { SINGLE_RUN_NOISE } else { MIN_NOISE });
        let beside_floor = match (now.ratios(), &then.ratio) {
            (Some(now), Some(then)) => Range::of(&now).is_worse(then, better, least),
            // Without a floor the value alone decides.
            _ => true,
        };
        Range::of(&now.runs).is_worse(&then.value, better, least) && beside_floor
    }
}

fn parsed(line: &str) -> Option<(String, SavedFigure)> {
    let figure: Value = serde_json::from_str(line).ok()?;
    let then = SavedFigure { value: Range::parsed(&figure)?, ratio: Range::parsed(&figure["ratio"]) };
    Some((figure["name"].as_str()?.into(), then))
}
