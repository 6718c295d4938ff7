//! Page, JSON and rows of advice.

mod tables;
mod words;

pub use words::what;

use numalab_page::number::{count, figure, size_words, trimmed};
use numalab_page::rows::{Field, Rows};
use numalab_page::{Lead, Mood, Page};
use numalab_record::shell::command_line;
use numalab_topology::{NodeId, NodeSet};
use words::{change_to_make, judged, signed};

use crate::VerdictWord;
use crate::advice::{
    Advice, AdvisedOption, Candidate, CostsKnown, CrowdedSegment, Prediction, TrialPlace,
    TrialsEnd, WORTH_SHARE, node_list,
};
use crate::document::document_of;
use crate::explore::page::interleave_segment;
use crate::report::Report;

impl Report for Advice {
    fn page(&self) -> Page {
        let best = self.best();
        let mood = if best.is_some() { Mood::Good } else { Mood::Plain };
        let use_it = best.and_then(|option| to_use(option, mood));
        let leads = [
            better_change(self),
            use_it,
            crowded(self),
            cannot_act(self),
            by_what(self),
            noise(self),
            ended(self),
        ];
        let options = (!self.options.is_empty()).then(|| tables::options(self));
        Page {
            brand: "numalab advise".to_owned(),
            title: answer(self, best),
            meta: meta(self),
            lead: leads.into_iter().flatten().collect(),
            parts: [options, tables::commands(self, best)].into_iter().flatten().collect(),
            ..Page::default()
        }
    }

    document_of!(Advice);

    fn rows(&self) -> Option<Rows> {
        let row = |option: &AdvisedOption| {
            let predicted = option.predicted.map_or([const { Field::Empty }; 3], |of| {
                let (low, high) = of.interval_percent;
                [of.change_percent, low, high].map(Field::from)
            });
            let what = [Field::from(what(&option.candidate))];
            what.into_iter().chain(predicted).chain(measured_fields(option)).collect()
        };
        Some(columns().rows(self.options.iter().map(row)))
    }
}

pub(crate) fn columns() -> Rows {
    Rows::new("advice")
        .labels(["option"])
        .values(
            "%",
            [
                ("predicted_percent", "the predicted change of the run time"),
                ("predicted_low_percent", "the lower end of the prediction's interval"),
                ("predicted_high_percent", "the upper end of the prediction's interval"),
                ("measured_percent", "the measured change of the run time"),
                ("measured_low_percent", "the lower end of the measured change's 95 % interval"),
                ("measured_high_percent", "the upper end of the measured change's 95 % interval"),
            ],
        )
        .texts(["trial"])
}

/// Returns the measured change, its interval and the outcome of the trial, or the reason why there
/// was none.
fn measured_fields(option: &AdvisedOption) -> [Field; 4] {
    let measured = option.measured.as_ref();
    let ends = measured.and_then(|of| of.interval_percent);
    [
        measured.map(|of| of.change_percent).into(),
        ends.map(|(low, _)| low).into(),
        ends.map(|(_, high)| high).into(),
        words::verdict(option).into(),
    ]
}

