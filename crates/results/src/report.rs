//! The interface of all results: their content, and each format that it is available in.

use numalab_page::rows::Rows;
use numalab_page::{Page, Style};

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

    /// Returns CSV: by default the rows; `None` if there are none.
    fn csv(&self) -> Option<String> {
        self.rows().map(|rows| rows.csv())
    }

    /// Returns gauges in the OpenMetrics text format: by default those of the rows; `None` without
    /// values.
    fn openmetrics(&self) -> Option<String> {
        self.rows().and_then(|rows| rows.openmetrics())
    }

    /// Returns the result in Callgrind's format; `None` if it is not about a program's code.
    fn callgrind(&self) -> Option<String> {
        None
    }
}
