//! Text that was copied from a mail, a ticket, a log or a terminal.

mod prefix;
mod terminal;
mod xml;

use std::cmp::Reverse;

use numalab_topology::{Findings, count};
use serde_json::Value;

use crate::error::ReadError;

pub(crate) use xml::{Xml, line_of, parse, xml_of};

/// Returns the numbered lines of a text without the additions of mail programs, logs and terminals:
/// quote marks, time stamps, escape sequences, carriage returns, non-breaking spaces, the prompts of
/// a pager. A line that quoted-printable text or a shell continues is joined with the next one.
pub(crate) fn lines(text: &str, findings: &mut Findings) -> Vec<(usize, String)> {
    let mut lines = whole(text);
    if let Some(prefix) = prefix::strip(&mut lines) {
        let message = format!("`{prefix}` before each line is ignored, as the prefix of a log");
        findings.note("log-prefix", "all lines".to_owned(), message);
    }
    unquote(&mut lines, findings);
    for (_, line) in &mut lines {
        terminal::strip_pager(line);
    }
    lines
}

/// Checks that the lines are not those of several machines, as `pdsh` and `clush` print them.
///
/// # Errors
/// [`ReadError::Several`] with the prefixes of two machines.
pub(crate) fn check_one_machine(
    format: &'static str,
    lines: &[(usize, String)],
) -> Result<(), ReadError> {
    match prefix::labels_of_machines(lines).as_slice() {
        [(_, first), (line, found), ..] => {
            let (first, line, found) = (first.clone(), *line, found.clone());
            Err(ReadError::Several { format, first, line, found })
        }
        _ => Ok(()),
    }
}

/// Returns the plain lines, with their numbers from 1, joined at `=` (RFC 2045, section 6.7) and at
/// `\`.
fn whole(text: &str) -> Vec<(usize, String)> {
    let mut whole: Vec<(usize, String)> = Vec::new();
    // A string of a log has the whole text in one line.
    let is_escaped = text.contains("\\n") && text.trim().lines().count() == 1;
    let unescaped = || is_escaped.then(|| text.replace("\\r", "").replace("\\n", "\n"));
    let inner = text_in_json(text).or_else(unescaped).or_else(|| text_in_html(text));
    let text = inner.as_deref().unwrap_or(text);
    // Mac OS 9 ended lines in this way, and some editors still do.
    let returns = (!text.contains('\n')).then(|| text.replace('\r', "\n"));
    let text = returns.as_deref().unwrap_or(text);
    for (index, line) in text.lines().enumerate() {
        let mut line = terminal::plain(line);
        terminal::strip_frame(&mut line);
        match whole.last_mut() {
            Some((_, before)) if is_continued(before) => {
                before.pop();
                before.push_str(&line);
            }
            _ => whole.push((index + 1, line)),
        }
    }
    whole
}

/// Returns the text of a part of a web page, or of a mail that is one.
fn text_in_html(text: &str) -> Option<String> {
    const TAGS: [&str; 9] =
        ["<br />", "<br/>", "<br>", "<pre>", "</pre>", "<code>", "</code>", "<p>", "</p>"];
    const ENTITIES: [(&str, &str); 4] =
        [("&nbsp;", " "), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")];
    let is_html = ["<br", "&nbsp;", "<pre>"].iter().any(|mark| text.contains(mark));
    let plain = || TAGS.iter().fold(text.to_owned(), |text, tag| text.replace(tag, ""));
    is_html.then(|| ENTITIES.iter().fold(plain(), |text, (name, of)| text.replace(name, of)))
}

/// Returns the longest string of several lines in a text that is JSON, or in the records of JSON after
/// each `=>`: the output of a command that another tool ran, such as Ansible's `stdout` or
/// `stdout_lines`. Other outputs that begin alike follow it, so that a reader finds several machines.
fn text_in_json(text: &str) -> Option<String> {
    let text = text.trim_start_matches('\u{feff}').trim();
    let is_json = text.starts_with(['{', '[', '"']);
    let whole = is_json.then(|| serde_json::from_str(text).ok()).flatten();
    let values = whole.map_or_else(|| records(text), |value| vec![value]);
    let mut outputs: Vec<String> = values.into_iter().flat_map(outputs).collect();
    outputs.sort_by(|a, b| (Reverse(a.len()), a).cmp(&(Reverse(b.len()), b)));
    outputs.dedup();
    let first_word = |output: &String| output.split_whitespace().next().map(str::to_owned);
    let of_longest = first_word(outputs.first()?);
    outputs.retain(|output| first_word(output) == of_longest);
    Some(outputs.join("\n"))
}

/// Returns the JSON after each `=>`, without the text around it.
fn records(text: &str) -> Vec<Value> {
    let record = |text: &str| {
        let is_record = text.trim_start().starts_with('{');
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        values.next()?.ok().filter(|_| is_record)
    };
    text.split("=> ").skip(1).filter_map(record).collect()
}

/// Returns all strings of several lines in a JSON value.
fn outputs(value: Value) -> Vec<String> {
    let inner: Vec<Value> = match value {
        Value::String(text) => {
            return Some(text.trim_end().to_owned())
                .filter(|text| text.contains('\n'))
                .into_iter()
                .collect();
        }
        Value::Array(values) if values.len() > 1 && values.iter().all(is_line) => {
            let lines: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
            return vec![lines.join("\n").trim_end().to_owned()];
        }
        Value::Array(values) => values,
        Value::Object(fields) => fields.into_iter().map(|(_, value)| value).collect(),
        _ => return Vec::new(),
    };
    inner.into_iter().flat_map(outputs).collect()
}

fn is_line(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.contains('\n'))
}

