//! Two commands run alternately as a study.

use numalab_places::BACKENDS;
use numalab_record::study::{Counted, FactorKind, Rules, Setting, StudyDocument};
use numalab_study::{BackendSpec, Factor, Level, NamedLevel, ReadyStudy, Study};
use numalab_workload::{MetricSpec, WorkloadSpec};

use super::MARGIN;
use crate::args::{CompareArgs, StudyShow};
use crate::command::study::begin;
use crate::failure::Failure;

/// Runs both commands in random blocks, and reports which is better.
pub(super) fn run(args: &CompareArgs, words: &[String]) -> Result<(), Failure> {
    let ready = ReadyStudy::of(&study(args, words), "compare", BACKENDS)?;
    let show = StudyShow { fail_if: args.fail_if, format: args.format };
    begin(&ready, &args.output, args.dry_run, &show, times)
}

/// Prints a line for each command: its median and spread, over the runs that the verdict uses.
fn times(document: &StudyDocument) -> String {
    let mut text = String::new();
    let counted = document.counted(Counted::Undisturbed);
    for (index, treatment) in document.run.treatments.iter().enumerate() {
        let warm_ups = document.run.rules.warm_ups;
        let of_treatment = counted
            .iter()
            .filter(|((block, treatment, ..), _)| *treatment == index && *block >= warm_ups);
        let readings = of_treatment.filter_map(|(_, sample)| sample.observation.readings.first());
        let unit = readings.clone().next().map_or("s", |reading| reading.quantity.unit.as_str());
        let values: Vec<f64> = readings.clone().map(|reading| reading.value).collect();
        let Ok(sample) = numalab_stats::Sample::new(&values[..]) else { continue };
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

fn study(args: &CompareArgs, words: &[String]) -> Study {
    let level = |(name, command): (&str, &String)| {
        let set = [("command".to_owned(), Setting::Text(command.clone()))].into();
        Level::Named(NamedLevel { name: name.to_owned(), set })
    };
    let metric = MetricSpec::of_command(args.metric.clone(), args.better);
    let rules = Rules {
        blocks: args.blocks,
        margin_percent: args.margin.unwrap_or(MARGIN),
        seed: args.seed,
        ..Rules::default()
    };
    Study {
        name: "compare".to_owned(),
        question: format!("Is `{}` better than `{}`?", words[1], words[0]),
        note: None,
        backend: BackendSpec::default(),
        rules,
        factors: vec![Factor {
            name: "command".to_owned(),
            kind: FactorKind::Choice,
            levels: ["A", "B"].into_iter().zip(words).map(level).collect(),
        }],
        workloads: vec![WorkloadSpec {
            name: Some("shell".to_owned()),
            command: Some(["sh", "-c", "{command}"].map(str::to_owned).to_vec()),
            metric: vec![metric],
            ..WorkloadSpec::default()
        }],
        published: Vec::new(),
    }
}
