//! Page, JSON and rows of a run.

mod bandwidth;
mod c2c;
mod charts;
mod latency;
mod loaded;
mod oddity;
mod others;
mod provenance;
pub(crate) mod rows;
mod sentences;
mod tiles;
mod tlb;

pub(crate) use charts::matrix_panel;
pub(crate) use oddity::sentence;

use numalab_page::number::{count, size};
use numalab_page::rows::Rows;
use numalab_page::{Lead, Mood, Page, Part};
use numalab_record::Civil;

use super::document::RunDocument;
use crate::report::Report;
use crate::run::Summary;

impl Report for Summary<'_> {
    fn page(&self) -> Page {
        Page {
            brand: format!("numalab {} {}", self.run.version, self.run.name),
            title: format!("Memory placement on {}", self.machine_name()),
            meta: meta(self),
            lead: lead(self),
            tiles: tiles::tiles(self).into_iter().chain(c2c::tile(self)).collect(),
            parts: parts(self),
            ..Page::default()
        }
    }

    /// Returns the record with every raw sample and all figures.
    fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(&RunDocument::of(self))
    }

    /// Returns one row per cell and metric.
    fn rows(&self) -> Option<Rows> {
        Some(rows::rows(self))
    }
}

fn meta(summary: &Summary<'_>) -> String {
    let (run, machine) = (summary.run, &summary.run.machine);
    let progress = &summary.progress;
    let model = run.environment.text("cpu_model").map(str::to_owned);
    let parts = [
        model.filter(|model| model != summary.machine_name()),
        Some(count(machine.nodes.len(), "node")),
        Some(count(machine.online_cpus().len(), "cpu")),
        Some(size(machine.memory_bytes())).filter(|_| machine.memory_bytes() > 0),
        Some(format!(
            "{} of {}",
            progress.precise + progress.budget_spent,
            count(progress.planned, "cell")
        )),
        Some(Civil::of(run.started_unix_ms).minute()),
        run.label.clone(),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(" · ")
}

fn lead(summary: &Summary<'_>) -> Vec<Lead> {
    let odd = if summary.findings.is_empty() { Mood::Fine } else { Mood::Odd };
    let [remote, caches, anomalies] = sentences::sentences(summary);
    let measured = match bandwidth::sentence(summary) {
        Some(bandwidth) => vec![("Bandwidth", bandwidth)],
        None => vec![("Remote access", remote), ("Caches", caches)],
    };
    let measured = measured.into_iter().map(|(name, text)| Lead::new(name, text, Mood::Plain));
    measured.chain([Lead::new("Anomalies", anomalies, odd)]).collect()
}

fn parts(summary: &Summary<'_>) -> Vec<Part> {
    let all = [
        latency::single(summary),
        latency::matrix(summary),
        latency::curve(summary),
        latency::walk(summary),
        tlb::tlb(summary),
        bandwidth::part(summary),
        loaded::loaded(summary),
        c2c::part(summary),
        others::part(summary),
        provenance::oddities(summary),
        provenance::placement(summary),
        provenance::unfinished(summary),
        provenance::environment(summary),
        provenance::method(summary),
    ];
    all.into_iter().flatten().collect()
}
