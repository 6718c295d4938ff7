//! Marks that terminals and pagers leave in their output.

/// Returns a line without control characters and escape sequences (ECMA-48: `ESC [`, parameters, a
/// letter; xterm: `ESC ]`, a title, BEL; VT100: `ESC (`, a character set) and with ordinary spaces and
/// hyphens.
pub(super) fn plain(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => match characters.next() {
                Some('[') => while characters.next().is_some_and(|c| !c.is_ascii_alphabetic()) {},
                Some(']') => while characters.next().is_some_and(|c| c != '\u{7}') {},
                Some('(' | ')') => {
                    characters.next();
                }
                _ => {}
            },
            '\u{a0}' | '\u{202f}' => plain.push(' '),
            // Word processors and wikis replace the hyphen of a range.
            '\u{2010}'..='\u{2013}' | '\u{2212}' => plain.push('-'),
            '\t' => plain.push('\t'),
            '\u{8}' => {
                plain.pop();
            }
            '\u{feff}' | '\u{200b}' => {}
            _ if character.is_control() => {}
            _ => plain.push(character),
        }
    }
    plain
}

/// Removes the frame that a terminal draws around a pane: `│ text │`, `└──────┘`.
pub(super) fn strip_frame(line: &mut String) {
    let is_drawn = |c: char| ('\u{2500}'..='\u{257f}').contains(&c);
    let text = line.trim();
    let inner =
        text.strip_prefix(['│', '┃', '║']).and_then(|rest| rest.strip_suffix(['│', '┃', '║']));
    if let Some(inner) = inner {
        *line = inner.trim_end().to_owned();
    } else if !text.is_empty() && text.chars().all(is_drawn) {
        line.clear();
    }
}

/// Removes the prompts of `more` and `less`, which leave the text after them on the same line.
pub(super) fn strip_pager(line: &mut String) {
    let text = line.trim();
    let rest = text.strip_prefix("--More--").map(|rest| match rest.split_once(')') {
        Some((share, rest)) if share.starts_with('(') => rest,
        _ => rest,
    });
    let is_range = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    if let Some(rest) = rest {
        *line = rest.trim_start().to_owned();
    } else if matches!(text, ":" | "(END)") || text.strip_prefix("lines ").is_some_and(is_range) {
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_titles_carriage_returns_and_odd_spaces_are_left_out() {
        assert_eq!(plain("\u{1b}[1;32mnode\u{1b}[0m\u{a0}0\r"), "node 0");
        assert_eq!(plain("\u{1b}]0;a title\u{7}b\u{1b}(B\u{1b}[m"), "b");
        assert_eq!(plain("0\u{2013}3,8\u{2011}9"), "0-3,8-9");
        assert_eq!(plain("\u{feff}ax\u{8}\t\u{1b}"), "a\t");
    }

    #[test]
    fn a_pane_has_no_frame() {
        let without = |line: &str| {
            let mut line = line.to_owned();
            strip_frame(&mut line);
            line
        };
        assert_eq!(without("│  0:  10  21   │"), "  0:  10  21");
        assert_eq!(without("└────┘"), "");
        for kept in ["│a", "a│b", "", "|-|"] {
            assert_eq!(without(kept), kept);
        }
    }

    #[test]
    fn only_the_prompt_of_a_pager_is_left_out() {
        let without = |line: &str| {
            let mut line = line.to_owned();
            strip_pager(&mut line);
            line
        };
        for prompt in ["--More--", "--More--(50%)", "(END)", " :", "lines 1-23/40 (END)"] {
            assert_eq!(without(prompt), "", "{prompt}");
        }
        assert_eq!(without("--More--(7%)   node 0 size: 3 MB"), "node 0 size: 3 MB");
        assert_eq!(without("  0:  10  (END)"), "  0:  10  (END)");
    }
}
