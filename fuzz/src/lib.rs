//! The body of every fuzz target: bytes in, nothing out, a panic only for a bug.
//!
//! `daemon/tests/fuzz_corpus.rs` runs the same functions on stable, over the corpus and over changes of it.

mod calls;
mod redact;

pub use calls::calls;
pub use redact::redact;

use serde_json::Value;
use serde_json::value::RawValue;
use toold_daemon::files::edit::{Edit, Edited};
use toold_daemon::rpc::wire::frame::{Decode, Frame};
use toold_daemon::rpc::wire::headers::Headers;
use toold_daemon::rpc::wire::lines::Lines;
use toold_daemon::rpc::wire::message::{self, Message, Request};
use toold_daemon::rpc::wire::{nesting, sniff};
use toold_daemon::{events, files, log, store};
use toold_format::denials::{self, DenialFile};
use toold_format::frame::{self, FromShim, HEADER_LEN, MAX_FROM_SHIM_LEN, MAX_TO_SHIM_LEN, ToShim};
use toold_format::launch::LaunchBlock;
use toold_format::sandbox::{NamespaceBlock, SandboxBlock};
use toold_format::slots::{self, Exit, Head, Launch, LaunchSlot, Progress, Resizes, SLOT_LEN, Slot, SlotCondition};
use toold_policy::{
    BadFile, Call, Program, RuleFile, Rules, SessionPolicy, Verdict, What, judge, needs_no_search, plain_commands,
};
use toold_proto::ErrorKind;
use toold_proto::files::EditStrategy;

/// Limits on a message, under each of which a framing must give the same frames however its bytes are cut.
const MAX_MESSAGES: [usize; 3] = [7, 100, 1 << 20];
/// Sizes of the pieces.
const PIECES: [usize; 2] = [1, 13];
const MAX_BATCH: usize = 3;
/// The longest log of an index run: every byte of it is read a dozen times.
const LOG_MAX: usize = 2048;

/// Feeds the bytes of a client into every decoder of the wire.
pub fn wire(bytes: &[u8]) {
    match sniff::detect(bytes) {
        None => assert!(bytes.is_ascii()),
        Some((_, start)) => assert_eq!(sniff::detect(&bytes[start..]).map(|found| found.1), Some(0)),
    }
    for max in MAX_MESSAGES {
        let lines = cut_anywhere(bytes, || Lines::new(max));
        let bodies = cut_anywhere(bytes, || Headers::new(max));
        for message in lines.iter().chain(&bodies).flatten() {
            assert!(message.len() <= max, "no message is over the limit");
            json(message);
        }
    }
    json(bytes);
    if let Ok(text) = std::str::from_utf8(bytes)
        && !text.contains('\n')
    {
        comes_back::<Lines>(text, Lines::new(bytes.len()), text.trim_ascii().is_empty());
        comes_back::<Headers>(text, Headers::new(bytes.len()), false);
    }
}

/// Returns the frames, which must not depend on how the bytes are cut. None: an error.
fn cut_anywhere<D: Decode>(bytes: &[u8], decoder: impl Fn() -> D) -> Vec<Option<Vec<u8>>> {
    let whole = frames_of(decoder(), bytes, bytes.len().max(1));
    for piece in PIECES {
        assert_eq!(frames_of(decoder(), bytes, piece), whole, "pieces of {piece}");
    }
    whole
}

fn frames_of<D: Decode>(mut decoder: D, bytes: &[u8], piece: usize) -> Vec<Option<Vec<u8>>> {
    fn owned(frame: Frame<'_>) -> Option<Vec<u8>> {
        match frame {
            Frame::Message(message) => Some(message.to_vec()),
            Frame::TooLong | Frame::Broken(_) => None,
        }
    }
    let mut found = Vec::new();
    for piece in bytes.chunks(piece) {
        decoder.feed(piece);
        while let Some(frame) = decoder.next() {
            found.push(owned(frame));
        }
    }
    found.extend(decoder.last().map(owned));
    found
}

fn comes_back<D: Decode>(text: &str, mut decoder: D, blank: bool) {
    let mut framed = Vec::new();
    D::encode(&mut framed, text);
    decoder.feed(&framed);
    let expected = (!blank).then_some(Frame::Message(text.as_bytes()));
    assert_eq!(decoder.next(), expected);
    assert_eq!(decoder.next(), None);
}

