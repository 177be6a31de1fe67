//! The extraction of a page in a process of its own, with bounds on memory and time: a hostile page ends that process, and
//! costs one error in the answer. The environment of that process is empty, so no key is in it.

use crate::page::{self, Effort, PageSource, PageText};
use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Read, Write};
use std::process::{ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::time::timeout_at;
use toold_fetch_templates::ErrorResponse;
use toold_proto::{ErrorKind, RpcError};

/// Name of the mode in which this program extracts one page.
pub const MODE: &str = "page";

/// Stack of the extracting thread. Pages that the recursive parts see are nested at most 2,000 deep.
const STACK_BYTES: usize = 16 << 20;
/// Data of the program itself.
const BASE_BYTES: u64 = 16 << 20;
/// Memory for a page, in multiples of `max_bytes`.
const MEMORY_FACTOR: u64 = 20;
/// Time between the end of an extractor and the end of its page's time, for the error to reach the answer.
pub const MARGIN: Duration = Duration::from_millis(200);
/// Share of the time that the first effort may use; the rest is for the plain one.
const ARTICLE_TIME_SHARE: f64 = 0.7;

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Outcome {
    Failed(ErrorResponse),
    Done(PageText),
}

/// Extracts a page before `deadline`. If the article cannot be had within the bounds, the text without tags is returned.
pub async fn extract(mut source: PageSource, body: &[u8], deadline: Instant) -> Result<PageText, RpcError> {
    let started = Instant::now();
    let share = deadline.saturating_duration_since(started).mul_f64(ARTICLE_TIME_SHARE);
    source.effort = Effort::Article;
    match run(&source, body, started + share).await {
        Err(error) if error.kind() == Some(ErrorKind::Limit) && error.data.contains_key("ended_by") => {
            source.effort = Effort::Plain;
            run(&source, body, deadline).await
        }
        other => other,
    }
}

async fn run(source: &PageSource, body: &[u8], deadline: Instant) -> Result<PageText, RpcError> {
    let failed = |e: io::Error| RpcError::new(ErrorKind::Internal, format!("the page's extractor cannot run: {e}"));
    let time = deadline.saturating_duration_since(Instant::now());
    // The link leads to the running program, also after an upgrade replaced its file.
    let mut child = Command::new("/proc/self/exe")
        .args([MODE, &time.as_secs().saturating_add(1).to_string()])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let mut stdout = child.stdout.take().expect("stdout is piped");
    let head = serde_json::to_string(source).map_err(|e| failed(e.into()))?;
    let send = async move {
        stdin.write_all(head.as_bytes()).await?;
        stdin.write_all(b"\n").await?;
        stdin.write_all(body).await
    };
    let mut answer = Vec::new();
    // Markdown may be longer than its page; a JSON text at most six times as long as what it holds.
    let most = source.max_bytes.saturating_mul(12).saturating_add(1 << 16);
    let receive = async { (&mut stdout).take(most).read_to_end(&mut answer).await };
    let work = async {
        let (sent, received) = tokio::join!(send, receive);
        received?;
        // An extractor that ended before it read all has the reason in its answer or its status.
        let _ = sent;
        child.wait().await
    };
    let status = match timeout_at(deadline.into(), work).await {
        Ok(status) => status.map_err(failed)?,
        Err(_) => return Err(ended("time", "it took too long")),
    };
    match serde_json::from_slice::<Outcome>(&answer) {
        Ok(Outcome::Done(text)) => Ok(text),
        Ok(Outcome::Failed(error)) => Err(error.into()),
        Err(_) => Err(ended("memory", &format!("its extractor ended ({})", name_of(status)))),
    }
}

fn ended(by: &str, reason: &str) -> RpcError {
    RpcError::new(ErrorKind::Limit, format!("the page could not be extracted: {reason}")).with("ended_by", by)
}

fn name_of(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(code)) => format!("code {code}"),
        (None, None) => "no status".into(),
    }
}

/// Runs the mode `page`: a line of JSON and the body on stdin, one JSON document on stdout.
pub fn main(seconds: u64) -> ExitCode {
    let work = || -> io::Result<Outcome> {
        let mut stdin = io::stdin().lock();
        let mut head = String::new();
        stdin.read_line(&mut head)?;
        let source: PageSource = serde_json::from_str(&head)?;
        confine(source.max_bytes, seconds)?;
        let mut body = Vec::new();
        stdin.read_to_end(&mut body)?;
        Ok(on_large_stack(source, body))
    };
    let outcome = work().unwrap_or_else(|e| {
        Outcome::Failed(RpcError::new(ErrorKind::Internal, format!("the page's extractor failed: {e}")).into())
    });
    let written = serde_json::to_writer(io::stdout().lock(), &outcome).map_err(io::Error::from);
    match written.and_then(|()| io::stdout().flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Bounds this process: memory, computing time, no core file, no life after its parent.
fn confine(max_bytes: u64, seconds: u64) -> io::Result<()> {
    let limit = |bound: u64| Rlimit { current: Some(bound), maximum: Some(bound) };
    let memory = max_bytes.saturating_mul(MEMORY_FACTOR).saturating_add(BASE_BYTES + STACK_BYTES as u64);
    setrlimit(Resource::Data, limit(memory))?;
    setrlimit(Resource::Cpu, limit(seconds.max(1)))?;
    setrlimit(Resource::Core, limit(0))?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(())
}

fn on_large_stack(source: PageSource, body: Vec<u8>) -> Outcome {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let result = thread.spawn(move || page::extract(&source, body)).map(std::thread::JoinHandle::join);
    match result {
        Ok(Ok(Ok(text))) => Outcome::Done(text),
        Ok(Ok(Err(error))) => Outcome::Failed(error.into()),
        // The parser panicked: the plain effort has another one.
        Ok(Err(_)) => Outcome::Failed(ended("panic", "the parser failed on it").into()),
        Err(e) => Outcome::Failed(RpcError::new(ErrorKind::Internal, format!("no thread for the page: {e}")).into()),
    }
}
