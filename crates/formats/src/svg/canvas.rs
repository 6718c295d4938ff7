//! Rectangles and text in SVG.

use std::fmt::Write as _;

use crate::xml_text::escape;

/// The style of every class, for light and dark pages.
const STYLE: &str = include_str!("style.css");

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) width: u32,
    pub(super) height: u32,
}

/// Converts a count to pixels or columns; no picture has more than 32 bits of either.
pub(super) fn units(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Returns an upper bound on the width of a string at this font size.
pub(super) fn text_width(text: &str, font_size: u32) -> u32 {
    units(text.chars().count()) * font_size * 3 / 5
}

/// A drawing under construction.
#[derive(Default)]
pub(super) struct Canvas {
    body: String,
}

impl Canvas {
    /// Draws a rectangle with rounded corners.
    pub(super) fn rectangle(&mut self, class: &str, x: u32, y: u32, size: Size) {
        let radius = if size.height > 40 { 6 } else { 3 };
        let Size { width, height } = size;
        let _ = writeln!(
            self.body,
            r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}"/>"#
        );
    }

    /// Draws a rectangle with its own colour and without a border.
    pub(super) fn patch(&mut self, colour: &str, x: u32, y: u32, size: Size) {
        let Size { width, height } = size;
        let _ = writeln!(
            self.body,
            r#"<rect fill="{colour}" x="{x}" y="{y}" width="{width}" height="{height}"/>"#
        );
    }

    /// Draws a path of lines with this colour and width.
    pub(super) fn strokes(&mut self, colour: &str, width: u32, path: &str) {
        let _ =
            writeln!(self.body, r#"<path stroke="{colour}" stroke-width="{width}" d="{path}"/>"#);
    }

    /// Draws text on a baseline; the class defines the alignment at `x`.
    pub(super) fn text(&mut self, class: &str, x: u32, y: u32, text: &str) {
        let text = escape(text);
        let _ = writeln!(self.body, r#"<text class="{class}" x="{x}" y="{y}">{text}</text>"#);
    }

    /// Begins a group; [`Canvas::end_group`] ends it.
    pub(super) fn group(&mut self, class: &str) {
        let _ = writeln!(self.body, r#"<g class="{class}">"#);
    }

    pub(super) fn end_group(&mut self) {
        self.body.push_str("</g>\n");
    }

    /// Returns the whole file.
    pub(super) fn finish(self, size: Size, title: &str) -> String {
        let Size { width, height } = size;
        format!(
            concat!(
                r#"<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {height}" "#,
                r#"width="{width}" height="{height}">"#,
                "\n<title>{title}</title>\n<style>\n{style}</style>\n",
                r#"<rect class="page" width="{width}" height="{height}"/>"#,
                "\n{body}</svg>\n",
            ),
            width = width,
            height = height,
            title = escape(title),
            style = STYLE,
            body = self.body,
        )
    }
}
