//! Placement of a study's guests on the host's nodes and cpus.

use std::collections::BTreeMap;

use super::StudySummary;

/// Placement of one treatment's guests, over all its samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GuestMap {
    pub treatment: usize,
    /// The share of each guest's memory on each node, 0 to 1; the key `None` is memory without a
    /// node.
    pub memory: BTreeMap<String, BTreeMap<Option<u32>, f64>>,
    /// The cpus that each guest may run on, if known.
    pub cpus: BTreeMap<String, String>,
}

impl StudySummary<'_> {
    /// Returns one map per treatment with guests.
    pub fn guest_maps(&self) -> Vec<GuestMap> {
        let mut maps: BTreeMap<usize, GuestMap> = BTreeMap::new();
        for sample in self.document.samples() {
            let treatment = sample.treatment;
            for place in &sample.observation.guests {
                let map = maps
                    .entry(treatment)
                    .or_insert_with(|| GuestMap { treatment, ..GuestMap::default() });
                let nodes = map.memory.entry(place.guest.clone()).or_default();
                for (node, amount) in &place.memory {
                    *nodes.entry(*node).or_default() += *amount as f64;
                }
                let cpus = place.cpus.iter().map(|cpus| (place.guest.clone(), cpus.clone()));
                map.cpus.extend(cpus);
            }
        }
        for nodes in maps.values_mut().flat_map(|map| map.memory.values_mut()) {
            let all: f64 = nodes.values().sum();
            nodes.values_mut().for_each(|amount| *amount /= all);
        }
        maps.into_values().collect()
    }
}
