//! Checks the parameters of an `exec` call that let a process wait for its turn.

use super::InvalidParam;
use crate::config::Config;
use crate::store::pending::PendingSpec;
use toold_proto::params::ExecParams;

/// The most processes that one waits for.
const MAX_AFTER: usize = 1024;

/// Returns the reasons to wait before the start, if the call has some.
pub fn spec(call: &ExecParams, config: &Config) -> Result<Option<Box<PendingSpec>>, InvalidParam> {
    if call.after.is_empty() && call.after_ok.is_some() {
        return Err(InvalidParam::new("after_ok", "is for `after`, which is not given"));
    }
    if call.after.len() > MAX_AFTER {
        return Err(InvalidParam::new("after", format!("must be at most {MAX_AFTER}, not {}", call.after.len())));
    }
    if let Some(queue) = &call.queue {
        check_queue_name("queue", queue, config.exec.max_name_bytes)?;
    }
    let waits = call.queue.is_some() || !call.after.is_empty();
    let has_own_env = !call.env.is_empty() || !call.env_base64.is_empty();
    Ok(waits.then(|| {
        Box::new(PendingSpec {
            queue: call.queue.clone(),
            after_ok: call.after_ok.unwrap_or(true),
            env_mode: (!has_own_env).then_some(call.env_mode),
            limits: call.limits.clone(),
            ..PendingSpec::default()
        })
    }))
}

/// Checks the name of a queue.
pub fn check_queue_name(param: &str, name: &str, max_len: u64) -> Result<(), InvalidParam> {
    if name.is_empty() || name.len() as u64 > max_len || name.starts_with('-') || !name.bytes().all(is_plain) {
        let message =
            format!("must be 1 to {max_len} letters, digits or . _ - : @ +, and not begin with -, not {name:?}");
        return Err(InvalidParam::new(param, message));
    }
    Ok(())
}

/// Returns true for a character of a name.
pub fn is_plain(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"._-:@+".contains(&b)
}
