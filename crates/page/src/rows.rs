//! Figures as rows, the source of the formats for other programs.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Part of the row's identity.
    Label,
    Text,
    /// The name of the row's metric.
    Metric,
    /// The unit of the row's values.
    Unit,
    Value {
        /// The column's unit; empty for the row's unit.
        unit: &'static str,
        means: &'static str,
    },
}

/// The part of a gauge's name that stands for the metric of a row.
const METRIC: &str = "METRIC";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gauge {
    /// The gauge's name, with METRIC and UNIT if rows determine them.
    pub name: String,
    pub means: &'static str,
}

/// One field of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    Text(String),
    Count(u64),
    Number(f64),
    /// There is no value.
    Empty,
}

impl Field {
    /// Returns a number rounded to this number of decimal places.
    pub fn rounded(number: f64, places: i32) -> Self {
        let scale = 10_f64.powi(places);
        Self::Number((number * scale).round() / scale)
    }

    /// Returns the field's number, if it is one and finite.
    fn number(&self) -> Option<f64> {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "gauges are floating-point numbers")]
            Self::Count(count) => Some(*count as f64),
            Self::Number(number) => Some(*number).filter(|number| number.is_finite()),
            Self::Text(_) | Self::Empty => None,
        }
    }
}

impl Display for Field {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Count(count) => write!(f, "{count}"),
            // Probabilities can be far below what decimal places show.
            Self::Number(number) if *number != 0.0 && number.abs() < 1e-4 => {
                write!(f, "{number:e}")
            }
            Self::Number(number) => write!(f, "{number}"),
            Self::Empty => Ok(()),
        }
    }
}

