//! A page of sentences, tables and curves, for results that are no [`crate::Summary`].

mod markdown;
mod terminal;

use crate::html;
use crate::table::Table;
use crate::terminal::Style;

/// A page before it has a format.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// What made it, above the title.
    pub brand: String,
    /// What it is about.
    pub title: String,
    /// Where it comes from.
    pub meta: String,
    /// What matters most, in a few sentences.
    pub lead: Vec<Lead>,
    /// The parts, in order.
    pub parts: Vec<Part>,
}

/// One of the sentences that come first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lead {
    /// What it is about, in a word or two.
    pub name: String,
    /// The sentence.
    pub sentence: String,
    /// How it is to be taken.
    pub mood: Mood,
}

/// How a sentence is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// A fact.
    Plain,
    /// All is well.
    Fine,
    /// Something to look at.
    Odd,
}

/// A part of a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// Its heading.
    pub title: String,
    /// What must be said beside the figures.
    pub notes: Vec<String>,
    /// Its curves and tables.
    pub panels: Vec<Figures>,
}

/// A table, and curves of the same figures where they help.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// The curves.
    pub curves: Option<Curves>,
    /// The table; its caption stands for both.
    pub table: Table,
}

/// Curves over one axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    /// What is counted to the right.
    pub x_name: String,
    /// Whether equal ratios are equally long to the right.
    pub x_is_logarithmic: bool,
    /// What is measured upwards, with its unit.
    pub y_name: String,
    /// The curves.
    pub series: Vec<Series>,
}

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
}

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

    /// As one self-contained HTML file.
    #[must_use]
    pub fn html(&self) -> String {
        html::general::render(self)
    }
}

/// Fields of a line of CSV, quoted where they must be (RFC 4180), with a line feed.
#[must_use]
pub fn csv_line(fields: &[String]) -> String {
    let fields: Vec<String> = fields.iter().map(|field| crate::csv::quote(field)).collect();
    fields.join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Page {
        let table = Table::new("latency & <ranks>")
            .words("mode")
            .figures("ns")
            .rows([vec!["a|b".to_owned(), "12".to_owned()]]);
        let series = |name: &str, factor: f64| Series {
            name: name.to_owned(),
            points: (1..=8).map(|x| (f64::from(x), factor * f64::from(x))).collect(),
        };
        let curves = Curves {
            x_name: "ranks".to_owned(),
            x_is_logarithmic: false,
            y_name: "ns per load".to_owned(),
            series: vec![series("sequential", 10.0), series("interleaved", 5.0)],
        };
        let lead =
            Lead { name: "Most".to_owned(), sentence: "it is <so>".to_owned(), mood: Mood::Odd };
        Page {
            brand: "numalab".to_owned(),
            title: "A page".to_owned(),
            meta: "job 1".to_owned(),
            lead: vec![lead],
            parts: vec![Part {
                title: "Curves".to_owned(),
                notes: vec!["a note".to_owned()],
                panels: vec![Figures { curves: Some(curves), table }],
            }],
        }
    }

    #[test]
    fn every_format_has_the_sentences_the_notes_and_the_figures() {
        let page = page();
        let (text, markdown, html) = (page.terminal(Style::Plain), page.markdown(), page.html());
        assert!(
            text.contains("it is <so>") && text.contains("a note") && text.contains("▁"),
            "{text}"
        );
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(markdown.contains("| a\\|b | 12 |"), "{markdown}");
        assert!(html.contains("it is &lt;so&gt;") && html.contains("sequential"), "{html}");
        assert_eq!(html.matches("class=\"curve c").count(), 2);
        assert!(!html.contains("<so>"));
    }
}
