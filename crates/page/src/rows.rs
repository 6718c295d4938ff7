//! Figures as rows, the source of the formats for other programs.

use std::collections::BTreeMap;

/// The content of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Part of the row's identity.
    Label,
    /// A text about the row.
    Text,
    /// The name of the row's metric.
    Metric,
    /// The unit of the row's values.
    Unit,
    /// A value in this unit, or in the row's unit if it is empty.
    Value(&'static str),
}

/// Rows of figures, under one header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// A name for a row, in a word or two: `fleet outlier`.
    pub of: &'static str,
    /// The columns: a name in snake case, and the content.
    pub columns: Vec<(&'static str, Holds)>,
    /// The rows, with one field per column; empty where there is no value.
    pub rows: Vec<Vec<String>>,
}

impl Rows {
    /// Returns a table without rows.
    pub const fn new(of: &'static str) -> Self {
        Self { of, columns: Vec::new(), rows: Vec::new() }
    }

    /// Adds one column for each name.
    pub fn with<const N: usize>(mut self, holds: Holds, names: [&'static str; N]) -> Self {
        self.columns.extend(names.map(|name| (name, holds)));
        self
    }

    /// Adds columns that identify a row.
    pub fn labels<const N: usize>(self, names: [&'static str; N]) -> Self {
        self.with(Holds::Label, names)
    }

    /// Adds columns with text about the row.
    pub fn texts<const N: usize>(self, names: [&'static str; N]) -> Self {
        self.with(Holds::Text, names)
    }

    /// Adds columns of values in a unit; an empty unit means that of the row.
    pub fn values<const N: usize>(self, unit: &'static str, names: [&'static str; N]) -> Self {
        self.with(Holds::Value(unit), names)
    }

    /// Adds these rows.
    pub fn rows(mut self, rows: impl IntoIterator<Item = Vec<String>>) -> Self {
        self.rows.extend(rows);
        self
    }

    /// Renders CSV (RFC 4180, except that lines end in `\n`): a header, then one line per row.
    pub fn csv(&self) -> String {
        let header: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        let line = |row: &Vec<String>| {
            let field = |((_, holds), field): (&(&str, Holds), &String)| match holds {
                Holds::Value(_) => field.clone(),
                _ => quote(field),
            };
            let fields: Vec<String> = self.columns.iter().zip(row).map(field).collect();
            fields.join(",") + "\n"
        };
        header.join(",") + "\n" + &self.rows.iter().map(line).collect::<String>()
    }

    /// Renders the OpenMetrics text format, with a gauge for each column of values and metric, in
    /// base units and without timestamps, so that Prometheus's textfile collector accepts it;
    /// `None` without values. <https://prometheus.io/docs/specs/om/open_metrics_spec/>
    pub fn openmetrics(&self) -> Option<String> {
        let columns = self.columns.iter().enumerate();
        let values: Vec<(usize, &str, &str)> = columns
            .filter_map(|(at, (name, holds))| match holds {
                Holds::Value(unit) => Some((at, *name, *unit)),
                _ => None,
            })
            .collect();
        let mut families: Vec<Family> = Vec::new();
        for (at, column, unit) in &values {
            for row in &self.rows {
                let Some(value) = row[*at].parse().ok().filter(|value: &f64| value.is_finite())
                else {
                    continue;
                };
                let unit = if unit.is_empty() { self.of_row(row, Holds::Unit) } else { unit };
                let base = BaseUnit::of(unit);
                let family = self.family(column, self.of_row(row, Holds::Metric), &base);
                let known = families.iter().position(|known| known.name == family.name);
                let place = known.unwrap_or_else(|| {
                    families.push(family);
                    families.len() - 1
                });
                families[place].samples.insert(self.labels_of(row), base.convert(value));
            }
        }
        let text: String = families.iter().map(Family::text).collect();
        (!values.is_empty()).then(|| text + "# EOF\n")
    }

    /// Returns the row's field in the column with this content; empty if there is none.
    fn of_row<'a>(&self, row: &'a [String], wanted: Holds) -> &'a str {
        let at = self.columns.iter().position(|(_, holds)| *holds == wanted);
        at.and_then(|at| row.get(at)).map_or("", String::as_str)
    }

    fn family(&self, column: &str, metric: &str, base: &BaseUnit) -> Family {
        let stem = ["bytes", "percent", "ns", "s", "pages"]
            .iter()
            .find_map(|unit| column.strip_suffix(unit).and_then(|stem| stem.strip_suffix('_')));
        let stem = if base.name.is_empty() { column } else { stem.unwrap_or(column) };
        let parts = ["numalab", self.of, metric, stem, base.name].into_iter();
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
        let what = [stem, metric].into_iter().filter(|part| !part.is_empty());
        let what: Vec<String> = what.map(|part| part.replace(['_', '-'], " ")).collect();
        Family {
            name: parts.join("_").chars().map(letter).collect(),
            unit: base.name,
            help: format!("{} of each {}", what.join(", "), self.of),
            samples: BTreeMap::new(),
        }
    }

