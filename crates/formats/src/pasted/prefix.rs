//! The prefix that a log gives to each line: a time, a service, a rank.

/// Minimum number of lines for a common prefix to count as that of a log.
const FEWEST_LINES: usize = 3;

/// The words of loggers that follow a time.
const LEVELS: [&str; 9] =
    ["DEBUG", "INFO", "NOTICE", "WARN", "WARNING", "ERROR", "stdout", "stderr", "F"];
/// The words that a bar or a comment is made of.
const BARS: [&str; 5] = ["|", "#", "//", ";", "*"];

/// The end of the tag that `mpirun --tag-output` puts before a line, without the colon.
const TAG_END: &str = "<stdout>";

/// Removes the prefix that all lines share, apart from digits that differ, if it looks like a
/// log's, or like the host or task that a parallel shell puts before each line; returns the prefix
/// of the first line.
pub(super) fn strip(lines: &mut [(usize, String)]) -> Option<String> {
    if let Some(first) = strip_numbers(lines) {
        return Some(first);
    }
    let texts =
        || lines.iter().map(|(_, line)| line.as_str()).filter(|line| !line.trim().is_empty());
    let first = texts().next().filter(|_| texts().count() >= FEWEST_LINES)?;
    if let Some(label) = label(first).filter(|label| texts().all(|line| is_labelled(line, label))) {
        let label = label.to_owned();
        for (_, line) in lines {
            let rest = line.strip_prefix(&label).unwrap_or_default();
            *line = rest.strip_prefix(' ').unwrap_or(rest).to_owned();
        }
        return Some(label);
    }
    let common = texts().map(|line| common_characters(first, line)).min()?;
    let shared: String = first.chars().take(common).collect();
    let prefix = shared[..end_of_mark(&shared)?].to_owned();
    let length = prefix.chars().count();
    for (_, line) in lines {
        *line = line.chars().skip(length).collect();
        // A box has a bar at both ends.
        if let Some(text) = line.trim_end().strip_suffix('|').filter(|_| prefix.trim() == "|") {
            *line = text.trim_end().to_owned();
        }
    }
    Some(prefix.trim().to_owned())
}

/// Removes the numbers, from 1, that `cat -n`, `grep -n` and `nl` put before lines of text; returns the
/// first.
fn strip_numbers(lines: &mut [(usize, String)]) -> Option<String> {
    let numbered = lines.iter().filter(|(_, line)| !line.trim().is_empty());
    let numbered: Option<Vec<(usize, &str)>> = numbered.map(|(_, line)| number(line)).collect();
    let numbered = numbered.filter(|numbered| numbered.len() >= FEWEST_LINES)?;
    let is_counted = (1..).zip(&numbered).all(|(expected, (number, _))| expected == *number);
    let (_, first) = numbered.first()?;
    if !is_counted || !first.contains(char::is_alphabetic) {
        return None;
    }
    for (_, line) in lines {
        *line = number(line).map_or_else(String::new, |(_, rest)| rest.to_owned());
    }
    Some("1".to_owned())
}

/// Splits a line into its number and its text.
fn number(line: &str) -> Option<(usize, &str)> {
    let line = line.trim_start();
    let end = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(line.len());
    let (number, rest) = line.split_at(end);
    let text = rest.strip_prefix([':', '\t']).unwrap_or(rest);
    let is_apart = rest.is_empty() || rest.starts_with([':', '\t', ' ']);
    number.parse().ok().filter(|_| is_apart).map(|number| (number, text))
}

/// Returns the label that `pdsh`, `clush` or `srun --label` puts before a line, such as `node17:` or `0:`,
/// or `mpirun --tag-output`: `[1,0]<stdout>:`.
fn label(line: &str) -> Option<&str> {
    let (name, _) = line.split_once(':')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let is_tag = name.starts_with('[') && name.ends_with(TAG_END);
    (is_tag || !name.is_empty() && name.chars().all(is_name)).then(|| &line[..=name.len()])
}

/// Returns the labels of all lines, each with the number of its first line, if there are several and
/// each is that of several lines.
pub(super) fn labels_of_machines(lines: &[(usize, String)]) -> Vec<(usize, String)> {
    let mut labels: Vec<(usize, &str, usize)> = Vec::new();
    for (number, line) in lines.iter().filter(|(_, line)| !line.trim().is_empty()) {
        let Some(label) = label(line).filter(|label| is_labelled(line, label)) else {
            return Vec::new();
        };
        match labels.iter_mut().find(|(_, known, _)| *known == label) {
            Some((_, _, lines)) => *lines += 1,
            None => labels.push((*number, label, 1)),
        }
    }
    let are_several = labels.len() > 1 && labels.iter().all(|(_, _, lines)| *lines >= FEWEST_LINES);
    labels.retain(|_| are_several);
    labels.into_iter().map(|(number, label, _)| (number, label.to_owned())).collect()
}

fn is_labelled(line: &str, label: &str) -> bool {
    let is_apart = |rest: &str| {
        rest.is_empty() || rest.starts_with(' ') || label.trim_end_matches(':').ends_with(TAG_END)
    };
    line.strip_prefix(label).is_some_and(is_apart)
}

/// Returns the number of characters at the beginning of both lines that are the same or are both
/// digits; the kernel's log fills up seconds with spaces.
fn common_characters(a: &str, b: &str) -> usize {
    let is_of_number = |c: char| c == ' ' || c.is_ascii_digit();
    let is_alike = |(a, b): &(char, char)| a == b || is_of_number(*a) && is_of_number(*b);
    a.chars().zip(b.chars()).take_while(is_alike).count()
}

