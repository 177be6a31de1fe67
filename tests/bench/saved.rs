//! A saved run to compare with: the lines of JSON that a run prints.

use crate::report::Figure;
use crate::sample::{max, median, min};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;

/// Relative difference that is noise even if the repetitions agree.
const MIN_NOISE: f64 = 0.05;
/// The same for a figure that was measured once, whose variation is unknown.
const SINGLE_RUN_NOISE: f64 = 0.2;

pub struct Saved {
    figures: HashMap<String, SavedFigure>,
}

struct SavedFigure {
    value: Range,
    ratio: Option<Range>,
}

/// Median, minimum and maximum of the repetitions.
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

    /// Returns true if it is worse than `saved` by more than either of them varies.
    fn is_worse(&self, saved: &Range, more_is_better: bool, min_noise: f64) -> bool {
        let sign = if more_is_better { -1.0 } else { 1.0 };
        let noise = (self.max - self.min).max(saved.max - saved.min).max(min_noise * saved.value.abs());
        (self.value - saved.value) * sign > noise
    }
}

impl Saved {
    pub fn read(path: &Path) -> Result<Saved, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("read {}: {e}", path.display()))?;
        let mut figures = HashMap::new();
        for line in text.lines() {
            let (name, saved) = parsed(line).ok_or_else(|| format!("{}: not a figure: {line}", path.display()))?;
            figures.insert(name, saved);
        }
        Ok(Saved { figures })
    }

    /// Returns the ratio of the value now to the saved value.
    pub fn ratio(&self, now: &Figure) -> Option<f64> {
        self.figures.get(&now.name).map(|saved| now.value() / saved.value.value).filter(|ratio| ratio.is_finite())
    }

    /// Returns true if a figure is worse by more than the repetitions of either run differ, also relative to the floor: otherwise
    /// the machine got slower, and not toold.
    pub fn got_worse(&self, now: &Figure) -> bool {
        let Some(saved) = self.figures.get(&now.name) else { return false };
        let (better, min_noise) =
            (now.unit.more_is_better(), if now.runs.len() == 1 { SINGLE_RUN_NOISE } else { MIN_NOISE });
        let beside_floor = match (now.ratios(), &saved.ratio) {
            (Some(now), Some(saved)) => Range::of(&now).is_worse(saved, better, min_noise),
            // Without a floor the value alone decides.
            _ => true,
        };
        Range::of(&now.runs).is_worse(&saved.value, better, min_noise) && beside_floor
    }
}

fn parsed(line: &str) -> Option<(String, SavedFigure)> {
    let figure: Value = serde_json::from_str(line).ok()?;
    let saved = SavedFigure { value: Range::parsed(&figure)?, ratio: Range::parsed(&figure["ratio"]) };
    Some((figure["name"].as_str()?.into(), saved))
}
