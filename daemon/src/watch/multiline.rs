//! Rewrites a single-line regex into a multi-line prefilter that never misses a match.
//!
//! Its matches lie within one line and are only candidates: it ignores that trailing carriage returns do not belong to a
//! line.

use regex_syntax::hir::{Capture, Class, ClassBytesRange, ClassUnicodeRange, Hir, HirKind, Look, Repetition};
use regex_syntax::hir::{ClassBytes, ClassUnicode};

/// Returns a regex that matches within every line that `hir` matches alone.
///
/// No part of it can match a newline: otherwise a search would run to the end of the text for every line.
pub fn to_multiline(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) if literal.0.contains(&b'\n') => Hir::fail(),
        HirKind::Literal(literal) => Hir::literal(literal.0.clone()),
        HirKind::Class(class) => Hir::class(without_newline(class.clone())),
        HirKind::Look(look) => Hir::look(line_anchor(*look)),
        HirKind::Repetition(Repetition { min, max, greedy, sub }) => {
            let sub = Box::new(to_multiline(sub));
            Hir::repetition(Repetition { min: *min, max: *max, greedy: *greedy, sub })
        }
        HirKind::Capture(Capture { index, name, sub }) => {
            Hir::capture(Capture { index: *index, name: name.clone(), sub: Box::new(to_multiline(sub)) })
        }
        HirKind::Concat(subs) => Hir::concat(subs.iter().map(to_multiline).collect()),
        HirKind::Alternation(subs) => Hir::alternation(subs.iter().map(to_multiline).collect()),
    }
}

fn without_newline(mut class: Class) -> Class {
    match &mut class {
        Class::Unicode(class) => class.difference(&ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')])),
        Class::Bytes(class) => class.difference(&ClassBytes::new([ClassBytesRange::new(b'\n', b'\n')])),
    }
    class
}

/// Returns the equivalent anchor among other lines. The end of a line's text is before its carriage returns, if it has
/// some: `EndCRLF` matches there, and also before a carriage return inside the line. A newline is a non-word byte, like the
/// start and end of text, so `\b` keeps its meaning.
fn line_anchor(look: Look) -> Look {
    match look {
        Look::Start => Look::StartLF,
        Look::End | Look::EndLF => Look::EndCRLF,
        Look::StartLF
        | Look::StartCRLF
        | Look::EndCRLF
        | Look::WordAscii
        | Look::WordAsciiNegate
        | Look::WordUnicode
        | Look::WordUnicodeNegate
        | Look::WordStartAscii
        | Look::WordEndAscii
        | Look::WordStartUnicode
        | Look::WordEndUnicode
        | Look::WordStartHalfAscii
        | Look::WordEndHalfAscii
        | Look::WordStartHalfUnicode
        | Look::WordEndHalfUnicode => look,
    }
}