/// Adds a note about lines that are neither blank nor prompts, which are left out.
pub(crate) fn note_ignored(lines: &[(usize, String)], findings: &mut Findings) {
    let mut texts = lines.iter().filter(|(_, line)| !line.trim().is_empty() && !is_prompt(line));
    let Some((number, first)) = texts.next() else { return };
    let others = match texts.count() {
        0 => String::new(),
        more => format!(", as well as {}", count(more, "more line")),
    };
    let message = format!("`{}` is not understood, so it is ignored{others}", first.trim());
    findings.note("line-unread", format!("line {number}"), message);
}

/// Returns true if a line ends with the mark of a continued line; a heading such as `== x ==` is not
/// continued.
fn is_continued(line: &str) -> bool {
    line.ends_with('\\') || line.ends_with('=') && !line.ends_with("==") && line.len() > 1
}

/// Removes the quote marks of each line. A line that a mail program wrapped has fewer than the
/// others.
fn unquote(lines: &mut [(usize, String)], findings: &mut Findings) {
    let mut first = None;
    for (number, line) in lines {
        let text = unquoted(line);
        if text.len() < line.len() {
            first = first.or(Some(*number));
            *line = text.to_owned();
        }
    }
    if let Some(first) = first {
        let message = "quote marks at the beginnings of lines are ignored".to_owned();
        findings.note("quoted-text", format!("from line {first}"), message);
    }
}

/// Returns a line without its quote marks and the space after each, or without a patch's mark of an
/// added line.
fn unquoted(line: &str) -> &str {
    if let Some(added) = line.strip_prefix('+') {
        return added;
    }
    let mut text = line;
    while let Some(rest) = text.trim_start().strip_prefix(['>', '|']) {
        text = rest.strip_prefix(' ').unwrap_or(rest);
    }
    text
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
    fn lines_that_end_in_carriage_returns_are_separate() {
        assert_eq!(read("a\rb\r").0, ["a", "b"]);
        assert_eq!(read("a\r\nb\r\n").0, ["a", "b"]);
    }

    #[test]
    fn quote_marks_are_left_out_with_one_note_however_many_a_line_has() {
        assert_eq!(
            read("> a\n>\n> b c\n\n"),
            (vec!["a".into(), "".into(), "b c".into(), "".into()], 1)
        );
        assert_eq!(read(">> a\n> > b"), (vec!["a".into(), "b".into()], 1));
        assert_eq!(read("+a\n+  b"), (vec!["a".into(), "  b".into()], 1));
        assert_eq!(read("| a\n|   b"), (vec!["a".into(), "  b".into()], 1));
        assert_eq!(read("X wrote:\n> a\nb"), (vec!["X wrote:".into(), "a".into(), "b".into()], 1));
        assert_eq!(read(""), (Vec::new(), 0));
    }

    #[test]
    fn continued_lines_are_joined_and_keep_the_first_ones_number() {
        let mut findings = Findings::default();
        let lines = lines("cpus: 1=\n6 17 \\\n18\n== b ==\nc", &mut findings);
        let lines: Vec<(usize, &str)> = lines.iter().map(|(n, line)| (*n, line.as_str())).collect();
        assert_eq!(lines, [(1, "cpus: 16 17 18"), (4, "== b =="), (5, "c")]);
    }

    #[test]
    fn a_text_with_escaped_line_breaks_is_read_by_its_lines() {
        assert_eq!(read("a\\nb c\\r\\nd\n"), (vec!["a".into(), "b c".into(), "d".into()], 0));
        assert_eq!(read("a\\nb\nc\n"), (vec!["a\\nb".into(), "c".into()], 0));
        for json in [
            r#"{"rc": 0, "stdout": "a\tb\n\"c\"\n", "stdout_lines": ["a\tb", "\"c\""]}"#,
            r#"[{"stderr": "x\ny", "item": {"stdout": "a\tb\n\"c\"\n"}}]"#,
            r#" "a\tb\n\"c\"\n" "#,
            "ok: [box] => {\n \"out.stdout_lines\": [\n \"a\\tb\",\n \"\\\"c\\\"\"]\n}",
            "TASK [x] ***\nok: [box] => {\"stdout\": \"a\\tb\\n\\\"c\\\"\"}\n\nPLAY RECAP ***\nbox : ok=2\n",
        ] {
            assert_eq!(read(json).0, ["a\tb", "\"c\""], "{json}");
        }
    }

    #[test]
    fn the_outputs_of_several_machines_in_one_record_are_all_read() {
        let json = r#"[{"host": "n1", "stdout": "a 1\nb\n"}, {"host": "n2", "stdout": "a 2\nb c\n",
                      "stderr": "x\ny z"}]"#;
        assert_eq!(read(json).0, ["a 2", "b c", "a 1", "b"]);
        let tasks =
            "ok: [n1] => {\"stdout\": \"a 1\\nb\"}\nok: [n2] => {\"stdout\": \"a 2\\nb c\"}\n";
        assert_eq!(read(tasks).0, ["a 2", "b c", "a 1", "b"]);
    }

    #[test]
    fn a_part_of_a_web_page_is_read_without_its_markup() {
        let text = "<pre>node &nbsp; 0: &lt;not available&gt;<br>\nb<br/>\n</pre>";
        assert_eq!(read(text).0, ["node   0: <not available>", "b"]);
        assert_eq!(read("size: <not available>\na &amp; b").0[1], "a &amp; b");
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
