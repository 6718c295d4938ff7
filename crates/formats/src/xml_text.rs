//! Writer of XML: elements with attributes, indented.

use std::fmt::{Display, Write as _};

/// XML under construction.
#[derive(Debug, Default)]
pub(crate) struct XmlText {
    text: String,
    open: Vec<&'static str>,
}

impl XmlText {
    /// Writes a line unchanged, at the current depth.
    pub(crate) fn line(&mut self, line: &str) {
        let depth = self.open.len() * 2;
        let _ = writeln!(self.text, "{:depth$}{line}", "");
    }

    /// Opens an element; [`XmlText::close`] ends it.
    pub(crate) fn open(&mut self, name: &'static str, attributes: &[(&str, &dyn Display)]) {
        let tag = tag(name, attributes);
        self.line(&format!("<{tag}>"));
        self.open.push(name);
    }

    /// Writes an element without content.
    pub(crate) fn empty(&mut self, name: &str, attributes: &[(&str, &dyn Display)]) {
        let tag = tag(name, attributes);
        self.line(&format!("<{tag}/>"));
    }

    /// Writes an element with text.
    pub(crate) fn text(
        &mut self,
        name: &str,
        attributes: &[(&str, &dyn Display)],
        text: &dyn Display,
    ) {
        let tag = tag(name, attributes);
        self.line(&format!("<{tag}>{}</{name}>", escape(&text.to_string())));
    }

    /// Ends the element opened last.
    pub(crate) fn close(&mut self) {
        if let Some(name) = self.open.pop() {
            self.line(&format!("</{name}>"));
        }
    }

    /// Returns the text; every element must have been closed.
    pub(crate) fn finish(self) -> String {
        debug_assert!(self.open.is_empty(), "{:?} is still open", self.open);
        self.text
    }
}

fn tag(name: &str, attributes: &[(&str, &dyn Display)]) -> String {
    let mut tag = name.to_owned();
    for (key, value) in attributes {
        let _ = write!(tag, " {key}=\"{}\"", escape(&value.to_string()));
    }
    tag
}

/// Replaces the characters that XML reserves.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}
