//! Maps the wire to calls and back: framings and dispatch in `wire`, and a file per verb. No decisions are made here.

mod approvals;
pub mod channel;
mod close;
pub mod context;
mod discover;
mod events;
mod exec;
mod files;
mod forget;
mod info;
pub mod inside;
mod inspect;
mod kernel;
mod kill;
mod list;
pub mod live_sessions;
mod log;
mod log_search;
mod patch;
mod pause;
mod policy;
mod poll;
mod process_response;
mod queues;
pub mod register;
mod resize;
mod restart;
mod resume;
mod sandbox;
mod screen;
mod script;
mod session;
mod shutdown;
mod signal;
mod stage;
mod text_form;
mod tools;
mod tools_register;
mod wait;
pub mod wire;
mod write;

use crate::disk::call_on_disk;
use context::Daemon;
use jsonrpsee::RpcModule;
use register::{register, register_like};
use std::sync::Arc;
use toold_proto::api;

/// Registers every method of the protocol.
pub fn module(daemon: Arc<Daemon>) -> RpcModule<Daemon> {
    let mut m = RpcModule::from_arc(daemon.clone());
    register_like::<api::Exec, _, _, _, _>(&mut m, &daemon, |call, daemon, peer| {
        call_on_disk(exec::exec(call, daemon, peer))
    });
    register_like::<api::Poll, _, _, _, _>(&mut m, &daemon, poll::poll);
    register::<api::Log, _, _, _>(&mut m, &daemon, |call, daemon, peer| call_on_disk(log::log(call, daemon, peer)));
    register_like::<api::Wait, _, _, _, _>(&mut m, &daemon, wait::wait);
    register::<api::Kill, _, _, _>(&mut m, &daemon, kill::kill);
    register::<api::Signal, _, _, _>(&mut m, &daemon, signal::signal);
    register_like::<api::Restart, _, _, _, _>(&mut m, &daemon, restart::restart);
    register_like::<api::Pause, _, _, _, _>(&mut m, &daemon, pause::pause);
    register_like::<api::Resume, _, _, _, _>(&mut m, &daemon, resume::resume);
    register::<api::Write, _, _, _>(&mut m, &daemon, write::write);
    register::<api::Submit, _, _, _>(&mut m, &daemon, write::submit);
    register::<api::Close, _, _, _>(&mut m, &daemon, close::close);
    register::<api::Screen, _, _, _>(&mut m, &daemon, screen::screen);
    register::<api::Resize, _, _, _>(&mut m, &daemon, resize::resize);
    register_like::<api::List, _, _, _, _>(&mut m, &daemon, list::list);
    register_like::<api::Inspect, _, _, _, _>(&mut m, &daemon, inspect::inspect);
    register::<api::Forget, _, _, _>(&mut m, &daemon, |call, daemon, peer| {
        call_on_disk(forget::forget(call, daemon, peer))
    });
    register::<api::StageDiff, _, _, _>(&mut m, &daemon, |call, daemon, peer| {
        call_on_disk(stage::diff(call, daemon, peer))
    });
    register::<api::StageCommit, _, _, _>(&mut m, &daemon, |call, daemon, peer| {
        call_on_disk(stage::commit(call, daemon, peer))
    });
    register::<api::StageDiscard, _, _, _>(&mut m, &daemon, |call, daemon, peer| {
        call_on_disk(stage::discard(call, daemon, peer))
    });
    register::<api::ToolsList, _, _, _>(&mut m, &daemon, tools::list);
    register_like::<api::ToolsCall, _, _, _, _>(&mut m, &daemon, |call, daemon, peer| {
        call_on_disk(tools::call(call, daemon, peer))
    });
    register::<api::ToolsRefresh, _, _, _>(&mut m, &daemon, tools::refresh);
    register_like::<api::ScriptRun, _, _, _, _>(&mut m, &daemon, |call, daemon, peer| {
        call_on_disk(script::run(call, daemon, peer))
    });
    register_like::<api::ScriptResult, _, _, _, _>(&mut m, &daemon, script::result);
    register::<api::ScriptCalls, _, _, _>(&mut m, &daemon, script::calls);
    register::<api::ScriptCancel, _, _, _>(&mut m, &daemon, script::cancel_script);
    register_like::<api::KernelOpen, _, _, _, _>(&mut m, &daemon, |call, daemon, peer| {
        call_on_disk(kernel::open(call, daemon, peer))
    });
    register_like::<api::KernelRun, _, _, _, _>(&mut m, &daemon, |call, daemon, peer| {
        call_on_disk(kernel::run(call, daemon, peer))
    });
    register::<api::KernelInterrupt, _, _, _>(&mut m, &daemon, |call, daemon, peer| {
        call_on_disk(kernel::interrupt(call, daemon, peer))
    });
    register::<api::KernelReset, _, _, _>(&mut m, &daemon, |call, daemon, peer| {
        call_on_disk(kernel::reset(call, daemon, peer))
    });
    register::<api::KernelClose, _, _, _>(&mut m, &daemon, kernel::close);
    register::<api::SessionActive, _, _, _>(&mut m, &daemon, session::active);
    register::<api::SessionEnd, _, _, _>(&mut m, &daemon, session::end);
    register::<api::SessionConfigure, _, _, _>(&mut m, &daemon, |call, daemon, peer| {
        call_on_disk(session::configure(call, daemon, peer))
    });
    register::<api::SessionGet, _, _, _>(&mut m, &daemon, session::get);
    register::<api::PolicyCheck, _, _, _>(&mut m, &daemon, |call, daemon, peer| {
        call_on_disk(policy::check(call, daemon, peer))
    });
    register::<api::PolicyReload, _, _, _>(&mut m, &daemon, |call, daemon, peer| {
        call_on_disk(policy::reload(call, daemon, peer))
    });
    register::<api::PolicySuggest, _, _, _>(&mut m, &daemon, policy::suggest);
    register::<api::QueuesList, _, _, _>(&mut m, &daemon, queues::list);
    register::<api::QueuesSet, _, _, _>(&mut m, &daemon, queues::set);
    register::<api::ApprovalsList, _, _, _>(&mut m, &daemon, approvals::list);
    register::<api::ApprovalsGet, _, _, _>(&mut m, &daemon, approvals::get);
    register::<api::ApprovalsDecide, _, _, _>(&mut m, &daemon, approvals::decide);
    register::<api::GrantsList, _, _, _>(&mut m, &daemon, approvals::list_grants);
    register::<api::GrantsRevoke, _, _, _>(&mut m, &daemon, approvals::revoke);
    register::<api::SandboxProbe, _, _, _>(&mut m, &daemon, sandbox::probe);
    register_like::<api::EventsNext, _, _, _, _>(&mut m, &daemon, |call, daemon, peer| {
        call_on_disk(events::next::next(call, daemon, peer))
    });
    register::<api::EventsAck, _, _, _>(&mut m, &daemon, |call, daemon, peer| {
        call_on_disk(events::ack::ack(call, daemon, peer))
    });
    register::<api::PatchApply, _, _, _>(&mut m, &daemon, patch::apply);
    register::<api::PatchRevert, _, _, _>(&mut m, &daemon, patch::revert);
    m.register_subscription("events.subscribe", "events.event", "events.unsubscribe", events::subscribe::subscribe)
        .expect("every method is registered once");
    register::<api::FsRead, _, _, _>(&mut m, &daemon, files::read);
    register::<api::FsWrite, _, _, _>(&mut m, &daemon, files::write);
    register::<api::FsEdit, _, _, _>(&mut m, &daemon, files::edit);
    register::<api::FsList, _, _, _>(&mut m, &daemon, files::list);
    register::<api::FsSearch, _, _, _>(&mut m, &daemon, files::search);
    register_like::<api::ToolsRegister, _, _, _, _>(&mut m, &daemon, tools_register::register);
    register::<api::ToolsUnregister, _, _, _>(&mut m, &daemon, tools_register::unregister);
    register::<api::DaemonInfo, _, _, _>(&mut m, &daemon, info::info);
    register::<api::DaemonShutdown, _, _, _>(&mut m, &daemon, shutdown::shutdown);
    register::<api::RpcDiscover, _, _, _>(&mut m, &daemon, discover::discover);
    m
}