    /// Returns `cell="a",node="0"`.
    fn labels_of(&self, row: &[String]) -> String {
        let labels = self
            .columns
            .iter()
            .zip(row)
            .filter(|((_, holds), field)| *holds == Holds::Label && !field.is_empty());
        let labels = labels.map(|((name, _), field)| {
            let field = field.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            format!("{name}=\"{field}\"")
        });
        labels.collect::<Vec<_>>().join(",")
    }
}

/// A unit without prefix, and the factor to convert to it.
struct BaseUnit {
    name: &'static str,
    times: f64,
    per: f64,
}

impl BaseUnit {
    /// Returns the base unit of a unit and its factor; counts have no unit.
    fn of(unit: &str) -> Self {
        let (name, times, per) = match unit {
            "ns" => ("seconds", 1.0, 1e9),
            "s" => ("seconds", 1.0, 1.0),
            "GB/s" => ("bytes_per_second", 1e9, 1.0),
            "GHz" => ("hertz", 1e9, 1.0),
            "%" => ("ratio", 1.0, 100.0),
            "x" => ("ratio", 1.0, 1.0),
            "bytes" => ("bytes", 1.0, 1.0),
            "pages/s" => ("pages_per_second", 1.0, 1.0),
            _ => ("", 1.0, 1.0),
        };
        Self { name, times, per }
    }

    fn convert(&self, value: f64) -> f64 {
        value * self.times / self.per
    }
}

/// All samples of one metric name.
struct Family {
    name: String,
    unit: &'static str,
    help: String,
    /// The values by labels, which are unique.
    samples: BTreeMap<String, f64>,
}

impl Family {
    fn text(&self) -> String {
        let Self { name, unit, help, .. } = self;
        let mut text = format!("# TYPE {name} gauge\n");
        if !unit.is_empty() {
            text.push_str(&format!("# UNIT {name} {unit}\n"));
        }
        text.push_str(&format!("# HELP {name} {help}\n"));
        for (labels, value) in &self.samples {
            text.push_str(&format!("{name}{{{labels}}} {value}\n"));
        }
        text
    }
}

/// Formats a value, or returns an empty string.
pub fn optional(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Quotes a field if RFC 4180 requires it. A field that a spreadsheet would take for a formula is
/// prefixed with an apostrophe.
fn quote(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_numbers_and_a_text_is_quoted_where_it_must_be_and_no_formula() {
        let rows = Rows::new("cell").texts(["text"]).values("%", ["change_percent"]);
        let texts = ["plain", "a,b", "say \"a\"", "two\nlines", "=1+1", "+1", "-1", "@sum", "a-b"];
        let rows = rows.rows(texts.map(|text| vec![text.to_owned(), "-2".to_owned()]));
        let lines = [
            "text,change_percent",
            "plain,-2",
            "\"a,b\",-2",
            "\"say \"\"a\"\"\",-2",
            "\"two\nlines\",-2",
            "'=1+1,-2",
            "'+1,-2",
            "'-1,-2",
            "'@sum,-2",
            "a-b,-2",
        ];
        assert_eq!(rows.csv(), lines.join("\n") + "\n");
    }

    #[test]
    fn a_gauge_has_base_units_and_escaped_labels_and_is_left_out_without_a_value() {
        let rows = Rows::new("cell")
            .labels(["cell"])
            .with(Holds::Metric, ["metric"])
            .with(Holds::Unit, ["unit"])
            .values("", ["median"])
            .values("%", ["change_percent"])
            .texts(["state"]);
        let row = |fields: [&str; 6]| fields.map(str::to_owned).to_vec();
        let rows = rows.rows([
            row(["a\\\"b\nc", "round-trip", "ns", "50", "-2", "precise"]),
            row(["d", "round-trip", "ns", "", "NaN", "failed"]),
        ]);
        assert_eq!(
            rows.openmetrics().as_deref(),
            Some(
                "# TYPE numalab_cell_round_trip_median_seconds gauge\n\
                 # UNIT numalab_cell_round_trip_median_seconds seconds\n\
                 # HELP numalab_cell_round_trip_median_seconds median, round trip of each cell\n\
                 numalab_cell_round_trip_median_seconds{cell=\"a\\\\\\\"b\\nc\"} 0.00000005\n\
                 # TYPE numalab_cell_round_trip_change_ratio gauge\n\
                 # UNIT numalab_cell_round_trip_change_ratio ratio\n\
                 # HELP numalab_cell_round_trip_change_ratio change, round trip of each cell\n\
                 numalab_cell_round_trip_change_ratio{cell=\"a\\\\\\\"b\\nc\"} -0.02\n\
                 # EOF\n"
            )
        );
        assert_eq!(Rows::new("knob").labels(["knob"]).openmetrics(), None);
    }
}
