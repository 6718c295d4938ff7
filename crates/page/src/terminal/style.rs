//! Optional colour.

/// The style of text: with or without ANSI escapes (ECMA-48, SGR).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    #[default]
    Plain,
    /// Colour and weight; the caller decides whether the reader wants them.
    Colour,
}

impl Style {
    pub fn heading(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Returns text of lesser importance.
    pub fn faint(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// Returns the text in the colour for good news.
    pub fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// Returns the text in the colour for warnings.
    pub fn warning(self, text: &str) -> String {
        self.paint("33", text)
    }

    /// Returns text that signals something wrong.
    pub fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }

    /// Returns text in the colour of drawn marks.
    pub fn mark(self, text: &str) -> String {
        self.paint("36", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Colour => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        }
    }
}