/// Reads one message: its depth, and its request.
fn json(text: &[u8]) {
    // A member that is there twice is read once, so the text may be deeper than the value.
    let depth = serde_json::from_slice(text).map_or(0, |value| depth(&value));
    let too_deep = [0, 1, 2, 5, 128].map(|max| (nesting::deeper_than(text, max), depth > max));
    assert!(too_deep.iter().all(|(reported, is)| *reported || !is), "{depth} deep: {too_deep:?}");
    assert!(too_deep.is_sorted_by_key(|(reported, _)| !reported), "deeper than 2 is deeper than 1");
    let is_json = serde_json::from_slice::<&RawValue>(text).is_ok();
    match message::parse(text, MAX_BATCH) {
        Ok(Message::One(request)) => {
            assert!(is_json);
            reads_back(&request);
        }
        Ok(Message::Batch(entries)) => {
            assert!(is_json && (1..=MAX_BATCH).contains(&entries.len()));
            entries.iter().flatten().for_each(reads_back);
        }
        Err(refused) => {
            let no_json = refused.error.kind() == Some(ErrorKind::ParseError);
            assert_eq!(no_json, !is_json, "{}", refused.error.message);
        }
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(items) => 1 + items.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Checks that a request, written and parsed again, is the same request.
fn reads_back(request: &Request<'_>) {
    let method = Value::from(&*request.method);
    let mut text = format!(r#"{{"jsonrpc":"2.0","method":{method}"#);
    if let Some(id) = &request.id {
        text += &format!(r#","id":{}"#, serde_json::to_string(id).expect("an id prints"));
    }
    if let Some(params) = request.params {
        text += &format!(r#","params":{params}"#);
    }
    text.push('}');
    let again = message::parse(text.as_bytes(), MAX_BATCH);
    assert!(matches!(&again, Ok(Message::One(again)) if again == request), "{request:?} came back as {again:?}");
}

/// Reads the bytes as the other end of a shim's connection sends them: frames in a row, and the block that starts a program.
pub fn frames(bytes: &[u8]) {
    for max in [MAX_TO_SHIM_LEN, MAX_FROM_SHIM_LEN] {
        let mut rest = bytes;
        while let Ok(Some((kind, body, len))) = frame::next_frame(rest, max) {
            assert_eq!(len, HEADER_LEN + body.len());
            to_shim(kind, body);
            from_shim(kind, body);
            rest = &rest[len..];
        }
    }
    block(bytes);
    sandbox_blocks(bytes);
}

fn to_shim(kind: u8, body: &[u8]) {
    let Some(read) = ToShim::read(kind, body) else { return };
    let (mut again, bytes) = (Vec::new(), body);
    read.put(&mut again);
    let (again_kind, body, len) = frame::next_frame(&again, usize::MAX).expect("ours").expect("whole");
    assert_eq!((again_kind, len), (kind, again.len()));
    match read {
        // Any number but zero holds.
        ToShim::Hold { .. } => assert!(bytes.len() >= body.len()),
        _ => assert!(bytes.starts_with(body), "only the fields of a later version are lost"),
    }
    assert_eq!(ToShim::read(kind, body), Some(read));
    match read {
        ToShim::Launch { block: bytes } => block(bytes),
        ToShim::LaunchSandboxed { sandbox, block: bytes } => {
            block(bytes);
            sandbox_blocks(sandbox);
        }
        ToShim::MakeNamespaces { block } => sandbox_blocks(block),
        // The others carry no block.
        _ => {}
    }
}

fn from_shim(kind: u8, body: &[u8]) {
    let Some(read) = FromShim::read(kind, body) else { return };
    let (mut again, bytes) = (Vec::new(), body);
    read.put(&mut again);
    let (again_kind, body, len) = frame::next_frame(&again, MAX_FROM_SHIM_LEN).expect("ours").expect("whole");
    assert_eq!((again_kind, len), (kind, again.len()));
    assert_eq!(FromShim::read(kind, body), Some(read));
    match read {
        FromShim::Started { .. }
        | FromShim::Failed { .. }
        | FromShim::Wrote { .. }
        | FromShim::Done { .. }
        | FromShim::Killed { .. }
        | FromShim::Env { .. }
        | FromShim::Denied { .. }
        | FromShim::Namespaces
        | FromShim::Gone => assert!(bytes.starts_with(body), "only the fields of a later version are lost"),
        // A slot may hold fields of a later version, and its checksum covers all of them.
        FromShim::Welcome { .. }
        | FromShim::Bell { .. }
        | FromShim::Exited { .. }
        | FromShim::Closed { .. }
        | FromShim::Position { .. } => {
            assert!(bytes.len() >= body.len());
        }
    }
}

fn sandbox_blocks(bytes: &[u8]) {
    if let Some(read) = SandboxBlock::decode(bytes) {
        assert_eq!(SandboxBlock::decode(&read.encode()), Some(read));
    }
    if let Some(read) = NamespaceBlock::decode(bytes) {
        assert_eq!(NamespaceBlock::decode(&read.encode()), Some(read));
    }
    if let Some(read) = DenialFile::read(bytes) {
        let mut entries = Vec::new();
        read.entries().for_each(|entry| denials::put_entry(&mut entries, &entry));
        let (mut again, observes) = (Vec::new(), (read.observes_writes, read.observes_network));
        denials::put_head(&mut again, observes, read.count, read.entries().count(), &entries);
        again.extend_from_slice(&entries);
        assert_eq!(DenialFile::read(&again).map(|again| again.count), Some(read.count));
    }
}

fn block(bytes: &[u8]) {
    let Some(read) = LaunchBlock::decode(bytes) else { return };
    let lists = [read.cgroups, read.argv, read.env];
    assert!(lists.iter().all(|list| list.iter().count() == list.len()), "a list has as many strings as it counts");
    assert_eq!(LaunchBlock::decode(&read.encode()), Some(read));
}

/// Reads a log and its index: two bytes with the log's length, the log, the index.
pub fn index(bytes: &[u8]) {
    let Some((len, rest)) = bytes.split_first_chunk::<2>() else { return };
    let len = usize::from(u16::from_le_bytes(*len)).min(LOG_MAX).min(rest.len());
    let (log, idx) = rest.split_at(len);
    log::fuzz::pair(log, idx).expect("memory files can be read");
}

/// Reads one of the files beside the journal: the list of segments, the list of consumers, a position.
pub fn journal_files(bytes: &[u8]) {
    events::fuzz::files(bytes);
}

/// Reads one of the files beside a record: `requests` and `writes`.
pub fn record_files(bytes: &[u8]) {
    store::fuzz::files(bytes);
}

/// Edits a file: a byte of flags, then the old text, the new text and the file, with a record separator between them.
pub fn edit(bytes: &[u8]) {
    let Some((flags, rest)) = bytes.split_first() else { return };
    let mut parts = rest.splitn(3, |byte| *byte == 0x1e);
    let (Some(old), Some(new), Some(file)) = (parts.next(), parts.next(), parts.next()) else { return };
    let (Ok(old), Ok(new)) = (std::str::from_utf8(old), std::str::from_utf8(new)) else { return };
    let request = Edit { old, new, replace_all: flags & 1 != 0, fuzzy: flags & 2 != 0 };
    let Ok(Edited::Changed { strategy, count, content }) = files::edit::edit(file, &request) else { return };
    assert!(count == 1 || (count > 1 && request.replace_all), "{count} places");
    assert!(request.fuzzy || !matches!(strategy, EditStrategy::BlockAnchor | EditStrategy::SimilarLines));
    let text = std::str::from_utf8(file).ok().filter(|text| !text.contains('\r') && !text.starts_with('\u{feff}'));
    if let Some(text) = text.filter(|_| strategy == EditStrategy::Exact && !old.contains('\r')) {
        assert_eq!(content, text.replace(old, new).into_bytes(), "an exact edit replaces, and nothing else");
    }
    if std::str::from_utf8(file).is_ok() {
        assert!(std::str::from_utf8(&content).is_ok(), "text stays text");
    }
}

/// Reads one slot, as it is and with a checksum that matches.
pub fn slots(bytes: &[u8]) {
    let mut slot = [0; SLOT_LEN];
    let len = bytes.len().min(SLOT_LEN);
    slot[..len].copy_from_slice(&bytes[..len]);
    slot_reads_back(&slot);
    let check = toold_format::fnv1a(&slot[..SLOT_LEN - 8]);
    slot[SLOT_LEN - 8..].copy_from_slice(&check.to_le_bytes());
    slot_reads_back(&slot);
    let bit = usize::from(slot[0]) * 3;
    slot[bit / 8] ^= 1 << (bit % 8);
    let facts = (Head::read(&slot), Launch::read(&slot), Exit::read(&slot), Progress::read(&slot));
    let others = (slots::read_closed(&slot), Resizes::read(&slot));
    assert_eq!((facts, others), ((None, None, None, None), (None, None)), "a flipped bit empties a slot");
    let zero = slot.iter().all(|byte| *byte == 0);
    let seen = SlotCondition::of(&slot) == SlotCondition::Damaged && LaunchSlot::read(&slot) == LaunchSlot::Unknown;
    assert!(seen || zero, "a flipped bit is noticed");
}

fn slot_reads_back(slot: &Slot) {
    if let Some(head) = Head::read(slot) {
        assert_eq!(Head::read(&head.slot()), Some(head));
    }
    let (condition, launched) = (SlotCondition::of(slot), LaunchSlot::read(slot));
    assert_eq!(matches!(launched, LaunchSlot::Empty), condition == SlotCondition::Empty, "only zeros are empty");
    if let Some(launch) = Launch::read(slot) {
        assert_eq!(launched, LaunchSlot::Launched(launch));
        assert_eq!(Launch::read(&launch.slot()), Some(launch));
    }
    if let Some(exit) = Exit::read(slot) {
        assert_eq!(Exit::read(&exit.slot()), Some(exit));
    }
    if let Some(progress) = Progress::read(slot) {
        assert_eq!(Progress::read(&progress.slot()), Some(progress));
    }
    if let Some(resizes) = Resizes::read(slot).filter(|resizes| !resizes.all().is_empty()) {
        assert!(resizes.all().len() <= slots::MAX_RESIZES);
        assert_eq!(Resizes::read(&resizes.slot()), Some(resizes));
    }
    if let Some(at_ms) = slots::read_closed(slot) {
        assert_eq!(slots::read_closed(&slots::closed_slot(at_ms)), Some(at_ms));
    }
}

/// Parses a patch, whole and in pieces, and applies it to a file. A NUL separates both.
pub fn patch(bytes: &[u8]) {
    let (text, file) = match bytes.iter().position(|byte| *byte == 0) {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, &[][..]),
    };
    let text = String::from_utf8_lossy(text);
    let whole = toold_patch::parse(&text);
    for piece in PIECES {
        let mut parser = toold_patch::Parser::default();
        let mut rest = &*text;
        while !rest.is_empty() {
            let end = (piece..=rest.len()).find(|at| rest.is_char_boundary(*at)).unwrap_or(rest.len());
            parser.push(&rest[..end]);
            rest = &rest[end..];
        }
        assert_eq!(parser.finish(), whole, "any cut of the text gives the same patch");
    }
    let _ = toold_patch::recognise(&text);
    let lines = text.lines().count().max(1);
    let patch = match whole {
        Ok(patch) => patch,
        Err(error) => return assert!((1..=lines).contains(&error.line), "the line is one of the patch"),
    };
    for operation in patch.operations {
        let toold_patch::Change::Update { chunks, .. } = operation.change else { continue };
        match toold_patch::apply(file, &chunks) {
            Err(error) => assert!((1..=lines).contains(&error.line), "the line is one of the patch"),
            Ok(applied) => {
                let before = toold_patch::lines::Lines::split(file).lines.len();
                let after = toold_patch::lines::Lines::split(&applied.content).lines.len();
                let has_cr = file.contains(&b'\r') || text.contains('\r');
                assert!(has_cr || before + applied.added == after + applied.removed, "every line is accounted for");
            }
        }
    }
}

/// A program of this name where no job can write.
fn any_program(name: &str) -> Option<Program> {
    let path = std::path::Path::new("/usr/bin").join(name.trim_start_matches('/'));
    Some(Program { found: path.clone(), real: path, replaceable: false })
}

/// An argument in quotes that the lexer takes.
fn quoted(text: &str) -> String {
    let each = text.chars().map(|c| if c == '\'' { "\"'\"".to_string() } else { format!("'{c}'") });
    if text.is_empty() { "''".into() } else { each.collect() }
}

/// Judges a text. A prediction that is written in another way is the same prediction, and a call that needs no search is one
/// that the judge allows.
pub fn shell_text(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Some(commands) = plain_commands(text) {
        let line = |command: &Vec<String>| {
            let args = command[1..].iter().map(|arg| format!(" {}", quoted(arg)));
            command[0].clone() + &args.collect::<String>()
        };
        let again = commands.iter().map(line).collect::<Vec<_>>().join(" ;\n");
        assert_eq!(plain_commands(&again), Some(commands), "{again:?}");
    }
    let what = What::Shell { text, shell: "/bin/sh", login: false };
    let call = Call { what, set_names: &[], resolve: &any_program, writable: &[], home_is_writable: false };
    let judgement = judge(&call, &SessionPolicy::default(), &Rules::default());
    if needs_no_search(what) {
        assert_eq!(judgement.verdict, Verdict::Allow, "{:?}", judgement.reasons);
    }
    assert_eq!(judgement.plain, !judgement.commands.is_empty());
}

/// Reads a rule file. A rule that is read and written again is the same rule; a refused file has a reason, and asks.
pub fn rule_files(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let what = What::Shell { text: "git status && curl x", shell: "/bin/sh", login: false };
    let call = Call { what, set_names: &[], resolve: &any_program, writable: &[], home_is_writable: false };
    let mut rules = Rules::default();
    match RuleFile::parse("x.toml", text) {
        Ok(file) => {
            let written: String = file.rules.iter().map(toold_policy::Rule::to_toml).collect();
            assert_eq!(RuleFile::parse("x.toml", &written).as_ref(), Ok(&file), "{written}");
            rules.files.push(file);
        }
        Err(error) => {
            assert!(!error.why.is_empty());
            rules.bad.push(BadFile::new(&error, Some(text)));
            let unread = Rules { bad: vec![BadFile::new(&error, None)], ..Rules::default() };
            assert_eq!(judge(&call, &SessionPolicy::default(), &unread).verdict, Verdict::Ask);
        }
    }
    judge(&call, &SessionPolicy::default(), &rules);
}
