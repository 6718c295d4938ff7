//! Changes of a study of many guests by arguments.

use numalab_record::study::Setting;
use numalab_study::{Level, Study};
use serde_json::Value;

use crate::args::GuestsChange;
use crate::failure::Failure;

/// The kind of backend that has guests.
const GUESTS: &str = "guests";

/// Changes the study as asked; whether it is another study than before.
pub(super) fn apply(study: &mut Study, change: &GuestsChange) -> Result<bool, Failure> {
    let settings = settings(change);
    if !(settings.is_empty() && change.guests.is_empty()) && study.backend.kind != GUESTS {
        return Err(Failure::bad_input(format!(
            "{}: its backend is {}: expected a study of guests for --hypervisor, --on-this-dom0, \
             --emulate-memory and --guests",
            study.name, study.backend.kind
        )));
    }
    let work_before = work_of_a_block(study);
    let changed = !(settings.is_empty() && change.guests.is_empty() && change.workload.is_empty());
    for (name, value) in settings {
        study.backend.settings.insert(name.to_owned(), value);
    }
    if change.on_this_dom0 {
        // Whether this Xen knows of nodes was decided when it was booted.
        study.factors.retain(|factor| factor.name != "numa");
    }
    if !change.guests.is_empty() {
        set_guests(study, &change.guests)?;
    }
    if !change.workload.is_empty() {
        keep_workloads(study, &change.workload)?;
    }
    let share = work_of_a_block(study) / work_before;
    study.rules.about_block_s = study.rules.about_block_s.map(|about_s| about_s * share);
    Ok(changed)
}

/// Making a machine takes as long as so many of its guests, and making them all as long as
/// so many workloads; with emulated memory all of it takes twice as long.
const MACHINE_IN_GUESTS: f64 = 3.0;
const MAKING_IN_WORKLOADS: f64 = 4.0;
const EMULATED: f64 = 2.0;

/// To what the time of a block is about proportional.
fn work_of_a_block(study: &Study) -> f64 {
    let treatments: usize = study.factors.iter().map(|factor| factor.levels.len()).product();
    let factor = study.factors.iter().find(|factor| factor.name == "guests");
    let levels: Vec<f64> = factor.map_or_else(
        || study.backend.settings.get("guests").and_then(Value::as_f64).into_iter().collect(),
        |factor| factor.levels.iter().filter_map(Level::number).collect(),
    );
    let guests = levels.iter().sum::<f64>() / levels.len().max(1) as f64;
    let emulated = study.backend.settings.get("emulate-memory") == Some(&Value::Bool(true));
    let each = (MACHINE_IN_GUESTS + guests) * if emulated { EMULATED } else { 1.0 };
    treatments as f64 * each * (MAKING_IN_WORKLOADS + study.workloads.len() as f64)
}

fn settings(change: &GuestsChange) -> Vec<(&'static str, Value)> {
    let mut settings = Vec::new();
    if let Some(hypervisor) = change.hypervisor {
        settings.push(("hypervisor", Value::from(hypervisor.name())));
    }
    if change.on_this_dom0 {
        settings.push(("on-this-dom0", Value::from(true)));
    }
    if change.emulate_memory {
        settings.push(("emulate-memory", Value::from(true)));
    }
    settings
}

/// The levels of the factor `guests`; a single number is no factor but a setting.
fn set_guests(study: &mut Study, guests: &[u16]) -> Result<(), Failure> {
    let mut numbers = guests.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    let name = study.name.clone();
    let factor = study.factors.iter_mut().find(|factor| factor.name == "guests");
    let factor = factor.ok_or_else(|| {
        Failure::bad_input(format!("{name}: --guests: expected a study with a factor guests"))
    })?;
    if let [number] = numbers[..] {
        study.backend.settings.insert("guests".to_owned(), Value::from(number));
        study.factors.retain(|factor| factor.name != "guests");
        return Ok(());
    }
    factor.levels =
        numbers.into_iter().map(|number| Level::Value(Setting::Integer(number.into()))).collect();
    Ok(())
}

fn keep_workloads(study: &mut Study, names: &[String]) -> Result<(), Failure> {
    let known: Vec<String> =
        study.workloads.iter().map(|workload| workload.name().to_owned()).collect();
    if let Some(name) = names.iter().find(|name| !known.contains(name)) {
        let known = known.join(", ");
        return Err(Failure::bad_input(format!("--workload {name}: expected one of {known}")));
    }
    study.workloads.retain(|workload| names.iter().any(|name| name == workload.name()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about_s(change: &GuestsChange) -> f64 {
        let text = numalab_study::bundled_text("guest-scaling").unwrap();
        let mut study = numalab_study::parse(text, "guest-scaling").unwrap();
        apply(&mut study, change).unwrap();
        study.rules.about_block_s.unwrap()
    }

    #[test]
    fn fewer_guests_and_workloads_take_less_time_and_emulated_memory_more() {
        let whole = about_s(&GuestsChange::default());
        let dbench = |change| GuestsChange { workload: vec!["dbench".to_owned()], ..change };
        let one = about_s(&dbench(GuestsChange::default()));
        // A boot is most of it, whatever runs in it.
        assert!(whole / 4.0 < one && one < whole, "{one} of {whole}");
        let four = about_s(&dbench(GuestsChange { guests: vec![4], ..GuestsChange::default() }));
        assert!(one / 16.0 < four && four < one / 4.0, "{four} of {one}");
        let change = GuestsChange { emulate_memory: true, ..GuestsChange::default() };
        assert!(about_s(&dbench(change)) > one);
    }
}
