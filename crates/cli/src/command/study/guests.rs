//! Changes of a study of many guests by arguments.

use numalab_record::study::Setting;
use numalab_study::{Level, Study};
use serde_json::Value;

use crate::args::GuestsChange;
use crate::failure::Failure;

/// The kind of world that has guests.
const GUESTS: &str = "guests";

/// Changes the study as asked; whether it is another study than before.
pub(super) fn apply(study: &mut Study, change: &GuestsChange) -> Result<bool, Failure> {
    let settings = settings(change);
    if !(settings.is_empty() && change.guests.is_empty()) && study.world.kind != GUESTS {
        return Err(Failure::bad_input(format!(
            "{}: its world is {}: expected a study of guests for --hypervisor, --on-this-dom0, \
             --emulate-memory and --guests",
            study.name, study.world.kind
        )));
    }
    let samples_before = samples_of_a_block(study);
    let changed = !(settings.is_empty() && change.guests.is_empty() && change.workload.is_empty());
    for (name, value) in settings {
        study.world.settings.insert(name.to_owned(), value);
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
    let share = samples_of_a_block(study) / samples_before;
    study.rules.about_block_s = study.rules.about_block_s.map(|about_s| about_s * share);
    Ok(changed)
}

/// Treatments times workloads, to which the time of a block is about proportional.
fn samples_of_a_block(study: &Study) -> f64 {
    let treatments: usize = study.factors.iter().map(|factor| factor.levels.len()).product();
    (treatments * study.workloads.len()) as f64
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
        study.world.settings.insert("guests".to_owned(), Value::from(number));
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
