//! Counts the attempts at each cell, and decides which cells are done.

use std::collections::BTreeMap;

use numalab_record::SharedMachine;
use numalab_record::study::{Arm, Rules, SampleEntry, StudyDocument};

/// A cell of the plan: block, treatment, arm, workload.
pub(super) type Cell = (usize, usize, Arm, usize);

pub(super) struct Attempts {
    rules: Rules,
    /// The attempts at each cell in order; true for a disturbed one.
    disturbed: BTreeMap<Cell, Vec<bool>>,
    machine: SharedMachine,
}

impl Attempts {
    pub(super) fn of(document: &StudyDocument, rules: &Rules) -> Self {
        let (disturbed, machine) = (BTreeMap::new(), SharedMachine::default());
        let mut attempts = Self { rules: rules.clone(), disturbed, machine };
        document.samples().for_each(|sample| attempts.push(sample));
        attempts
    }

    pub(super) fn push(&mut self, sample: &SampleEntry) {
        let cell = (sample.block, sample.treatment, sample.arm, sample.workload);
        let disturbed = !sample.observation.disturbances.is_empty();
        self.disturbed.entry(cell).or_default().push(disturbed);
        self.machine.push(sample);
    }

    /// Returns the number of attempts at a cell.
    pub(super) fn count(&self, cell: Cell) -> usize {
        self.disturbed.get(&cell).map_or(0, Vec::len)
    }

    /// Reports whether other load disturbs most samples; repeating them would not help then.
    pub(super) fn machine_is_shared(&self) -> bool {
        self.machine.is_found()
    }

    /// Reports whether a cell is done: it has an undisturbed sample, or as many attempts as the
    /// rules allow. Values do not matter. Warm-ups are taken once, and so is every sample of a
    /// shared machine.
    pub(super) fn is_done(&self, cell: Cell) -> bool {
        // Nothing is concluded from warm-ups, and on a shared machine a repeat is disturbed too.
        let once = cell.0 < self.rules.warm_ups || self.machine_is_shared();
        let most = if once { 1 } else { 1 + self.rules.repeats };
        let attempts = self.disturbed.get(&cell);
        attempts.is_some_and(|disturbed| disturbed.len() >= most || disturbed.contains(&false))
    }

    /// Returns the number of cells that are done.
    pub(super) fn done(&self) -> usize {
        self.disturbed.keys().filter(|cell| self.is_done(**cell)).count()
    }
}

#[cfg(test)]
mod tests;
