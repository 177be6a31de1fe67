//! Values of repetitions, and their summary.

use std::time::Instant;

/// The median and the 99th percentile of each repetition.
#[derive(Default)]
pub struct Series {
    pub p50: Vec<f64>,
    pub p99: Vec<f64>,
}

impl Series {
    /// Adds one repetition of `count` measurements.
    pub fn take(&mut self, count: usize, mut measure: impl FnMut() -> f64) {
        self.add((0..count).map(|_| measure()).collect());
    }

    pub fn add(&mut self, mut all: Vec<f64>) {
        all.sort_by(f64::total_cmp);
        self.p50.push(all[all.len() / 2]);
        self.p99.push(all[all.len() * 99 / 100]);
    }
}

pub fn median(all: &[f64]) -> f64 {
    let mut all = all.to_vec();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

pub fn min(all: &[f64]) -> f64 {
    all.iter().copied().fold(f64::INFINITY, f64::min)
}

pub fn max(all: &[f64]) -> f64 {
    all.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// Measures `work` in milliseconds.
pub fn ms(work: impl FnOnce()) -> f64 {
    seconds(work) * 1e3
}

/// Measures `work` in microseconds.
pub fn us(work: impl FnOnce()) -> f64 {
    seconds(work) * 1e6
}

pub fn seconds(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_secs_f64()
}
