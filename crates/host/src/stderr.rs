//! Writes messages to standard error. Text from inputs cannot send control sequences to the
//! terminal.
//!
//! The reader of standard error may be gone: `command 2>&1 | head` must end quietly, where
//! `eprintln!` panics.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write};

/// Maximum number of characters in a message: a quoted input can be a single line of a megabyte.
const MOST_CHARACTERS: usize = 4000;
/// Number of characters kept at the end, where a message with a quoted input names the problem.
const OF_END: usize = 500;

/// Writes `numalab: TEXT` as a line to standard error; a long text loses its middle.
pub fn note(text: impl Display) {
    let text = text.to_string();
    print_error(format_args!("numalab: {}\n", shortened(visible(&text))));
}

fn shortened(text: Cow<'_, str>) -> Cow<'_, str> {
    let all = text.chars().count();
    if all <= MOST_CHARACTERS {
        return text;
    }
    let begin: String = text.chars().take(MOST_CHARACTERS - OF_END).collect();
    let end: String = text.chars().skip(all - OF_END).collect();
    format!("{begin}... ({all} characters) ...{end}").into()
}

/// Writes `text` unchanged to standard error. Errors are ignored: there is nowhere left to report
/// them.
pub fn print_error(text: impl Display) {
    let _ = io::stderr().lock().write_fmt(format_args!("{text}"));
}

/// Replaces control characters except line ends, tabs and colours. Names of processes, files and
/// machines are untrusted, and could move the cursor or set the title.
pub fn visible(text: &str) -> Cow<'_, str> {
    let steers = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(steers) {
        shown.push_str(&rest[..at]);
        let colour = colour(&rest[at..]);
        if colour == 0 {
            shown.push(char::REPLACEMENT_CHARACTER);
        }
        let next = rest[at..].chars().next().map_or(1, char::len_utf8);
        shown.push_str(&rest[at..at + colour]);
        rest = &rest[at + colour.max(next)..];
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

/// Returns the length of a colour sequence at the beginning (ECMA-48, SGR), or 0.
fn colour(text: &str) -> usize {
    let Some(parameters) = text.strip_prefix("\u{1b}[") else { return 0 };
    let length =
        parameters.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b';').count();
    if parameters[length..].starts_with('m') { 2 + length + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_keeps_its_beginning_and_the_text_after_a_quoted_input() {
        let quoted = "é".repeat(2 * MOST_CHARACTERS);
        let text = shortened(format!("process 7 ({quoted}): no such thing").into());
        assert!(text.starts_with("process 7 (é") && text.ends_with("é): no such thing"), "{text}");
        assert!(
            text.contains("... (8027 characters) ...") && text.chars().count() < 4100,
            "{text}"
        );
        assert_eq!(shortened("short".into()), "short");
    }

    #[test]
    fn terminal_control_sequences_are_replaced_and_colours_stay() {
        assert!(matches!(visible("a\tb\n"), Cow::Borrowed("a\tb\n")));
        assert_eq!(visible("\u{1b}[1;31mred\u{1b}[0m"), "\u{1b}[1;31mred\u{1b}[0m");
        assert_eq!(visible("a\u{1b}]0;title\u{7}b"), "a\u{fffd}]0;title\u{fffd}b");
        assert_eq!(visible("\u{1b}[2Jx\u{1b}["), "\u{fffd}[2Jx\u{fffd}[");
        // C1 controls are two bytes long in UTF-8; some terminals take U+009B for ESC [.
        assert_eq!(visible("a\u{9b}2Jb\r"), "a\u{fffd}2Jb\u{fffd}");
    }
}
