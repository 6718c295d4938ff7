//! Page of published figures and their gains.

use numalab_page::number::{figure, percent};
use numalab_page::rows::{Rows, optional};
use numalab_page::{Page, Panel, Part, Table};
use numalab_record::Kind;

use crate::document;
use crate::report::Report;
use crate::samples::document::PublishedGains;
use crate::samples::{Published, PublishedRow};

impl Report for Published {
    fn page(&self) -> Page {
        let part = Part::of("Gains", vec![Panel::table(table(self))]);
        Page {
            brand: "numalab compare".to_owned(),
            title: "Published figures".to_owned(),
            parts: part.map(|part| part.noted(sentences(self))).into_iter().collect(),
            ..Page::default()
        }
    }

    fn json(&self) -> serde_json::Result<String> {
        document(Kind::Published, &PublishedGains::of(self))
    }

    fn rows(&self) -> Option<Rows> {
        let row = |row: &PublishedRow| {
            vec![
                row.what.clone(),
                row.baseline.to_string(),
                row.candidate.to_string(),
                self.gain(row).to_string(),
                optional(row.gain.map(|(gain, _)| gain)),
                optional(row.gain.map(|_| self.follows(row))),
            ]
        };
        let rows = Rows::new("published")
            .labels(["what"])
            .values("", ["baseline", "candidate"])
            .values("%", ["gain_percent", "published_percent"])
            .texts(["follows"]);
        Some(rows.rows(self.rows.iter().map(row)))
    }
}

fn table(of: &Published) -> Table {
    let rows = of.rows.iter().map(|row| {
        let gain = of.gain(row);
        let stated = row.gain.map(|(stated, decimals)| format!("{stated:+.decimals$} %"));
        let follows = match row.gain {
            None => "–".to_owned(),
            Some(_) if of.follows(row) => "yes".to_owned(),
            Some((_, decimals)) => format!("no: {}", range(of, row, decimals)),
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

/// Formats the range of gains, allowing for rounding.
fn range(of: &Published, row: &PublishedRow, decimals: usize) -> String {
    let range = of.gain_range(row);
    format!("{:+.decimals$} to {:+.decimals$} %", range.lo, range.hi)
}

fn sentences(of: &Published) -> Vec<String> {
    let wrong: Vec<String> = of
        .rows
        .iter()
        .filter(|row| !of.follows(row))
        .filter_map(|row| {
            let (stated, decimals) = row.gain?;
            let range = range(of, row, decimals);
            Some(format!("{} ({stated:+.decimals$} %, not {range})", row.what))
        })
        .collect();
    let mut sentences = Vec::new();
    if !wrong.is_empty() {
        sentences.push(format!(
            "Published gains that do not follow from the published figures, even allowing for \
             their rounding: {}.",
            wrong.join(", ")
        ));
    }
    sentences.push(
        "Inconclusive: one figure per side says nothing about how the machine varies, so no other \
         verdict is possible. At least 6 paired runs are needed."
            .to_owned(),
    );
    sentences
}