/// Returns the first sentence: the answer.
fn answer(advice: &Advice, best: Option<&AdvisedOption>) -> String {
    let waits = advice.profile.map_or_else(String::new, |profile| {
        format!(
            "{} % of the time is spent waiting for memory",
            trimmed(100.0 * profile.memory_share)
        )
    });
    let with_waits = |words: &str| match waits.as_str() {
        "" => words.to_owned(),
        waits => format!("{words}: {waits}"),
    };
    let is_tried = advice.options.iter().any(|option| option.measured.is_some());
    let hardly = advice.profile.is_some_and(|profile| profile.memory_share < WORTH_SHARE);
    match best {
        None if hardly && !is_tried => with_waits("No gain possible"),
        None if is_open(advice) => {
            with_waits("Undecided") + "; more blocks (--blocks) would settle it"
        }
        None if is_lost_in_own(advice) => {
            with_waits("No gain was found")
                + "; every apparent gain is within the noise of the unchanged program"
        }
        None if is_tried => with_waits("No gain was found") + "; nothing tried was faster",
        None if advice.profile.is_none() => "Nothing was tried or predicted".to_owned(),
        None => match uncertain(advice) {
            Some((option, predicted)) => {
                let (low, high) = predicted.interval_percent;
                with_waits("No certain gain")
                    + &format!(
                        "; a trial would decide {}, predicted to change the time by {} % ({} to {})",
                        what(&option.candidate),
                        signed(predicted.change_percent),
                        signed(low),
                        signed(high)
                    )
            }
            None => with_waits("No gain from placement"),
        },
        Some(option) => {
            let found = option.measured.as_ref().map(|of| (of.change_percent, judged(advice)));
            let how = match (&found, advice.place) {
                (None, _) => "predicted",
                (Some(_), TrialPlace::Host) => "measured on this machine",
                (Some(_), TrialPlace::Guest) => "measured in a guest",
                (Some(_), TrialPlace::Emulation) => "measured under emulation",
            };
            let predicted = option.predicted.map_or(0.0, |of| of.change_percent);
            let (change, of) = found.unwrap_or((predicted, "time".to_owned()));
            format!("{}: {} % of the {of}, {how}", what(&option.candidate), signed(change))
        }
    }
}

/// Returns the best option that may gain, but with a prediction that does not exclude a loss.
fn uncertain(advice: &Advice) -> Option<(&AdvisedOption, Prediction)> {
    let predicted = advice.options.iter().filter(|option| !option.lacks_room());
    let predicted = predicted.filter_map(|option| Some((option, option.predicted?)));
    predicted
        .filter(|(_, of)| of.may_gain())
        .min_by(|one, other| one.1.change_percent.total_cmp(&other.1.change_percent))
}

/// Returns `true` if an option was faster, but by less than the program's difference from itself.
fn is_lost_in_own(advice: &Advice) -> bool {
    let measured = advice.options.iter().filter_map(|option| option.measured.as_ref());
    measured
        .filter(|of| of.verdict == VerdictWord::Better)
        .any(|of| !advice.exceeds_own_difference(of))
}

/// Returns `true` if the trials did not settle whether there is a gain.
fn is_open(advice: &Advice) -> bool {
    let measured = advice.options.iter().filter_map(|option| option.measured.as_ref());
    let may_gain =
        |(low, high): (f64, f64)| [low, high].iter().any(|of| advice.as_of_time(*of) < 0.0);
    measured
        .filter(|of| of.verdict == VerdictWord::Inconclusive && of.out.is_none())
        .any(|of| of.interval_percent.is_none_or(may_gain))
}

fn meta(advice: &Advice) -> String {
    let nodes = count(advice.machine.nodes.len(), "node");
    let cpus = count(advice.machine.places.len(), "cpu");
    let of = match advice.place {
        TrialPlace::Host => format!("this machine ({nodes}, {cpus})"),
        TrialPlace::Guest | TrialPlace::Emulation => format!("a machine of {nodes}, {cpus}"),
    };
    let known = advice.profile.map_or_else(String::new, |profile| {
        format!(
            "; {} ms and {} there, with {} % of the threads' time spent waiting for memory",
            figure(profile.elapsed_ns as f64 / 1e6),
            count(profile.threads, "thread"),
            trimmed(100.0 * profile.memory_share)
        )
    });
    format!("{} on {of}{known}", command_line(&advice.command))
}

/// Names the change of the program that is predicted to gain more than what was tried.
fn better_change(advice: &Advice) -> Option<Lead> {
    let option = advice.better_change()?;
    let Prediction { change_percent, interval_percent: (low, high) } = option.predicted?;
    let sentence = format!(
        "{} is predicted to change the time by {} % ({} to {}), more than anything tried. {}",
        what(&option.candidate),
        signed(change_percent),
        signed(low),
        signed(high),
        change_to_make(&option.candidate).unwrap_or_default()
    );
    Some(Lead::new("Change the program", sentence, Mood::Good))
}

/// Returns the single command or source change to make.
fn to_use(option: &AdvisedOption, mood: Mood) -> Option<Lead> {
    if let Some(line) = option.commands.first() {
        let command = Some(line.command.clone());
        let lead = Lead::new("Use", format!("by {}", line.tool), mood);
        return Some(Lead { command, ..lead });
    }
    Some(Lead::new("Use", change_to_make(&option.candidate)?, mood))
}

