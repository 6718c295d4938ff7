//! Page walks that the memory emulator counted while a workload ran.

use std::collections::BTreeMap;

use numalab_record::study::counter;
use serde::Serialize;

use super::StudySummary;

/// The page walks of a workload under each treatment; medians of its samples.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PageWalks {
    /// The workload's name.
    pub workload: String,
    /// One entry per treatment, in order.
    pub treatments: Vec<TreatmentWalks>,
}

/// The page walks of a workload under one treatment.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TreatmentWalks {
    /// The treatment's name.
    pub treatment: String,
    /// Number of walks.
    pub walks: f64,
    /// Entries of page tables that a walk read, on average.
    pub entries_each: Option<f64>,
    /// Largest number of entries that a walk read.
    pub longest_entries: Option<f64>,
    /// Time of translation for each walk, in ns.
    pub ns_each: Option<f64>,
    /// Share of the cpus' time that translation took, in percent.
    pub time_percent: Option<f64>,
}

impl StudySummary<'_> {
    /// Returns the page walks of each workload that counted them under every treatment.
    pub fn page_walks(&self) -> Vec<PageWalks> {
        let workloads = self.document.run.workloads.iter().enumerate();
        let found = workloads.filter_map(|(index, workload)| {
            let counters = self.counters(index);
            let treatments = self.document.run.treatments.iter().enumerate();
            let treatments = treatments.map(|(at, of)| treatment(&counters, at, &of.name));
            let treatments = treatments.collect::<Option<Vec<_>>>()?;
            Some(PageWalks { workload: workload.name.clone(), treatments })
        });
        found.collect()
    }
}

fn treatment(
    counters: &BTreeMap<String, Vec<Option<f64>>>,
    at: usize,
    name: &str,
) -> Option<TreatmentWalks> {
    let value = |counter: &str| *counters.get(counter)?.get(at)?;
    let ratio = |of: Option<f64>, to: Option<f64>| Some(of? / to.filter(|to| *to > 0.0)?);
    let walks = value(counter::WALKS)?;
    let spent_ns = value(counter::TRANSLATION_NS);
    Some(TreatmentWalks {
        treatment: name.to_owned(),
        walks,
        entries_each: ratio(value(counter::REFERENCES), Some(walks)),
        longest_entries: value(counter::LONGEST),
        ns_each: ratio(spent_ns, Some(walks)),
        time_percent: ratio(spent_ns, value(counter::TIME_NS)).map(|share| 100.0 * share),
    })
}