impl From<String> for Field {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Field {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u64> for Field {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<usize> for Field {
    fn from(count: usize) -> Self {
        Self::Count(count as u64)
    }
}

impl From<f64> for Field {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl<T: Into<Self>> From<Option<T>> for Field {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Empty, Into::into)
    }
}

/// Rows of figures, under one header.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// A name for a row, in a word or two: `fleet outlier`.
    pub of: &'static str,
    /// The columns: a name in snake case, and the content.
    pub columns: Vec<(&'static str, Holds)>,
    /// The rows, with one field per column.
    pub rows: Vec<Vec<Field>>,
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

    /// Adds columns of values in a unit, each with its meaning; an empty unit means that of the row.
    pub fn values<const N: usize>(
        mut self,
        unit: &'static str,
        columns: [(&'static str, &'static str); N],
    ) -> Self {
        let column = |(name, means)| (name, Holds::Value { unit, means });
        self.columns.extend(columns.map(column));
        self
    }

    /// Adds rows, with a number or nothing in each column of values.
    pub fn rows<F: Into<Field>>(mut self, rows: impl IntoIterator<Item = Vec<F>>) -> Self {
        self.rows.extend(rows.into_iter().map(|row| row.into_iter().map(Into::into).collect()));
        debug_assert!(
            self.values_of()
                .all(|(at, ..)| { self.rows.iter().all(|row| !matches!(row[at], Field::Text(_))) }),
            "a text among the values of {}: no gauge would have it",
            self.of
        );
        self
    }

    /// Renders CSV (RFC 4180, except that lines end in `\n`): a header, then one line per row.
    pub fn csv(&self) -> String {
        let header: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        let line = |row: &Vec<Field>| {
            let field = |field: &Field| match field {
                Field::Text(text) => quote(text),
                Field::Count(_) | Field::Number(_) | Field::Empty => field.to_string(),
            };
            row.iter().map(field).collect::<Vec<_>>().join(",") + "\n"
        };
        header.join(",") + "\n" + &self.rows.iter().map(line).collect::<String>()
    }

    /// Renders the OpenMetrics text format; `None` without values.
    pub fn openmetrics(&self) -> Option<String> {
        openmetrics(&[self])
    }

    /// Returns the gauges that its columns of values become.
    pub fn gauges(&self) -> Vec<Gauge> {
        let has = |wanted| self.columns.iter().any(|(_, holds)| *holds == wanted);
        let metric = if has(Holds::Metric) { METRIC } else { "" };
        let gauge = |(_, name, unit, means): (usize, &str, &str, &'static str)| {
            let base = match unit {
                "" if has(Holds::Unit) => BaseUnit { name: "UNIT", ..BaseUnit::of("") },
                unit => BaseUnit::of(unit),
            };
            Gauge { name: self.name(name, metric, &base), means }
        };
        self.values_of().map(gauge).collect()
    }

    /// Returns position, name, unit and meaning of each column of values.
    fn values_of(&self) -> impl Iterator<Item = (usize, &'static str, &'static str, &'static str)> {
        let columns = self.columns.iter().enumerate();
        columns.filter_map(|(at, (name, holds))| match holds {
            Holds::Value { unit, means } => Some((at, *name, *unit, *means)),
            _ => None,
        })
    }

    fn families(&self) -> Vec<Family> {
        let mut families: Vec<Family> = Vec::new();
        for (at, column, unit, means) in self.values_of() {
            for row in &self.rows {
                let Some(value) = row[at].number() else { continue };
                let of_row = self.of_row(row, Holds::Unit);
                let unit = if unit.is_empty() { &of_row } else { unit };
                let base = BaseUnit::of(unit);
                let family = self.family((column, means), &self.of_row(row, Holds::Metric), &base);
                let known = families.iter().position(|known| known.name == family.name);
                let place = known.unwrap_or_else(|| {
                    families.push(family);
                    families.len() - 1
                });
                families[place].samples.insert(self.labels_of(row), base.convert(value));
            }
        }
        families
    }

    /// Returns the row's field in the column with this content; empty if there is none.
    fn of_row(&self, row: &[Field], wanted: Holds) -> String {
        let at = self.columns.iter().position(|(_, holds)| *holds == wanted);
        at.and_then(|at| row.get(at)).map_or_else(String::new, Field::to_string)
    }

    fn family(&self, (column, means): (&str, &str), metric: &str, base: &BaseUnit) -> Family {
        let of_metric = match metric {
            "" => String::new(),
            metric => format!("{}: ", metric.replace(['_', '-'], " ")),
        };
        Family {
            name: self.name(column, metric, base),
            unit: base.name,
            help: of_metric + means,
            samples: BTreeMap::new(),
        }
    }

    /// Returns the name of a column's gauge: `numalab_cell_latency_median_seconds`.
    fn name(&self, column: &str, metric: &str, base: &BaseUnit) -> String {
        let stem = ["bytes", "percent", "ns", "s", "pages"]
            .iter()
            .find_map(|unit| column.strip_suffix(unit).and_then(|stem| stem.strip_suffix('_')));
        let stem = if base.name.is_empty() { column } else { stem.unwrap_or(column) };
        let metric = if metric == METRIC { metric.to_owned() } else { metric.to_ascii_lowercase() };
        let parts = ["numalab", self.of, &metric, stem, base.name].into_iter();
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        parts.join("_").chars().map(letter).collect()
    }

    /// Returns `cell="a",node="0"`.
    fn labels_of(&self, row: &[Field]) -> String {
        let labels = self.columns.iter().zip(row).filter(|((_, holds), _)| *holds == Holds::Label);
        let labels = labels.map(|(column, field)| (column, field.to_string()));
        let labels = labels.filter(|(_, field)| !field.is_empty());
        let labels = labels.map(|((name, _), field)| {
            let field = field.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            format!("{name}=\"{field}\"")
        });
        labels.collect::<Vec<_>>().join(",")
    }
}

/// Renders gauges in the OpenMetrics text format, one for each column of values and metric, in base
/// units and without timestamps, so that Prometheus's textfile collector accepts them; `None` without
/// columns of values. <https://prometheus.io/docs/specs/om/open_metrics_spec/>
pub fn openmetrics(all: &[&Rows]) -> Option<String> {
    let families = all.iter().flat_map(|rows| rows.families());
    let text: String = families.map(|family| family.text()).collect();
    let has_values = all.iter().any(|rows| rows.values_of().next().is_some());
    has_values.then(|| text + "# EOF\n")
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
            "us" | "µs" => ("seconds", 1.0, 1e6),
            "ms" => ("seconds", 1.0, 1e3),
            "s" => ("seconds", 1.0, 1.0),
            "min" => ("seconds", 60.0, 1.0),
            "KB/s" | "kB/s" => ("bytes_per_second", 1e3, 1.0),
            "MB/s" => ("bytes_per_second", 1e6, 1.0),
            "GB/s" => ("bytes_per_second", 1e9, 1.0),
            "KiB/s" => ("bytes_per_second", 1024.0, 1.0),
            "MiB/s" => ("bytes_per_second", 1_048_576.0, 1.0),
            "GiB/s" => ("bytes_per_second", 1_073_741_824.0, 1.0),
            "MHz" => ("hertz", 1e6, 1.0),
            "GHz" => ("hertz", 1e9, 1.0),
            "%" | "percent" => ("ratio", 1.0, 100.0),
            "x" => ("ratio", 1.0, 1.0),
            "bytes" => ("bytes", 1.0, 1.0),
            "KB" | "kB" => ("bytes", 1e3, 1.0),
            "MB" => ("bytes", 1e6, 1.0),
            "GB" => ("bytes", 1e9, 1.0),
            "KiB" => ("bytes", 1024.0, 1.0),
            "MiB" => ("bytes", 1_048_576.0, 1.0),
            "GiB" => ("bytes", 1_073_741_824.0, 1.0),
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
        let rows =
            Rows::new("cell").texts(["text"]).values("%", [("change_percent", "the change")]);
        let texts = ["plain", "a,b", "say \"a\"", "two\nlines", "=1+1", "+1", "-1", "@sum", "a-b"];
        let rows = rows.rows(texts.map(|text| vec![text.into(), Field::Number(-2.0)]));
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
            .values("", [("median", "the median")])
            .values("%", [("change_percent", "the change")])
            .texts(["state"]);
        let names: Vec<String> = rows.gauges().into_iter().map(|gauge| gauge.name).collect();
        assert_eq!(names, ["numalab_cell_METRIC_median_UNIT", "numalab_cell_METRIC_change_ratio"]);
        let row = |cell: &str, values: [Field; 2]| {
            let labels = [cell, "round-trip", "ns"].map(Field::from).into_iter();
            labels.chain(values).chain(["precise".into()]).collect()
        };
        let rows = rows.rows([
            row("a\\\"b\nc", [Field::Count(50), Field::Number(-2.0)]),
            row("d", [Field::Empty, Field::Number(f64::NAN)]),
        ]);
        assert_eq!(
            rows.openmetrics().as_deref(),
            Some(
                "# TYPE numalab_cell_round_trip_median_seconds gauge\n\
                 # UNIT numalab_cell_round_trip_median_seconds seconds\n\
                 # HELP numalab_cell_round_trip_median_seconds round trip: the median\n\
                 numalab_cell_round_trip_median_seconds{cell=\"a\\\\\\\"b\\nc\"} 0.00000005\n\
                 # TYPE numalab_cell_round_trip_change_ratio gauge\n\
                 # UNIT numalab_cell_round_trip_change_ratio ratio\n\
                 # HELP numalab_cell_round_trip_change_ratio round trip: the change\n\
                 numalab_cell_round_trip_change_ratio{cell=\"a\\\\\\\"b\\nc\"} -0.02\n\
                 # EOF\n"
            )
        );
        assert_eq!(Rows::new("knob").labels(["knob"]).openmetrics(), None);
    }
}
