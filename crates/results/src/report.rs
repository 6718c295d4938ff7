//! What every result gives, and every format that its page can have.

use numalab_page::rows::Rows;
use numalab_page::{Page, Style};

/// A result that can be shown in every format.
pub trait Report {
    /// The result in words, tables and charts.
    fn page(&self) -> Page;

    /// Everything, for programs, findings included.
    ///
    /// # Errors
    /// Whatever `serde_json` cannot write.
    fn json(&self) -> serde_json::Result<String>;

    /// The figures, a row each; `None` where it has none that would make a table.
    fn rows(&self) -> Option<Rows>;

    /// As text for a terminal: the page, where the result has no text of its own.
    fn terminal(&self, style: Style) -> String {
        self.page().terminal(style)
    }

    /// As CSV: the rows, where the result has no CSV of its own; `None` without either.
    fn csv(&self) -> Option<String> {
        self.rows().map(|rows| rows.csv())
    }

    /// In Callgrind's format; `None` of what is not of a program's code.
    fn callgrind(&self) -> Option<String> {
        None
    }
}
