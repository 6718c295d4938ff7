//! The times of compared commands.

use numalab_record::study::{Arm, Counted, StudyDocument};
use numalab_stats::Sample;

/// Returns a line for each command: its median and spread, over the runs that the verdict uses.
pub fn command_times(document: &StudyDocument) -> String {
    let mut text = String::new();
    let counted = document.counted(Counted::Undisturbed);
    for (index, treatment) in document.run.treatments.iter().enumerate() {
        let warm_ups = document.run.rules.warm_ups;
        let of_treatment = counted
            .iter()
            .filter(|((block, ..), _)| *block >= warm_ups)
            .filter(|((_, treatment, arm, _), _)| (*treatment, *arm) == (index, Arm::Main));
        let readings = of_treatment.filter_map(|(_, sample)| sample.observation.readings.first());
        let unit = readings.clone().next().map_or("s", |reading| reading.quantity.unit.as_str());
        let values: Vec<f64> = readings.clone().map(|reading| reading.value).collect();
        let Ok(sample) = Sample::new(&values[..]) else { continue };
        let command = treatment.settings.get("command").map(ToString::to_string);
        let command = command.unwrap_or_default();
        let [low, median, high] = [0.25, 0.5, 0.75].map(|share| sample.quantile(share));
        let name = &treatment.name;
        text.push_str(&format!(
            "{name}  {command}: {median:.4} {unit}, half of {} runs {low:.4} to {high:.4}\n",
            values.len()
        ));
    }
    text.push('\n');
    text
}
