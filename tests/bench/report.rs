//! Figures with their floors or targets, as JSON lines and as one table.

use serde_json::json;
use std::time::{Duration, Instant};

#[derive(Default)]
pub struct Report {
    rows: Vec<Row>,
}

struct Row {
    what: String,
    value: f64,
    unit: &'static str,
    beside: String,
}

impl Report {
    /// One figure, and what it stands beside.
    pub fn add(&mut self, what: impl Into<String>, value: f64, unit: &'static str, beside: impl Into<String>) {
        let (what, beside) = (what.into(), beside.into());
        println!("{}", json!({ "what": what, "value": value, "unit": unit, "beside": beside }));
        self.rows.push(Row { what, value, unit, beside });
    }

    pub fn print(&self) {
        println!();
        for Row { what, value, unit, beside } in &self.rows {
            println!("{what:<52} {value:>12.3} {unit:<9} {beside}");
        }
    }
}

/// The median.
pub fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// How long something takes, in milliseconds.
pub fn ms(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    in_ms(began.elapsed())
}

pub fn in_ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
