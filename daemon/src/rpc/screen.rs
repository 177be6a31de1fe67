//! `screen`.

use super::context::Daemon;
use super::wire::Peer;
use crate::call_error::screen_error;
use crate::proc::screen::{self, Screen};
use std::sync::Arc;
use toold_proto::{RpcError, params, results};

pub async fn screen(
    call: params::ScreenParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<results::ScreenResult, RpcError> {
    let proc = daemon.find(&call.id)?;
    let screen = screen::read(&proc).await.map_err(|e| screen_error(&proc, e))?;
    let Screen { size, text, cursor: (row, col), cursor_visible, title, alternate, end, .. } = screen;
    Ok(results::ScreenResult {
        id: proc.spec.id,
        rows: size.rows,
        cols: size.cols,
        text,
        cursor: results::ScreenCursor { row, col, visible: cursor_visible },
        title,
        alternate,
        next_cursor: end,
    })
}
