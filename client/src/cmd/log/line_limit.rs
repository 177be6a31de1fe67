//! The number of lines that `log` shows, by the options and the reader. Pure.

/// The number of lines before new output on a terminal.
const FOLLOW_LINES: u64 = 10;
/// The number of lines on a terminal without a pager: more would scroll away.
const MAX_SCREEN_LINES: u64 = 200;

/// The number of lines that are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    All,
    Most(u64),
}

impl Count {
    pub fn parse(text: &str) -> Result<Count, String> {
        let wrong = || format!("`{text}` is not a number of lines: write 100, or all");
        if text == "all" { Ok(Count::All) } else { text.parse().map(Count::Most).map_err(|_| wrong()) }
    }

    pub fn most(self) -> Option<u64> {
        match self {
            Count::All => None,
            Count::Most(lines) => Some(lines),
        }
    }
}

/// The reader of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// A file or another program.
    Program,
    Pager,
    /// A person, without a pager: what does not fit the screen scrolls away.
    Terminal,
    /// A person who waits for new output.
    Follower,
}

/// The origin of the limit. Only what the user did not ask to leave out is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineLimit {
    Asked(Count),
    Usual(Count),
}

impl LineLimit {
    /// A time that is given is a choice of the lines.
    pub fn of(asked: Option<Count>, timed: bool, reader: Reader) -> LineLimit {
        match (asked, reader) {
            (Some(count), _) => LineLimit::Asked(count),
            (None, Reader::Program | Reader::Pager) => LineLimit::Usual(Count::All),
            (None, Reader::Terminal | Reader::Follower) if timed => LineLimit::Usual(Count::All),
            (None, Reader::Terminal) => LineLimit::Usual(Count::Most(MAX_SCREEN_LINES)),
            (None, Reader::Follower) => LineLimit::Usual(Count::Most(FOLLOW_LINES)),
        }
    }

    pub fn most(self) -> Option<u64> {
        match self {
            LineLimit::Asked(count) | LineLimit::Usual(count) => count.most(),
        }
    }

    /// Reports whether a note about omitted lines is due.
    pub fn is_usual(self) -> bool {
        match self {
            LineLimit::Asked(_) => false,
            LineLimit::Usual(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_terminal_is_given_less_than_all_unless_asked_to() {
        let most = |asked, timed, reader| LineLimit::of(asked, timed, reader).most();
        let readers = [Reader::Program, Reader::Pager, Reader::Terminal, Reader::Follower];
        assert_eq!(readers.map(|reader| most(None, false, reader)), [None, None, Some(200), Some(10)]);
        assert_eq!(readers.map(|reader| most(None, true, reader)), [None; 4]);
        assert_eq!(readers.map(|reader| most(Some(Count::Most(7)), true, reader)), [Some(7); 4]);
        assert_eq!(readers.map(|reader| most(Some(Count::All), false, reader)), [None; 4]);
    }

    #[test]
    fn a_number_of_lines_is_a_number_or_all() {
        assert_eq!((Count::parse("0"), Count::parse("all")), (Ok(Count::Most(0)), Ok(Count::All)));
        for wrong in ["", "-1", "1.5", "ALL", "ten"] {
            assert!(Count::parse(wrong).is_err(), "{wrong}");
        }
    }
}
