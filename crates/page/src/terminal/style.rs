//! Colour, if it is wanted.

/// Whether text may carry ANSI escapes (ECMA-48, SGR).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Plain text.
    #[default]
    Plain,
    /// With colour and weight; whether the reader wants that, the caller knows.
    Colour,
}

impl Style {
    /// A heading.
    #[must_use]
    pub fn heading(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Something of lesser weight.
    #[must_use]
    pub fn faint(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// Something good.
    #[must_use]
    pub fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// Something to look at.
    #[must_use]
    pub fn warning(self, text: &str) -> String {
        self.paint("33", text)
    }

    /// Something wrong.
    #[must_use]
    pub fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }

    /// A drawn mark.
    #[must_use]
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
