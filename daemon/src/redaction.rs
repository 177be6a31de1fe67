//! Hides secrets in text that leaves for a reader which may be a model. The rules are read and compiled at their first use.

use crate::config::script::Redact;
use std::sync::OnceLock;
use toold_proto::script::RedactedRule;
use toold_redact::{KnownValues, RedactConfig, Redactor, RuleCount, RuleFile, SecretNames};

/// The layer of the redaction that could not be applied.
pub const KNOWN_VALUES: &str = "known_values";

/// The redactor of the daemon.
pub struct Redaction {
    config: Redact,
    redactor: OnceLock<Redactor>,
    names: OnceLock<SecretNames>,
}

impl Redaction {
    pub fn new(config: Redact) -> Redaction {
        Redaction { config, redactor: OnceLock::new(), names: OnceLock::new() }
    }

    pub fn is_enabled(&self) -> bool {
        self.config.enabled
    }

    /// Returns the redactor. Reads the files of the config at the first call.
    pub fn redactor(&self) -> &Redactor {
        self.redactor.get_or_init(|| {
            let extra_rules = self.config.rules.iter().filter_map(|path| read_rules(path)).collect();
            Redactor::new(RedactConfig { names: SecretNames::new(&self.config.names), extra_rules })
        })
    }

    fn names(&self) -> &SecretNames {
        self.names.get_or_init(|| SecretNames::new(&self.config.names))
    }

    /// Returns true if a variable of this name has a secret.
    pub fn is_secret_name(&self, name: &str) -> bool {
        self.names().is_secret(name)
    }

    /// Returns the values of variables, as `NAME=value`, whose names are those of secrets.
    pub fn known_values(&self, env: &[Vec<u8>]) -> KnownValues {
        let mut known = KnownValues::new();
        for variable in env {
            let Some(at) = variable.iter().position(|byte| *byte == b'=') else { continue };
            if let (Ok(name), Ok(value)) =
                (std::str::from_utf8(&variable[..at]), std::str::from_utf8(&variable[at + 1..]))
            {
                known.insert_env(self.names(), name, value);
            }
        }
        known
    }
}

/// Converts the counts for the wire.
pub fn counts(counts: Vec<RuleCount>) -> impl Iterator<Item = RedactedRule> {
    counts.into_iter().map(|found| RedactedRule { rule: found.rule, count: found.count })
}

/// Reads a file of rules. Returns its rules, without those that cannot be used.
fn read_rules(path: &str) -> Option<RuleFile> {
    match parse_rules(path) {
        Ok(file) => {
            for problem in &file.problems {
                tracing::warn!(
                    path,
                    rule = problem.rule,
                    reason = problem.reason,
                    "a rule of redact.rules is not used"
                );
            }
            Some(file)
        }
        Err(error) => {
            tracing::error!(path, error, "a file of redact.rules is not used");
            None
        }
    }
}

fn parse_rules(path: &str) -> Result<RuleFile, String> {
    std::fs::read_to_string(path).map_err(|e| e.to_string()).and_then(|text| RuleFile::parse(&text))
}

/// Returns the first file of `redact.rules` that cannot be used, with the reason. The daemon starts without such a file: it
/// may be back when it is read.
pub fn unusable_rules(config: &Redact) -> Option<String> {
    config.rules.iter().find_map(|path| {
        let error = parse_rules(path).err()?;
        Some(format!("redact.rules: {path}: {error}"))
    })
}
