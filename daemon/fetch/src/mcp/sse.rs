//! Server-sent events: bytes to events, by the HTML standard. Pure.

/// An event, complete with its blank line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    pub data: String,
    /// The cursor of the stream after this event.
    pub id: Option<String>,
}

/// Parses a stream in pieces of any size.
#[derive(Debug, Default)]
pub struct SseParser {
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    has_id: bool,
    is_after_cr: bool,
    is_past_start: bool,
    /// Last delay that the server asked for, in milliseconds.
    pub retry_ms: Option<u64>,
}

impl SseParser {
    /// Parses more of the stream. An event is returned once its blank line has come; one that has only an `id` too.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<SseEvent> {
        let mut events = Vec::new();
        for &byte in bytes {
            match byte {
                // The second half of a line end.
                b'\n' if self.is_after_cr => self.is_after_cr = false,
                b'\n' | b'\r' => {
                    self.is_after_cr = byte == b'\r';
                    let line = std::mem::take(&mut self.line);
                    events.extend(self.end_line(&line));
                }
                other => {
                    self.is_after_cr = false;
                    self.line.push(other);
                }
            }
        }
        events
    }

    /// Returns the bytes that wait for the rest of their event.
    pub fn pending_bytes(&self) -> usize {
        self.line.len() + self.event.data.len()
    }

    fn end_line(&mut self, line: &[u8]) -> Option<SseEvent> {
        let text = String::from_utf8_lossy(line);
        let text = if self.is_past_start { &text } else { text.trim_start_matches('\u{feff}') };
        self.is_past_start = true;
        if text.is_empty() {
            let is_event = std::mem::take(&mut self.has_data) | std::mem::take(&mut self.has_id);
            let event = std::mem::take(&mut self.event);
            return is_event.then_some(event);
        }
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.has_data = true;
                self.event.data.push_str(value);
            }
            "id" if !value.contains('\0') => {
                self.has_id = true;
                self.event.id = Some(value.to_string());
            }
            "retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => self.retry_ms = value.parse().ok(),
            // A comment, the type of the event, or a field that is not known: none of them matters here.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(data: &str, id: Option<&str>) -> SseEvent {
        SseEvent { data: data.into(), id: id.map(String::from) }
    }

    const STREAM: &str = "\u{feff}: comment\r\nevent: message\r\nid: 1\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\n\
        retry: 250\n\nid: 2\ndata:\n\ndata:x\rdata\r\rid: 3\n\ndata: é\n\ndata: cut";

    fn expected() -> Vec<SseEvent> {
        vec![
            event("{\"a\":\n1}", Some("1")),
            event("", Some("2")),
            event("x\n", None),
            event("", Some("3")),
            event("é", None),
        ]
    }

    #[test]
    fn a_stream_is_parsed_the_same_in_pieces_of_any_size() {
        for size in 1..=STREAM.len() {
            let mut parser = SseParser::default();
            let events: Vec<SseEvent> = STREAM.as_bytes().chunks(size).flat_map(|piece| parser.feed(piece)).collect();
            assert_eq!(events, expected(), "pieces of {size}");
            assert_eq!(parser.retry_ms, Some(250));
        }
    }

    #[test]
    fn an_event_that_is_cut_is_not_returned() {
        let mut parser = SseParser::default();
        assert_eq!(parser.feed(b"id: 9\ndata: half"), []);
        assert_eq!(parser.pending_bytes(), "data: half".len());
    }
}
