//! The results of a search over all logs.

/// The results that are kept.
pub const MAX_HITS: usize = 2_000;

/// One line of a log that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    pub id: String,
    pub name: String,
    /// From 0.
    pub line: u64,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GrepView {
    pub pattern: String,
    pub hits: Vec<Hit>,
    pub cursor: usize,
    pub top: usize,
    /// Calls that are not answered yet.
    pub pending: usize,
    /// There are more than are shown.
    pub cut: bool,
    pub failure: Option<String>,
}

impl GrepView {
    pub fn new(pattern: &str) -> GrepView {
        GrepView { pattern: pattern.into(), ..GrepView::default() }
    }

    pub fn add(&mut self, hits: impl IntoIterator<Item = Hit>) {
        self.hits.extend(hits);
        self.cut |= self.hits.len() > MAX_HITS;
        self.hits.truncate(MAX_HITS);
    }

    pub fn step(&mut self, by: isize, height: usize) {
        self.cursor = self.cursor.saturating_add_signed(by).min(self.hits.len().saturating_sub(1));
        self.top = self.top.clamp((self.cursor + 1).saturating_sub(height.max(1)), self.cursor);
    }
}
