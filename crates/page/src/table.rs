//! A table, independent of its format.

use crate::mood::Mood;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub align: Align,
}

/// A table: headings, and rows with one text per column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    pub caption: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<String>>,
    /// The mood of each row's last column; empty if it has none.
    pub moods: Vec<Mood>,
}

/// The name of a column, or of several.
pub trait Names {
    fn into_names(self) -> Vec<String>;
}

impl Names for &str {
    fn into_names(self) -> Vec<String> {
        vec![self.to_owned()]
    }
}

impl Names for String {
    fn into_names(self) -> Vec<String> {
        vec![self]
    }
}

impl<const N: usize> Names for [&str; N] {
    fn into_names(self) -> Vec<String> {
        self.map(str::to_owned).to_vec()
    }
}

impl Table {
    /// Returns a table without columns.
    pub fn new(caption: impl Into<String>) -> Self {
        Self { caption: caption.into(), ..Self::default() }
    }

    pub fn words(self, names: impl Names) -> Self {
        self.aligned(names, Align::Left)
    }

    pub fn figures(self, names: impl Names) -> Self {
        self.aligned(names, Align::Right)
    }

    fn aligned(mut self, names: impl Names, align: Align) -> Self {
        let column = |name| Column { name, align };
        self.columns.extend(names.into_names().into_iter().map(column));
        self
    }

    /// Sets the moods, one per row.
    pub fn moods(mut self, moods: impl IntoIterator<Item = Mood>) -> Self {
        self.moods.extend(moods);
        self
    }

    pub fn rows(mut self, rows: impl IntoIterator<Item = Vec<String>>) -> Self {
        self.rows.extend(rows);
        self
    }
}

impl Table {
    /// Removes the columns that contain nothing but dashes.
    pub fn without_empty_columns(mut self) -> Self {
        let is_kept = |at: &usize| {
            self.rows
                .iter()
                .any(|row| row.get(*at).is_some_and(|cell| !matches!(&**cell, "" | "–")))
        };
        let kept: Vec<usize> = (0..self.columns.len()).filter(is_kept).collect();
        self.columns = kept.iter().map(|at| self.columns[*at].clone()).collect();
        for row in &mut self.rows {
            *row = kept.iter().map(|at| row[*at].clone()).collect();
        }
        self
    }
}

/// Returns `text` with every control character replaced, so that a name from a file can neither
/// break a line nor control a terminal.
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '·' } else { c }).collect()
}
