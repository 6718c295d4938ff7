//! Just enough JSON for results: flat objects and lists, written as they come.

use alloc::string::String;
use core::fmt::{Display, Write};

/// An object under construction in a buffer that is used again and again.
#[derive(Debug)]
pub struct Object<'b> {
    out: &'b mut String,
    first: bool,
}

impl<'b> Object<'b> {
    /// Begins a result of a kind at the start of `buffer`.
    pub fn begin(buffer: &'b mut String, kind: &str) -> Self {
        buffer.clear();
        buffer.push('{');
        let mut object = Self { out: buffer, first: true };
        object.text("t", kind);
        object
    }

    /// Adds a number.
    pub fn number(&mut self, key: &str, value: impl Display) -> &mut Self {
        self.key(key);
        push(self.out, &value);
        self
    }

    /// Adds a text.
    pub fn text(&mut self, key: &str, value: &str) -> &mut Self {
        self.key(key);
        quote(self.out, value);
        self
    }

    /// Adds what `write` displays as a text.
    pub fn display(&mut self, key: &str, value: &impl Display) -> &mut Self {
        let text = alloc::format!("{value}");
        self.text(key, &text)
    }

    /// Adds true or false.
    pub fn flag(&mut self, key: &str, value: bool) -> &mut Self {
        self.number(key, value)
    }

    /// Adds a list of numbers.
    pub fn numbers<T: Display>(
        &mut self,
        key: &str,
        values: impl IntoIterator<Item = T>,
    ) -> &mut Self {
        self.key(key);
        list(self.out, values);
        self
    }

    /// Adds a list of lists of numbers.
    pub fn rows<T: Display, R: IntoIterator<Item = T>>(
        &mut self,
        key: &str,
        rows: impl IntoIterator<Item = R>,
    ) -> &mut Self {
        self.key(key);
        self.out.push('[');
        for row in rows {
            separate(self.out);
            list(self.out, row);
        }
        self.out.push(']');
        self
    }

    /// Ends the object and gives its text.
    pub fn end(self) -> &'b str {
        self.out.push('}');
        self.out
    }

    fn key(&mut self, key: &str) {
        if !core::mem::take(&mut self.first) {
            self.out.push(',');
        }
        quote(self.out, key);
        self.out.push(':');
    }
}

fn list<T: Display>(out: &mut String, values: impl IntoIterator<Item = T>) {
    out.push('[');
    for value in values {
        separate(out);
        push(out, &value);
    }
    out.push(']');
}

/// Writes the comma before all but the first of a list.
fn separate(out: &mut String) {
    if !out.ends_with('[') {
        out.push(',');
    }
}

fn push(out: &mut String, value: &dyn Display) {
    // Writing to a String never fails.
    let _ = write!(out, "{value}");
}

/// Quotes a text (RFC 8259, section 7).
fn quote(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\0'..='\x1f' => push(out, &format_args!("\\u{:04x}", u32::from(character))),
            _ => out.push(character),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_has_its_kind_first_and_quotes_what_must_be() {
        let mut buffer = String::from("old");
        let mut object = Object::begin(&mut buffer, "run");
        object.number("n", 3).flag("ok", true).text("s", "a\"b\\c\nd");
        object.numbers("l", [1, 2]).rows("r", [[1, 2], [3, 4]]).numbers("e", [0_u8; 0]);
        let expected = r#"{"t":"run","n":3,"ok":true,"s":"a\"b\\c\u000ad","l":[1,2],"r":[[1,2],[3,4]],"e":[]}"#;
        assert_eq!(object.end(), expected);
    }
}
