//! Views as pages, as rows, and as documents.

mod bar;
mod guests;
mod heap;
mod nodes;
mod process;

use numalab_record::Kind;
use numalab_report::page::{Lead, Mood};
use numalab_report::rows::Rows;
use numalab_report::{Page, Report, document};
use serde::Serialize;

use crate::finding::{Finding, Weight};
use crate::{GuestsView, HeapView, NodesView, ProcessView};

/// Where memory lies now: `{"explore": "nodes", ...}` in JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "explore", rename_all = "kebab-case")]
pub enum View {
    /// By node.
    Nodes(NodesView),
    /// Of a process.
    Process(ProcessView),
    /// Of guests.
    Guests(GuestsView),
    /// In a heap.
    Heap(HeapView),
}

impl Report for View {
    fn page(&self) -> Page {
        let page = match self {
            Self::Nodes(view) => nodes::page(view),
            Self::Process(view) => process::page(view),
            Self::Guests(view) => guests::page(view),
            Self::Heap(view) => heap::page(view),
        };
        Page { brand: "numalab explore".to_owned(), lead: self.lead(), ..page }
    }

    fn json(&self) -> serde_json::Result<String> {
        document(Kind::Explore, self)
    }

    /// A row for each node, of each process or guest.
    fn rows(&self) -> Option<Rows> {
        Some(match self {
            Self::Nodes(view) => nodes::rows(view),
            Self::Process(view) => process::rows(view),
            Self::Guests(view) => guests::rows(view),
            Self::Heap(view) => heap::rows(view),
        })
    }
}

impl View {
    /// What is wrong with its commands, and what could not be seen.
    fn lead(&self) -> Vec<Lead> {
        let (findings, unseen): (&[Finding], &[String]) = match self {
            Self::Nodes(view) => (&view.findings, &view.unseen),
            Self::Process(view) => (&view.findings, &view.unseen),
            Self::Guests(view) => (&view.findings, &view.unseen),
            Self::Heap(view) => (&view.findings, &[]),
        };
        let mut lead: Vec<Lead> = findings.iter().map(found).collect();
        if lead.is_empty() {
            lead.push(Lead::new("Problems", "Nothing wrong is seen.", Mood::Fine));
        }
        let missing = |missing: &String| Lead::new("Not seen", missing.as_str(), Mood::Plain);
        lead.extend(unseen.iter().map(missing));
        lead
    }
}

fn found(finding: &Finding) -> Lead {
    let (name, mood) = match finding.weight {
        Weight::Wrong => ("Wrong", Mood::Bad),
        Weight::Note => ("Note", Mood::Odd),
    };
    Lead { command: finding.mend.clone(), ..Lead::new(name, finding.what.as_str(), mood) }
}
