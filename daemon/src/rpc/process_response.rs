//! The answers of methods that return processes: with all fields, or with those that the call selects.

use super::wire::{Receipt, WriteJson};
use crate::disk::call_on_disk;
use crate::proc::{Proc, output};
use serde::Serialize;
use std::sync::Arc;
use toold_proto::fields::{FieldSet, OUTPUT, ProcessFields, WriteSelected};

/// A result, the fields to write of each process in it, and the effect of its delivery.
pub struct ProcessResponse<T> {
    pub result: T,
    /// None: all fields.
    pub fields: Option<FieldSet>,
    pub receipt: Option<Receipt>,
}

impl<T: Serialize + WriteSelected> WriteJson for ProcessResponse<T> {
    fn write_json(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        match &self.fields {
            None => serde_json::to_writer(out, &self.result),
            Some(fields) => self.result.write_with(fields, out),
        }
    }

    fn receipt(&self) -> Option<Receipt> {
        self.receipt.clone()
    }
}

/// A process without output of its own: the preview is written in its place if the call selects `output`.
pub struct PreviewedResponse<T> {
    result: T,
    /// None: all fields.
    fields: Option<FieldSet>,
    preview: Option<Arc<str>>,
}

impl<T> PreviewedResponse<T> {
    /// Reads the preview if it is selected.
    pub async fn new(result: T, fields: Option<FieldSet>, proc: &Proc) -> PreviewedResponse<T> {
        let preview = match &fields {
            Some(fields) if fields.contains(OUTPUT) => {
                Some(call_on_disk(async { output::preview(proc, &proc.state()) }).await)
            }
            Some(_) | None => None,
        };
        PreviewedResponse { result, fields, preview }
    }
}

impl<T: Serialize + ProcessFields> WriteJson for PreviewedResponse<T> {
    fn write_json(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        match &self.fields {
            None => serde_json::to_writer(out, &self.result),
            Some(fields) => fields.write_object(&self.result, self.preview.as_deref(), out),
        }
    }
}
