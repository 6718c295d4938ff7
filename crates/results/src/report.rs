//! The interface of all results: their content, and each format that it is available in.

use numalab_page::rows::Rows;
use numalab_page::{Format, Page, Style};

/// A result that can be shown in every format.
pub trait Report {
    /// Returns the result as words, tables and charts.
    fn page(&self) -> Page;

    /// Returns everything as JSON, including findings.
    ///
    /// # Errors
    /// Any error of `serde_json`.
    fn json(&self) -> serde_json::Result<String>;

    /// Returns the figures as rows; `None` if they make no table.
    fn rows(&self) -> Option<Rows> {
        None
    }

    /// Returns text for a terminal: by default the page.
    fn terminal(&self, style: Style) -> String {
        self.page().terminal(style)
    }

    /// Returns the result in a format of figures: by default the rows; `None` if it has none for it.
    fn exported(&self, format: Format) -> Option<String> {
        self.rows().and_then(|rows| format.of_rows(&rows))
    }
}