/// Returns the end of the last word that only a log has: a time, or one with a bracket or a bar.
fn end_of_mark(shared: &str) -> Option<usize> {
    let mut end = None;
    let mut place = 0;
    for word in shared.split_inclusive(char::is_whitespace) {
        place += word.len();
        // A last word without a space after it differs between the lines, so it is part of their
        // text.
        let is_level = end.is_some() && LEVELS.contains(&word.trim_end());
        if word.ends_with(char::is_whitespace) && (is_level || is_mark(word.trim_end())) {
            end = Some(place);
        }
    }
    end
}

fn is_mark(word: &str) -> bool {
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    let bytes = word.as_bytes();
    let is_time = |place: usize| {
        bytes[place] == b':'
            && place > 0
            && is_digit(bytes.get(place - 1))
            && is_digit(bytes.get(place + 1))
    };
    BARS.contains(&word) || word.contains(']') || (0..bytes.len()).any(is_time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripped(text: &str) -> (Option<String>, Vec<String>) {
        let mut lines: Vec<(usize, String)> = (1..).zip(text.lines().map(str::to_owned)).collect();
        (strip(&mut lines), lines.into_iter().map(|(_, line)| line).collect())
    }

    #[test]
    fn times_services_and_ranks_before_each_line_are_left_out() {
        for (prefix, next) in [
            ("2026-05-01T12:00:00.10Z ", "2026-05-01T12:00:00.97Z "),
            ("May  1 12:00:00 box numa[12]: ", "May  1 12:00:01 box numa[12]: "),
            ("web-1  | ", "web-1  | "),
            ("12:00:00,123 INFO ", "12:00:01,007 INFO "),
            ("2026-05-01T12:00:00Z stdout F ", "2026-05-01T12:00:00Z stdout F "),
            ("# ", "# "),
            ("// ", "// "),
            ("[1,0]<stdout>: ", "[1,1]<stdout>: "),
            ("[    9.999870] ", "[   10.000012] "),
            ("node17: ", "node17: "),
            ("0: ", "0: "),
        ] {
            let text = format!("{prefix}node 0 a\n{next}node 1 a\n\n{prefix}node 2 b\n");
            let (found, lines) = stripped(&text);
            assert_eq!(found.as_deref(), Some(prefix.trim()), "{text}");
            assert_eq!(lines, ["node 0 a", "node 1 a", "", "node 2 b"], "{text}");
        }
    }

    #[test]
    fn the_labels_of_several_machines_are_found_and_the_fields_of_one_are_not() {
        let labels = |text: &str| {
            let lines: Vec<(usize, String)> = (1..).zip(text.lines().map(str::to_owned)).collect();
            labels_of_machines(&lines)
        };
        let of_two = "n1: a\nn2: a\nn1: b\nn2: b\n\nn2:\nn1: c\n";
        assert_eq!(labels(of_two), [(1, "n1:".to_owned()), (2, "n2:".to_owned())]);
        for text in ["n1: a\nn1: b\nn1: c\n", "a: 1\nb: 2\nc: 3\n", "n1: a\nn2: a\nnode 0 a\n"] {
            assert_eq!(labels(text), [], "{text}");
        }
    }

    #[test]
    fn a_box_has_no_bars_at_either_end() {
        let (found, lines) = stripped("| a 1 |\n| b   |\n| c 2 |\n");
        assert_eq!(
            (found.as_deref(), lines),
            (Some("|"), vec!["a 1".into(), "b".into(), "c 2".into()])
        );
    }

    #[test]
    fn numbers_of_lines_are_left_out() {
        for text in ["1:a: 7\n2:b\n3:\n4:c 1\n", "   1\ta: 7\n   2\tb\n   3\t\n   4\tc 1\n"] {
            assert_eq!(
                stripped(text),
                (
                    Some("1".to_owned()),
                    vec!["a: 7".into(), "b".into(), String::new(), "c 1".into()]
                )
            );
        }
        let of_nl = "     1  a\n       \n     2  b\n     3  c\n";
        assert_eq!(stripped(of_nl).1, ["  a", "", "  b", "  c"]);
        for text in
            ["1: 10 21\n2: 21 10\n3: 21 10\n", "1 a\n3 b\n4 c\n", "1a\n2b\n3c\n", "0 a\n1 b\n2 c\n"]
        {
            assert_eq!(stripped(text).0, None, "{text}");
        }
    }

    #[test]
    fn the_words_that_all_lines_of_an_output_share_are_kept() {
        for text in [
            "node 0 cpus: 0 1\nnode 1 cpus: 2 3\nnode 2 cpus: 4 5\n",
            "NUMA node0 CPU(s):   0-3\nNUMA node1 CPU(s):   4-7\nNUMA node2 CPU(s):   8\n",
            "12:00:00 a\n12:00:00 b\n",
            "  0:  10  21\n  1:  21  10\n  2:  21  10\n",
            "INFO a\nINFO b\nINFO c\n",
            "0:0 a\nx\ny\n",
            "node17: a\nnode18: b\nnode17: c\n",
            "a:1\na:2\na:3\n",
        ] {
            assert_eq!(stripped(text).0, None, "{text}");
        }
    }
}
