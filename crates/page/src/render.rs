//! The formats of a page.

use crate::model::Page;
use crate::terminal::Style;
use crate::{html, markdown, terminal};

impl Page {
    /// As text within 80 columns.
    #[must_use]
    pub fn terminal(&self, style: Style) -> String {
        terminal::render(self, style)
    }

    /// As Markdown with GitHub's tables.
    #[must_use]
    pub fn markdown(&self) -> String {
        markdown::render(self)
    }

    /// As one self-contained HTML file that opens offline, follows the reader's light or
    /// dark, and fits a phone and paper.
    #[must_use]
    pub fn html(&self) -> String {
        html::render(self)
    }
}
