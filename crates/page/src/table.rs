//! A table before it has a format.

use crate::mood::Mood;

/// On which side a column's text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Figures.
    Right,
}

/// One column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its heading.
    pub name: String,
    /// Its side.
    pub align: Align,
}

/// A table: headings and rows of as many texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
    /// How the last column of each row is to be taken; empty where that says nothing.
    pub moods: Vec<Mood>,
}

impl Table {
    /// A table without columns.
    #[must_use]
    pub fn new(caption: impl Into<String>) -> Self {
        Self { caption: caption.into(), ..Self::default() }
    }

    /// With one more column of words.
    #[must_use]
    pub fn words(mut self, name: impl Into<String>) -> Self {
        self.columns.push(Column { name: name.into(), align: Align::Left });
        self
    }

    /// With one more column of figures.
    #[must_use]
    pub fn figures(mut self, name: impl Into<String>) -> Self {
        self.columns.push(Column { name: name.into(), align: Align::Right });
        self
    }

    /// With these moods, one a row.
    #[must_use]
    pub fn moods(mut self, moods: impl IntoIterator<Item = Mood>) -> Self {
        self.moods.extend(moods);
        self
    }

    /// With these rows.
    #[must_use]
    pub fn rows(mut self, rows: impl IntoIterator<Item = Vec<String>>) -> Self {
        self.rows.extend(rows);
        self
    }
}

impl Table {
    /// Without the columns that have nothing in any row but dashes.
    #[must_use]
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

/// `text` with every control character replaced, so that a name out of a file can
/// neither break a line nor steer a terminal.
#[must_use]
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '·' } else { c }).collect()
}
