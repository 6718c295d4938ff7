//! The formats of a page.

use crate::model::Page;
use crate::terminal::Style;
use crate::{html, markdown, terminal};

impl Page {
    /// Renders the page as text within 80 columns.
    pub fn terminal(&self, style: Style) -> String {
        terminal::render(self, style)
    }

    /// Renders the page as Markdown with GitHub's tables.
    pub fn markdown(&self) -> String {
        markdown::render(self)
    }

    /// Renders the page as one self-contained HTML file that works offline, follows the reader's
    /// light or dark mode, and fits a phone and paper.
    pub fn html(&self) -> String {
        html::render(self)
    }
}
