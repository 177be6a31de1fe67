//! Text to calls: framings, dispatch, and one file per group of verbs. No decisions are made here.

pub mod context;
mod daemon;
mod error;
mod events;
mod exec;
mod follow;
mod input;
mod kill;
mod list;
mod push;
mod read;
pub mod register;
mod wait;
pub mod wire;

use context::Daemon;
use jsonrpsee::RpcModule;
use register::{register, register_like};
use std::sync::Arc;
use toold_proto::api;

/// Every method of the contract, ready to be served.
pub fn module(daemon: Arc<Daemon>) -> RpcModule<Daemon> {
    let mut m = RpcModule::from_arc(daemon.clone());
    register::<api::Exec, _, _, _>(&mut m, &daemon, exec::exec);
    register::<api::Poll, _, _, _>(&mut m, &daemon, read::poll);
    register::<api::Log, _, _, _>(&mut m, &daemon, read::log);
    register::<api::Wait, _, _, _>(&mut m, &daemon, wait::wait);
    register::<api::Kill, _, _, _>(&mut m, &daemon, kill::kill);
    register::<api::Signal, _, _, _>(&mut m, &daemon, kill::signal);
    register::<api::Write, _, _, _>(&mut m, &daemon, input::write);
    register::<api::Submit, _, _, _>(&mut m, &daemon, input::submit);
    register::<api::Close, _, _, _>(&mut m, &daemon, input::close);
    register::<api::Resize, _, _, _>(&mut m, &daemon, input::resize);
    register_like::<api::List, _, _, _, _>(&mut m, &daemon, list::list);
    register::<api::Inspect, _, _, _>(&mut m, &daemon, list::inspect);
    register::<api::Forget, _, _, _>(&mut m, &daemon, list::forget);
    register::<api::SessionActive, _, _, _>(&mut m, &daemon, kill::session_active);
    register::<api::SessionEnd, _, _, _>(&mut m, &daemon, kill::session_end);
    register::<api::EventsNext, _, _, _>(&mut m, &daemon, events::next);
    register::<api::EventsAck, _, _, _>(&mut m, &daemon, events::ack);
    m.register_subscription("events.subscribe", "events.event", "events.unsubscribe", push::subscribe)
        .expect("every method is registered once");
    register::<api::DaemonInfo, _, _, _>(&mut m, &daemon, daemon::info);
    register::<api::DaemonShutdown, _, _, _>(&mut m, &daemon, daemon::shutdown);
    register::<api::RpcDiscover, _, _, _>(&mut m, &daemon, daemon::discover);
    m
}
