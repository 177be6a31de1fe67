//! Replaces secrets in text that leaves for a reader which may be a model. Pure: the caller passes texts, values and the content
//! of rule files; nothing is read or written here.
//!
//! Three layers find secrets: known values ([`KnownValues`]), shapes by vendor prefix (`rules`, and files in gitleaks' format), and
//! environment dumps (`env_dump`). A secret becomes `[redacted:github-pat]`, and every replacement is counted by its rule.
//!
//! Duties of the caller:
//! - Strip terminal escape sequences first. A secret that a colour sequence interrupts matches no rule.
//! - Never cut text before it is redacted. [`Redactor::excerpt`] and [`Redactor::redact_part`] cut after it; they need
//!   [`OVERLAP_BYTES`] more than what is kept on every side where the text goes on.
//! - Redact only text for a reader: never arguments, files, results inside a script, or the log on disk.

mod edges;
mod env_dump;
mod excerpt;
mod foreign;
mod forms;
mod harmless;
mod known;
mod pem;
mod redactor;
mod rule_file;
mod rules;
mod rules_context;
mod shapes;
mod spans;
mod wiped;

pub use edges::Open;
pub use env_dump::SecretNames;
pub use excerpt::{Cut, Excerpt, ExcerptInput, window_bytes};
pub use known::KnownValues;
pub use redactor::{RedactConfig, Redacted, RedactedTexts, Redactor, RuleCount};
pub use rule_file::{RuleFile, RuleProblem};

/// The bytes around a part that are read and not kept. A secret of at most this length that crosses a cut is seen whole.
pub const OVERLAP_BYTES: usize = 4096;
