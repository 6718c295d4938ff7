//! Page, JSON and rows of current memory placement.

mod commands;
mod guests;
mod heap;
mod nodes;
mod process;
mod ranks;
mod unmet;
mod words;

pub(crate) use commands::interleave_segment;
pub use unmet::unmet_words;

use numalab_page::number::share_words;
use numalab_page::rows::Rows;
use numalab_page::text::cut;
use numalab_page::{Lead, Mood, Page};
use numalab_record::Kind;
use numalab_record::explore::{BytesByNode, View, spread};

use super::document::{ExploreDocument, FoundNow};
use crate::document;
use crate::explore::{Explored, Weight};
use crate::label::whole_sentence;
use crate::report::Report;

impl Report for Explored {
    fn page(&self) -> Page {
        let page = match &self.view {
            View::Nodes(view) => nodes::page(view),
            View::Process(view) => process::page(view),
            View::Guests(view) => guests::page(view),
            View::Ranks(view) => ranks::page(view),
            View::Heap(view) => heap::page(view),
        };
        Page { brand: "numalab explore".to_owned(), lead: lead(self), ..page }
    }

    fn json(&self) -> serde_json::Result<String> {
        let findings = self.findings.iter().map(|finding| FoundNow {
            finding,
            what: words::sentence(finding),
            remedy: finding.what.remedy.as_ref().map(commands::command),
        });
        let of = ExploreDocument { view: &self.view, findings: findings.collect() };
        document(Kind::Explore, &of)
    }

    /// Returns one row per node of each process or guest.
    fn rows(&self) -> Option<Rows> {
        Some(match &self.view {
            View::Nodes(view) => nodes::rows(view),
            View::Process(view) => process::rows(view),
            View::Guests(view) => guests::rows(view),
            View::Ranks(view) => ranks::rows(view),
            View::Heap(view) => heap::rows(view),
        })
    }
}

/// Returns the columns of each view's rows.
pub(crate) fn columns() -> Vec<Rows> {
    let of = [nodes::columns, process::columns, guests::columns, ranks::columns, heap::columns];
    of.map(|columns| columns()).to_vec()
}

/// Returns the problems with their commands, and what could not be read.
fn lead(explored: &Explored) -> Vec<Lead> {
    let found = explored.findings.iter().map(|finding| {
        let (name, mood) = match finding.what.weight {
            Weight::Wrong => ("Wrong", Mood::Bad),
            Weight::Note => ("Note", Mood::Odd),
        };
        let command = finding.what.remedy.as_ref().map(commands::command);
        Lead { command, ..Lead::new(name, whole_sentence(&words::sentence(finding)), mood) }
    });
    let mut lead: Vec<Lead> = found.collect();
    if lead.is_empty() {
        lead.push(Lead::new("Problems", "None found.", Mood::Fine));
    }
    let unseen = explored.view.unseen().iter();
    lead.extend(unseen.map(|unseen| Lead::new("Not visible", words::unseen(unseen), Mood::Plain)));
    lead
}

/// Formats shares by node, largest first, in at most `width` characters: `0: 96 %, 3: 4 %`.
fn shares(bytes: &BytesByNode, width: usize) -> String {
    let all = spread::total(bytes);
    let mut nodes: Vec<_> = bytes.iter().filter(|(_, bytes)| **bytes > 0).collect();
    nodes.sort_by_key(|(_, bytes)| std::cmp::Reverse(**bytes));
    let share = |bytes: u64| share_words(spread::ratio(bytes, all).unwrap_or(0.0));
    let text = nodes.iter().map(|(node, bytes)| format!("{node}: {}", share(**bytes)));
    cut(&text.collect::<Vec<_>>().join(", "), width)
}
