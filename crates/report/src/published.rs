//! Figures that somebody published, with what follows from them.

use std::ops::Deref;

use numalab_analysis::samples::Published;

use crate::number::{figure, percent};
use crate::table::Table;
use crate::terminal::Style;
use crate::terminal::layout::{table, wrap};

/// Published figures as a page shows them.
#[derive(Debug)]
pub struct PublishedPage<'a>(pub &'a Published);

impl Deref for PublishedPage<'_> {
    type Target = Published;

    fn deref(&self) -> &Published {
        self.0
    }
}

impl PublishedPage<'_> {
    /// The figures with the gains that follow from them.
    #[must_use]
    pub fn text(&self, style: Style) -> String {
        let mut out = table(&self.table(), style);
        for sentence in self.sentences() {
            out.push_str(&format!("\n{}\n", wrap(&sentence, 0)));
        }
        out
    }

    /// The same as Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut out = crate::markdown::table(&self.table());
        for sentence in self.sentences() {
            out.push_str(&format!("\n{}\n", crate::markdown::escape(&sentence)));
        }
        out
    }

    fn table(&self) -> Table {
        let rows = self.rows.iter().map(|row| {
            let gain = self.gain(row);
            let stated = row.gain.map(|(stated, decimals)| format!("{stated:+.decimals$} %"));
            let follows = match row.gain {
                None => "–".to_owned(),
                Some(_) if self.follows(row) => "yes".to_owned(),
                Some((_, decimals)) => format!("no: {gain:+.decimals$} %"),
            };
            vec![
                row.what.clone(),
                figure(row.baseline),
                figure(row.candidate),
                percent(gain),
                stated.unwrap_or_else(|| "–".to_owned()),
                follows,
            ]
        });
        Table::new("Published figures")
            .words("what")
            .figures("baseline")
            .figures("candidate")
            .figures("gain")
            .figures("published")
            .words("follows")
            .rows(rows)
    }

    fn sentences(&self) -> Vec<String> {
        let wrong: Vec<String> = self
            .rows
            .iter()
            .filter(|row| !self.follows(row))
            .filter_map(|row| {
                let (stated, decimals) = row.gain?;
                let gain = self.gain(row);
                Some(format!("{} ({stated:+.decimals$} %, not {gain:+.decimals$} %)", row.what))
            })
            .collect();
        let mut sentences = Vec::new();
        if !wrong.is_empty() {
            sentences.push(format!(
                "Published gains that do not follow from the published figures: {}.",
                wrong.join(", ")
            ));
        }
        sentences.push(
            "Inconclusive: one figure a side says nothing about how the machine varies, so \
             neither better nor worse nor equivalent can be shown. 6 paired runs are the least."
                .to_owned(),
        );
        sentences
    }
}
