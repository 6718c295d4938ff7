//! The JSON of `lscpu -J`: the plain output as fields, or with `-e` a list of cpus.

use std::fmt::Write as _;

use numalab_topology::Findings;
use serde_json::Value;

use super::row::{Place, Row};
use crate::error::ReadError;
use crate::pasted;

const FORMAT: &str = "lscpu -J";

/// The form of the JSON.
pub(super) enum Content {
    /// The rows of a table.
    Rows(Vec<Row>),
    /// The lines of the plain output.
    Lines(String),
}

/// Returns the content of the JSON in a text, which may have other text around it; `None` for any
/// other text.
pub(super) fn content(
    lines: &[(usize, String)],
    findings: &mut Findings,
) -> Option<Result<Content, ReadError>> {
    let first = lines.iter().position(|(_, line)| line.trim_start().starts_with('{'))?;
    let is_end = |(_, line): &(usize, String)| line.trim_end().ends_with('}');
    let last = lines.iter().rposition(is_end).filter(|&last| last >= first)?;
    let (before, after) = (&lines[..first], &lines[last + 1..]);
    if before.iter().any(|(_, line)| line.contains("CPU(s)")) {
        return None;
    }
    pasted::note_ignored(&[before, after].concat(), findings);
    let mut json = String::new();
    for (_, line) in &lines[first..=last] {
        // `lscpu` of util-linux 2.38 prints an unknown number as `-`, which is not JSON.
        let line = line.trim_end();
        match line.trim_end_matches(',').strip_suffix(": -") {
            Some(key) => {
                let comma = if line.ends_with(',') { "," } else { "" };
                json += &format!("{key}: null{comma}");
            }
            None => json += line,
        }
        json.push('\n');
    }
    Some(content_of(&json))
}

fn content_of(json: &str) -> Result<Content, ReadError> {
    let value: Value = serde_json::from_str(json)
        .map_err(|error| ReadError::Markup { format: FORMAT, message: error.to_string() })?;
    if let Some(cpus) = value.get("cpus").and_then(Value::as_array) {
        let rows = cpus.iter().enumerate().map(|(index, cpu)| row(Place::Item(index), cpu));
        return rows.collect::<Result<_, _>>().map(Content::Rows);
    }
    let Some(fields) = value.get("lscpu").and_then(Value::as_array) else {
        let what = "list `lscpu` or `cpus`, as `lscpu -J` and `lscpu -J -e` print them";
        return Err(ReadError::Absent { format: FORMAT, what });
    };
    let mut lines = String::new();
    add_lines(fields, &mut lines);
    Ok(Content::Lines(lines))
}

fn row(place: Place, cpu: &Value) -> Result<Row, ReadError> {
    let cells = cpu.as_object().ok_or_else(|| place.wrong(&cpu.to_string(), "an object"))?;
    let values = cells.iter().map(|(title, value)| {
        let value = match value {
            Value::Null => String::new(),
            Value::String(text) => text.trim().to_owned(),
            other => other.to_string(),
        };
        (title.as_str(), value)
    });
    let values: Vec<(&str, String)> = values.collect();
    Row::of(place, values.iter().map(|(title, value)| (*title, value.as_str())))
}

/// Adds a line for each field, and for those below it.
fn add_lines(fields: &[Value], lines: &mut String) {
    for field in fields {
        let text = |key| field.get(key).and_then(Value::as_str).unwrap_or_default();
        let _ = writeln!(lines, "{} {}", text("field"), text("data"));
        if let Some(below) = field.get("children").and_then(Value::as_array) {
            add_lines(below, lines);
        }
    }
}
