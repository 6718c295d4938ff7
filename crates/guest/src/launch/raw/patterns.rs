//! The console lines that decide about success.

use regex::Regex;

use super::end::RawEnd;
use crate::launch::lines::Lines;

/// The console lines that decide about success; a line that matches both fails.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    /// Success, at the first matching line.
    pub expect: Option<Regex>,
    /// Failure, at the first matching line.
    pub fail: Option<Regex>,
}

/// Searches for the patterns in text that arrives in pieces.
pub struct Search<'a> {
    patterns: &'a Patterns,
    lines: Lines,
}

impl Patterns {
    pub(super) fn search(&self) -> Search<'_> {
        Search { patterns: self, lines: Lines::default() }
    }

    fn decide(&self, line: &str) -> Option<RawEnd> {
        let is = |pattern: &Option<Regex>| pattern.as_ref().is_some_and(|own| own.is_match(line));
        let line = || line.to_owned();
        match () {
            () if is(&self.fail) => Some(RawEnd::Failed { line: line() }),
            () if is(&self.expect) => Some(RawEnd::Expected { line: line() }),
            () => None,
        }
    }
}

impl Search<'_> {
    /// Returns the end decided by the lines that these bytes complete.
    pub(super) fn add(&mut self, bytes: &[u8]) -> Option<RawEnd> {
        self.lines.add(bytes).iter().find_map(|line| self.patterns.decide(line))
    }

    /// Returns the end decided by an unfinished line, such as a prompt.
    pub(super) fn rest(&self) -> Option<RawEnd> {
        self.patterns.decide(&self.lines.partial())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(expect: &str, fail: &str) -> Patterns {
        let regex = |text: &str| (!text.is_empty()).then(|| Regex::new(text).unwrap());
        Patterns { expect: regex(expect), fail: regex(fail) }
    }

    fn line(text: &str) -> String {
        text.to_owned()
    }

    #[test]
    fn a_line_decides_when_it_is_whole_and_a_prompt_when_nothing_comes_after_it() {
        let patterns = patterns("^(done|host login:)$", "^FAIL");
        let mut search = patterns.search();
        assert_eq!(search.add(b"boot\r\ndone"), None);
        assert_eq!(search.add(b" with errors\r\nhost log"), None);
        assert_eq!(search.rest(), None);
        assert_eq!(search.add(b"in: "), None);
        assert_eq!(search.rest(), Some(RawEnd::Expected { line: line("host login:") }));
    }

    #[test]
    fn the_line_that_comes_first_decides_and_one_of_both_kinds_fails() {
        let both = patterns("done", "err");
        let failed = RawEnd::Failed { line: line("done, 1 error") };
        assert_eq!(both.search().add(b"done, 1 error\n"), Some(failed));
        let expected = RawEnd::Expected { line: line("done") };
        assert_eq!(both.search().add(b"x\ndone\nerr\n"), Some(expected));
        assert_eq!(patterns("", "").search().add(b"anything\n"), None);
    }
}
