//! `list`.

use super::context::Daemon;
use super::wire::{Peer, WriteJson};
use crate::clock::wall_ms;
use crate::disk::call_on_disk;
use crate::proc::Proc;
use crate::proc::listening_port::PortReader;
use crate::proc::state::State;
use crate::proc::{output, tree};
use crate::registry::{Selection, Selector};
use std::sync::Arc;
use toold_proto::fields::{FieldSet, OUTPUT};
use toold_proto::process::Usage;
use toold_proto::results::Listed;
use toold_proto::{ErrorKind, RpcError, params};

const DEFAULT_LIMIT: u64 = 200;
/// The bytes of a process with few labels and arguments: an answer that grows is copied each time.
const USUAL_ROW_LEN: usize = 1000;

/// The answer: written like `results::ListResult`, but each process is made when it is written, so that a thousand of them are
/// never in memory twice.
pub struct ListResponse {
    rows: Vec<ListRow>,
    /// The fields to write of each process. None: all.
    fields: Option<FieldSet>,
    total: u64,
    older: Option<u64>,
    /// The bytes of rows that the answer has room for. The oldest are left out.
    max_len: usize,
}

impl WriteJson for ListResponse {
    fn write_json(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        out.extend_from_slice(br#"{"processes":["#);
        if self.fields.is_none() {
            out.reserve((self.rows.len() * USUAL_ROW_LEN).min(self.max_len));
        }
        let start = out.len();
        let mut omitted = 0;
        for (n, row) in self.rows.iter().enumerate() {
            let before = out.len();
            if n > 0 {
                out.push(b',');
            }
            match &self.fields {
                None => row.write_json(out)?,
                Some(fields) => row.write_selected(fields, out)?,
            }
            if out.len() - start > self.max_len {
                out.truncate(before);
                omitted = self.rows.len() - n;
                break;
            }
        }
        out.extend_from_slice(format!(r#"],"total":{}"#, self.total).as_bytes());
        if omitted > 0 {
            out.extend_from_slice(format!(r#","omitted":{omitted}"#).as_bytes());
        }
        if let Some(older) = self.older {
            out.extend_from_slice(format!(r#","older":{older}"#).as_bytes());
        }
        out.push(b'}');
        Ok(())
    }
}

struct ListRow {
    proc: Arc<Proc>,
    state: State,
    /// None until it is read.
    preview: Option<Arc<str>>,
    usage: Option<Usage>,
    ports: Option<Vec<u16>>,
    now: u64,
}

impl WriteJson for ListRow {
    fn write_json(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        out.push(b'{');
        self.proc.listed_view(&self.state, self.now).write_fields(out)?;
        out.extend_from_slice(br#""preview":"#);
        serde_json::to_writer(&mut *out, self.preview.as_deref().unwrap_or_default())?;
        if let Some(usage) = &self.usage {
            out.extend_from_slice(br#","usage":"#);
            serde_json::to_writer(&mut *out, usage)?;
        }
        if let Some(ports) = &self.ports {
            out.extend_from_slice(br#","ports":"#);
            serde_json::to_writer(&mut *out, ports)?;
        }
        out.push(b'}');
        Ok(())
    }
}

impl ListRow {
    /// Writes the selected fields. A process in a list has no output but its preview.
    fn write_selected(&self, fields: &FieldSet, out: &mut Vec<u8>) -> serde_json::Result<()> {
        let process = self.proc.listed_view(&self.state, self.now);
        let preview = self.preview.as_deref().unwrap_or_default().to_owned();
        let listed = Listed { process, preview, usage: self.usage, ports: self.ports.clone() };
        fields.write_object(&listed, Some(&listed.preview), out)
    }

    /// Reads everything that needs no disk.
    fn read(proc: Arc<Proc>, ports: Option<&mut PortReader<'_>>, now: u64) -> ListRow {
        let state = proc.state();
        let preview = output::known_preview(&proc, &state);
        let is_alive = !state.is_final() && state.shim_pid > 0;
        // The program may have ended while its shim still records that: a tree without members uses nothing.
        let (usage, ports) = match ports.filter(|_| is_alive) {
            Some(reader) => {
                let (usage, members) = tree::usage_and_members(state.shim_pid);
                (usage.processes > 0).then(|| (usage, reader.ports(state.shim_pid, &members))).unzip()
            }
            None => (None, None),
        };
        ListRow { proc, state, preview, usage, ports, now }
    }

    fn read_preview(&mut self) {
        self.preview = Some(output::preview(&self.proc, &self.state));
    }
}

pub async fn list(call: params::ListParams, daemon: Arc<Daemon>, _: Arc<Peer>) -> Result<ListResponse, RpcError> {
    let fields = FieldSet::of::<Listed>(&call)?;
    let selects = |names: &[&str]| fields.as_ref().is_some_and(|fields| names.iter().any(|name| fields.contains(name)));
    let limit = call.limit.unwrap_or(DEFAULT_LIMIT);
    if limit == 0 {
        return Err(RpcError::param("limit", "must be at least 1"));
    }
    let now = wall_ms();
    // Half of what may wait unread, so that a list is possible while another answer waits.
    let max_len = (daemon.registry.config.max_outgoing_bytes / 2) as usize;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let with_usage = call.usage || selects(&["usage", "ports"]);
    let selector = Selector {
        task_id: call.task_id,
        session_key: call.session_key,
        label: call.label,
        name: call.name,
        status: call.status,
        reason: call.reason,
        stopped: call.stopped,
        failed: call.failed,
    };
    let Selection { procs, total, older } = daemon.registry.select(&selector, call.ended_within_ms, limit, now);
    let cache = daemon.ports.clone();
    let read = move || {
        let mut ports = with_usage.then(|| cache.read());
        procs.into_iter().map(|proc| ListRow::read(proc, ports.as_mut(), now)).collect()
    };
    let mut rows: Vec<ListRow> = if with_usage {
        // The usage needs a few files of /proc for every member of every tree: not on a thread that other calls wait for.
        tokio::task::spawn_blocking(read)
            .await
            .map_err(|e| RpcError::new(ErrorKind::Internal, format!("internal error while listing processes: {e}")))?
    } else {
        read()
    };
    let with_preview = fields.is_none() || selects(&["preview", OUTPUT]);
    if with_preview && rows.iter().any(|row| row.preview.is_none()) {
        let unread = rows.iter_mut().filter(|row| row.preview.is_none());
        call_on_disk(async { unread.for_each(ListRow::read_preview) }).await;
    }
    Ok(ListResponse { rows, fields, total, older, max_len })
}
