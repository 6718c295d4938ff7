//! Figures as rows: what formats for other programs are made from.

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// What tells rows apart.
    Label,
    /// Something said about the row.
    Text,
    /// The name of what the row measures.
    Metric,
    /// The unit of the row's values.
    Unit,
    /// A value in the row's unit; in a unit of its own where one stands here.
    Value(&'static str),
}

/// Rows of figures, under one header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// What a row is, in a word or two: `fleet outlier`.
    pub of: &'static str,
    /// The columns: a name in snake case, and what it holds.
    pub columns: Vec<(&'static str, Holds)>,
    /// The rows: as many fields as columns; empty where there is no value.
    pub rows: Vec<Vec<String>>,
}

impl Rows {
    /// No rows yet.
    #[must_use]
    pub const fn new(of: &'static str) -> Self {
        Self { of, columns: Vec::new(), rows: Vec::new() }
    }

    /// The same with one more column for each name.
    #[must_use]
    pub fn with<const N: usize>(mut self, holds: Holds, names: [&'static str; N]) -> Self {
        self.columns.extend(names.map(|name| (name, holds)));
        self
    }

    /// The same with columns that tell rows apart.
    #[must_use]
    pub fn labels<const N: usize>(self, names: [&'static str; N]) -> Self {
        self.with(Holds::Label, names)
    }

    /// The same with columns that say something about the row.
    #[must_use]
    pub fn texts<const N: usize>(self, names: [&'static str; N]) -> Self {
        self.with(Holds::Text, names)
    }

    /// The same with columns of values in a unit; empty for the row's own.
    #[must_use]
    pub fn values<const N: usize>(self, unit: &'static str, names: [&'static str; N]) -> Self {
        self.with(Holds::Value(unit), names)
    }

    /// The same with these rows.
    #[must_use]
    pub fn rows(mut self, rows: impl IntoIterator<Item = Vec<String>>) -> Self {
        self.rows.extend(rows);
        self
    }

    /// As CSV (RFC 4180, but lines end in `\n`): a header, then a line a row.
    #[must_use]
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
}

/// A value, or nothing.
pub fn optional(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// A field quoted where RFC 4180 wants it. A field that a spreadsheet would take
/// for a formula is begun with an apostrophe.
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
    fn values_stay_numbers_and_texts_are_quoted() {
        let rows = Rows::new("host").labels(["host"]).values("%", ["change_percent"]).rows([
            vec!["a,\"b\"".to_owned(), "-3".to_owned()],
            vec!["=1".to_owned(), String::new()],
        ]);
        assert_eq!(rows.csv(), "host,change_percent\n\"a,\"\"b\"\"\",-3\n'=1,\n");
    }
}
