//! `proc_kill`: ends whole trees; the receipt names survivors.

use crate::arguments::Arguments;
use crate::call::Call;
use crate::daemon_link::Failure;
use crate::reply::Reply;
use crate::view::{Process, one_line};
use serde_json::{Value, json};

pub fn run(mut args: Arguments<'_>, call: &mut Call<'_>) -> Result<Reply, Failure> {
    let (ids, signal) = (args.texts("ids"), args.text("signal"));
    args.finish().map_err(Failure::Arguments)?;
    let ids = ids.filter(|ids| !ids.is_empty()).ok_or_else(|| Failure::Arguments("ids: is missing".into()))?;
    let mut params = json!({ "ids": ids });
    if let Some(signal) = signal {
        params["signal"] = json!(signal);
    }
    let killed = call.link.call("kill", &params)?;
    let mut reply = Reply::default();
    for receipt in killed["results"].as_array().into_iter().flatten() {
        let id = receipt["id"].as_str().unwrap_or_default();
        let process = call.tail(id, 1)?;
        reply.stated.add(&process);
        reply.push(line(&process, receipt));
    }
    Ok(reply)
}

fn line(process: &Process, receipt: &Value) -> String {
    let sent: Vec<&str> = receipt["signals_sent"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let what = match receipt["status"].as_str() {
        Some("already_exited") => "had ended already".to_owned(),
        Some("starting") => "it has not started, and will not run".to_owned(),
        Some("survivors") => survivors(receipt),
        Some(_) | None => format!("{}, nothing of it is left", sent.join(", ")),
    };
    format!("{} {}, {what}", process.title(), process.state())
}

fn survivors(receipt: &Value) -> String {
    let name =
        |member: &Value| format!("pid {} {}", member["pid"], one_line(member["command"].as_str().unwrap_or("?")));
    let left: Vec<String> = receipt["survivors"].as_array().into_iter().flatten().map(name).collect();
    let note = receipt["note"].as_str().map(|note| format!(" ({})", one_line(note))).unwrap_or_default();
    format!("survivors: {}{note}", left.join("; "))
}