/// Names shared memory that fills its nodes, whatever its speed.
fn crowded(advice: &Advice) -> Option<Lead> {
    let CrowdedSegment { name, bytes, nodes, over } = advice.crowded.as_ref()?;
    let sentence = format!(
        "{name} of {} is placed by its first touch, and fills {}, so memory requested there comes from other nodes, or the program is killed; interleaving this memory alone leaves room on each node:",
        size_words(*bytes),
        match nodes.as_slice() {
            [node] => format!("node {node}"),
            _ => format!("nodes {}", node_list(nodes)),
        }
    );
    let over: NodeSet = over.iter().copied().map(NodeId).collect();
    let command = Some(interleave_segment(&over, name, *bytes));
    Some(Lead { command, ..Lead::new("Shared memory", sentence, Mood::Odd) })
}

/// Names the options that cannot be tried on this machine, whatever the program.
fn cannot_act(advice: &Advice) -> Option<Lead> {
    if advice.place != TrialPlace::Host {
        return None;
    }
    let machine = &advice.machine;
    let nodes = (machine.memory_nodes(true).len() < 2).then_some(
        "all memory is on one node, so binding, interleaving, first touch and NUMA balancing have \
         no effect",
    );
    let are_ranks =
        advice.options.iter().any(|option| matches!(option.candidate, Candidate::Ranks { .. }));
    let cpus = (machine.groups() < 2 && !machine.has_siblings() && !are_ranks).then_some(
        "all cores share one L3 and have no SMT siblings, so spreading threads has no effect",
    );
    let said: Vec<&str> = [nodes, cpus].into_iter().flatten().collect();
    (!said.is_empty()).then(|| Lead::new("Not here", format!("{}.", said.join("; ")), Mood::Fine))
}

/// Names the source of predictions, if it is not this machine.
fn by_what(advice: &Advice) -> Option<Lead> {
    advice.profile?;
    let measure = "numalab machine capture -o here.toml";
    let lead = |sentence: &str| Lead::new("Predictions", sentence, Mood::Odd);
    match &advice.machine.known {
        CostsKnown::Described => None,
        CostsKnown::Measured(_) => None,
        CostsKnown::Firmware => Some(Lead {
            command: Some(measure.to_owned()),
            ..lead(
                "from the firmware's latencies, and typical ones for caches and TLBs. To measure \
                 this machine (then add --emulate-like here.toml --try-on host):",
            )
        }),
        CostsKnown::Typical => Some(Lead {
            command: Some(measure.to_owned()),
            ..lead(
                "from typical latencies only: this machine was not measured. To measure it (then \
                 add --emulate-like here.toml --try-on host):",
            )
        }),
    }
}

fn noise(advice: &Advice) -> Option<Lead> {
    let trials = advice.trials.as_ref()?;
    let (low, high) = trials.again_percent?;
    let kept = trials.directory.as_ref();
    let kept = kept.map_or_else(String::new, |kept| format!("; samples are in {kept}"));
    if trials.repeats {
        let sentence = format!(
            "two runs of the unchanged program gave identical results, so each candidate ran \
             once{kept}."
        );
        return Some(Lead::new("Trials", sentence, Mood::Fine));
    }
    let sentence = format!(
        "{} blocks; compared with itself, the unchanged program differs by {} to {} %{kept}.",
        trials.blocks,
        signed(low),
        signed(high)
    );
    Some(Lead::new("Trials", sentence, Mood::Fine))
}

/// Describes the reason why trials ended before all blocks.
fn ended(advice: &Advice) -> Option<Lead> {
    let trials = advice.trials.as_ref()?;
    let words = match trials.end {
        TrialsEnd::Done => return None,
        TrialsEnd::NoneLeft => "ended early: no remaining candidate could win.",
        TrialsEnd::BudgetSpent => "the budget ran out before all blocks had run.",
        TrialsEnd::Interrupted => "interrupted.",
    };
    let mood = if trials.end == TrialsEnd::NoneLeft { Mood::Fine } else { Mood::Odd };
    Some(Lead::new("Trials", words, mood))
}
