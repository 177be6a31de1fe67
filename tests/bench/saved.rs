//! A run that was saved, to compare with: the same lines of JSON that a run prints.

use crate::report::Figure;
use crate::sample::{least, most};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;

/// What a figure may differ by though its repetitions agree, or though there was only one.
const ALWAYS: f64 = 0.03;

pub struct Saved {
    figures: HashMap<String, Then>,
}

struct Then {
    value: f64,
    spread: f64,
    ratio: Option<f64>,
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
        self.figures.get(&now.name).map(|then| now.value() / then.value).filter(|ratio| ratio.is_finite())
    }

    /// Worse by more than either run's repetitions differ among themselves, and also beside the floor: otherwise the
    /// machine got slower, and not we.
    pub fn got_worse(&self, now: &Figure) -> bool {
        let Some(then) = self.figures.get(&now.name) else { return false };
        let sign = if now.unit.more_is_better() { -1.0 } else { 1.0 };
        let noise = then.spread.max(most(&now.runs) - least(&now.runs)).max(ALWAYS * then.value.abs());
        let beside_floor = match (now.ratio(), then.ratio) {
            (Some(now), Some(then)) => (now - then) * sign > ALWAYS * then,
            // Without a floor the value alone decides.
            _ => true,
        };
        (now.value() - then.value) * sign > noise && beside_floor
    }
}

fn parsed(line: &str) -> Option<(String, Then)> {
    let figure: Value = serde_json::from_str(line).ok()?;
    let spread = figure["max"].as_f64()? - figure["min"].as_f64()?;
    let then = Then { value: figure["value"].as_f64()?, spread, ratio: figure["ratio"].as_f64() };
    Some((figure["name"].as_str()?.into(), then))
}
