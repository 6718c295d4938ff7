//! Settings of treatments that are knobs of this system.

use std::collections::{BTreeMap, BTreeSet};

use numalab_host::{Classed, ErrorClass, Root};
use numalab_knobs::{Acts, FileState, Knob, KnobError, Tuning, list};
use numalab_record::study::{Evidence, Notice, Setting, Treatment};
use numalab_study::{BackendError, BackendKind, Scope};
use numalab_workload::Workload;

use crate::exec;

/// The knobs that a study sets, and their previous values.
#[derive(Debug)]
pub(super) struct KnobSettings {
    root: Root,
    /// The prefix of the settings that name these knobs.
    prefix: &'static str,
    tuning: Option<Tuning>,
    held: BTreeSet<String>,
}

/// Returns the knob that a setting names, if it has the prefix and is a knob.
pub(super) fn find(prefix: &str, setting: &str) -> Option<Knob> {
    Knob::find(&Root::live(), setting.strip_prefix(prefix)?).ok()
}

/// Checks that all knobs of these treatments exist, and reports those that cannot have an effect.
pub(super) fn inspect(prefix: &str, treatments: &[Treatment]) -> Result<Vec<Notice>, BackendError> {
    let root = Root::live();
    let mut notices = Vec::new();
    for knob in &knobs(prefix, treatments) {
        match knob.state(&root) {
            FileState::Absent => return Err(lacking(knob, "this kernel does not have it")),
            FileState::Denied(reason) => return Err(lacking(knob, &reason)),
            FileState::Value(_) | FileState::WriteOnly => {}
        }
        if let Acts::No(reason) = knob.acts(&root) {
            notices.push(Notice::KnobWithoutEffect { knob: knob.name().to_owned(), reason });
        }
    }
    Ok(notices)
}

fn knobs(prefix: &str, treatments: &[Treatment]) -> Vec<Knob> {
    let names: BTreeSet<&String> =
        treatments.iter().flat_map(|treatment| treatment.settings.keys()).collect();
    names.into_iter().filter_map(|name| find(prefix, name)).collect()
}

impl KnobSettings {
    /// Prepares without setting any knob. Settings left behind by an earlier run are rejected
    /// before the first of these treatments.
    pub(super) fn prepare(
        prefix: &'static str,
        treatments: &[Treatment],
    ) -> Result<Self, BackendError> {
        let mut prepared = Self { root: Root::live(), prefix, tuning: None, held: BTreeSet::new() };
        if !knobs(prefix, treatments).is_empty() {
            prepared.tuning()?;
        }
        Ok(prepared)
    }

    fn tuning(&mut self) -> Result<&mut Tuning, BackendError> {
        match &mut self.tuning {
            Some(tuning) => Ok(tuning),
            none => Ok(none.insert(Tuning::new(&self.root).map_err(|error| failed(&error))?)),
        }
    }

    /// Sets the treatment's knobs, and restores those that only earlier treatments set.
    pub(super) fn apply(
        &mut self,
        settings: &BTreeMap<String, Setting>,
    ) -> Result<Vec<Evidence>, BackendError> {
        let wanted: Vec<(Knob, String)> = settings
            .iter()
            .filter_map(|(name, value)| Some((find(self.prefix, name)?, value.to_string())))
            .collect();
        let names: BTreeSet<String> =
            wanted.iter().map(|(knob, _)| knob.name().to_owned()).collect();
        let left: Vec<String> = self.held.difference(&names).cloned().collect();
        if left.is_empty() && wanted.is_empty() {
            return Ok(Vec::new());
        }
        self.held = names;
        let (prefix, root) = (self.prefix, self.root.clone());
        let tuning = self.tuning()?;
        for name in &left {
            let knob = Knob::find(&root, name).map_err(|error| failed(&error))?;
            tuning.put_back(&knob).map_err(|error| failed(&error))?;
        }
        let mut evidence = Vec::new();
        for (knob, value) in wanted {
            let applied = tuning.set(&knob, &value).map_err(|error| failed(&error))?;
            let what = format!("{prefix}{}", applied.name);
            evidence.push(Evidence::of(what, applied.wanted, applied.found));
            let left_out = format!("{} left out", knob.name());
            let found = applied.left_out.into_iter();
            evidence.extend(found.map(|found| Evidence::fact(&left_out, found)));
        }
        Ok(evidence)
    }

    pub(super) fn restore(self) -> Result<(), BackendError> {
        match self.tuning {
            Some(mut tuning) => tuning.restore().map_err(|error| failed(&error)),
            None => Ok(()),
        }
    }
}

/// Checks that every setting of a level is one of the backend's, a knob, or used by a command. Reports
/// those that only a user's own program could read.
pub(super) fn check_names(
    scope: &Scope<'_>,
    kind: &BackendKind,
    is_knob: impl Fn(&str) -> bool,
) -> Result<Vec<Notice>, BackendError> {
    let Scope { treatments, workloads } = scope;
    let own = |workload: &Workload| workload.tools.iter().any(|tool| tool.package.is_none());
    let has_own = workloads.iter().any(own);
    let mentions = |part: &str| {
        workloads.iter().any(|workload| workload.command.iter().any(|word| word.contains(part)))
    };
    let names: BTreeSet<&String> =
        treatments.iter().flat_map(|treatment| treatment.settings.keys()).collect();
    let is_known =
        |name: &str| kind.has_level(name) || is_knob(name) || mentions(&format!("{{{name}}}"));
    let mut unknown = names.into_iter().filter(|name| !is_known(name)).peekable();
    if unknown.peek().is_none() {
        return Ok(Vec::new());
    }
    let knobs: Vec<String> = list(&Root::live()).into_iter().map(|knob| knob.name).collect();
    let knobs: Vec<&str> = knobs.iter().map(String::as_str).filter(|name| is_knob(name)).collect();
    let mut notices = Vec::new();
    for name in unknown {
        let variable = exec::variable(name);
        // A user's own program may read it from its environment.
        match (has_own, mentions(&variable)) {
            (true, true) => {}
            (true, false) if kind.nearest_level(name, &knobs).is_none() => {
                notices.push(Notice::OnlyInEnvironment { setting: name.clone(), variable });
            }
            _ => return Err(kind.no_such_level(name, &knobs)),
        }
    }
    Ok(notices)
}

fn lacking(knob: &Knob, reason: &str) -> BackendError {
    BackendError::lacking(
        format!("knob {}: {reason}", knob.name()),
        "`numalab knobs list` shows those that this machine has",
    )
}

fn failed(error: &KnobError) -> BackendError {
    match error.class() {
        ErrorClass::Lacking => BackendError::lacking(error, "all changes were undone"),
        _ => BackendError::failed("knobs", error),
    }
}

#[cfg(test)]
mod tests;
