//! Text that was copied from a mail, a ticket or a terminal.

use numalab_topology::Findings;

/// Returns the numbered lines of a text without the additions of mail programs and terminals: quote
/// marks, escape sequences for colours, carriage returns, non-breaking spaces.
pub(crate) fn lines(text: &str, findings: &mut Findings) -> Vec<(usize, String)> {
    let lines: Vec<String> = text.lines().map(plain).collect();
    let depth = quote_depth(&lines);
    if depth > 0 {
        let message = "quote marks at the beginnings of lines are left out".to_owned();
        findings.note("quoted-text", "all lines".to_owned(), message);
    }
    let without_marks =
        lines.iter().map(|line| (0..depth).fold(line.as_str(), |line, _| unquoted(line)));
    without_marks.enumerate().map(|(index, line)| (index + 1, line.to_owned())).collect()
}

/// Returns the number of quote marks that every line has; a line with only a mark has no text.
fn quote_depth(lines: &[String]) -> usize {
    let depth = |line: &String| {
        let mut rest = line.as_str();
        let mut depth = 0;
        while unquoted(rest) != rest {
            rest = unquoted(rest);
            depth += 1;
        }
        depth
    };
    lines.iter().filter(|line| !line.trim().is_empty()).map(depth).min().unwrap_or(0)
}

/// Returns a line without its first quote mark and the space after it.
fn unquoted(line: &str) -> &str {
    let Some(rest) = line.trim_start().strip_prefix(['>', '|']) else { return line };
    rest.strip_prefix(' ').unwrap_or(rest)
}

/// Returns a line without escape sequences (ECMA-48: ESC, `[`, parameters, a letter) and with
/// ordinary spaces.
fn plain(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => {
                if characters.next_if_eq(&'[').is_some() {
                    while characters.next().is_some_and(|c| !c.is_ascii_alphabetic()) {}
                }
            }
            '\u{a0}' | '\u{202f}' => plain.push(' '),
            '\r' | '\u{feff}' | '\u{200b}' => {}
            _ => plain.push(character),
        }
    }
    plain
}

/// Returns true if a line looks like a shell prompt with a command: `[user@host ~]$ numactl -H`.
pub(crate) fn is_prompt(line: &str) -> bool {
    let is_mark = |word: &str| word.ends_with(['$', '#', '%']) && word.len() < 200;
    line.split_whitespace().take(3).any(is_mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<String>, usize) {
        let mut findings = Findings::default();
        let lines = lines(text, &mut findings).into_iter().map(|(_, line)| line).collect();
        (lines, findings.into_list().len())
    }

    #[test]
    fn marks_that_all_lines_have_are_left_out_with_one_note() {
        assert_eq!(
            read("> a\n>\n> b c\n\n"),
            (vec!["a".into(), "".into(), "b c".into(), "".into()], 1)
        );
        assert_eq!(read(">> a\n> > b"), (vec!["a".into(), "b".into()], 1));
        assert_eq!(read("| a\n|   b"), (vec!["a".into(), "  b".into()], 1));
        assert_eq!(read("> a\nb"), (vec!["> a".into(), "b".into()], 0));
        assert_eq!(read(""), (Vec::new(), 0));
    }

    #[test]
    fn colours_carriage_returns_and_odd_spaces_are_left_out() {
        assert_eq!(read("\u{1b}[1;32mnode\u{1b}[0m\u{a0}0\r\n"), (vec!["node 0".into()], 0));
        assert_eq!(read("\u{feff}a\u{1b}"), (vec!["a".into()], 0));
    }

    #[test]
    fn prompts_are_distinguished_from_output() {
        for line in ["[user@host ~]$ numactl -H", "$ lscpu", "root@box:~# numactl -H", "host%"] {
            assert!(is_prompt(line), "{line}");
        }
        for line in ["node 0 cpus: 0 1", "  0:  10  20", "available: 2 nodes (0-1)"] {
            assert!(!is_prompt(line), "{line}");
        }
    }
}
