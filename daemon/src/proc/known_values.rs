//! The secrets that a process was given, while texts about it may have to be redacted: of scripts, and of processes whose
//! completion was asked for. They are in memory only; a later daemon gets them from the shim while that lives.

use super::Proc;
use crate::disk::on_disk;
use crate::redaction::KNOWN_VALUES;
use std::sync::Arc;
use toold_redact::KnownValues;

/// The variable with the token of a script.
pub const TOKEN_VAR: &str = "TOOLD_TOKEN";

impl Proc {
    /// Returns true if the redaction needs values of this process.
    fn has_secrets(&self) -> bool {
        let redaction = &self.sink.redaction;
        self.is_redacted() && self.spec.env_names.iter().any(|name| redaction.is_secret_name(name))
    }

    /// Returns true if the redaction needs values that outlive the process. The token of a script ends with it.
    fn has_lasting_secrets(&self) -> bool {
        let is_lasting = |name: &String| name != TOKEN_VAR && self.sink.redaction.is_secret_name(name);
        self.is_redacted() && self.spec.env_names.iter().any(is_lasting)
    }

    fn is_redacted(&self) -> bool {
        self.sink.redaction.is_enabled() && (self.spec.script.is_some() || self.spec.notify)
    }

    /// Keeps the secrets of a new process, if they are needed.
    pub fn keep_secrets(&self, env: &[Vec<u8>]) {
        if self.has_secrets() {
            self.set_known(self.sink.redaction.known_values(env));
        }
    }

    /// Asks the shim for the secrets of a process that an earlier daemon started.
    pub fn fetch_secrets(self: &Arc<Self>) {
        if !self.has_secrets() {
            return;
        }
        let proc = self.clone();
        tokio::spawn(on_disk(async move {
            if let Ok(Some(env)) = proc.read_env().await {
                proc.set_known(proc.sink.redaction.known_values(&env));
            }
        }));
    }

    /// Adds a secret that was typed into the process.
    pub fn add_secret(&self, value: &[u8]) {
        if let Ok(mut known) = self.known.lock() {
            let mut all = KnownValues::new();
            known.iter().for_each(|known| all.extend_from(known));
            all.insert("typed", value.trim_ascii_end());
            *known = Some(Arc::new(all));
        }
    }

    fn set_known(&self, values: KnownValues) {
        if let Ok(mut known) = self.known.lock() {
            *known = Some(Arc::new(values));
        }
    }

    /// Returns the secrets that are known, and the layers of the redaction that are missing.
    pub fn secrets(&self) -> (Arc<KnownValues>, Vec<String>) {
        let known = self.known.lock().ok().and_then(|known| known.clone());
        let is_missing = known.is_none() && self.has_lasting_secrets();
        (known.unwrap_or_default(), is_missing.then(|| KNOWN_VALUES.to_owned()).into_iter().collect())
    }

    /// Returns the secrets for a call that asks for redacted output: those that are kept, or those that the shim has.
    pub async fn secrets_for_reader(&self) -> Arc<KnownValues> {
        let kept = self.known.lock().ok().and_then(|known| known.clone());
        if let Some(kept) = kept {
            return kept;
        }
        match self.read_env().await {
            Ok(Some(env)) => Arc::new(self.sink.redaction.known_values(&env)),
            _ => Arc::default(),
        }
    }
}
