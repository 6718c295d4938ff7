//! Tables of options and their command lines.

use numalab_page::{Chart, IntervalRow, Mood, Panel, Part, Table, Terminal};
use numalab_stats::Interval;

use super::words::{change_to_make, cut_short, judged, signed, verdict, what};
use crate::VerdictWord;
use crate::advice::{Advice, AdvisedOption, TrialPlace, Untried};

/// Largest change in percent that counts as none.
const MARGIN_PERCENT: f64 = 2.0;

/// Tabulates the options, predicted next to measured.
pub(super) fn options(advice: &Advice) -> Part {
    let caption = match &advice.metric {
        None => {
            "Change of run time in %: predicted, and measured with its 95 % interval".to_owned()
        }
        Some(metric) => format!(
            "Change in %: predicted for the run time, and measured for the {}, {}, with its 95 % \
             interval",
            judged(advice),
            metric.better
        ),
    };
    let table = Table::new(caption.clone())
        .words("option")
        .figures("predicted")
        .words("interval")
        .figures("measured")
        .words("interval")
        .words("trial");
    let row = |option: &AdvisedOption| {
        let [expected, found] = [predicted_cells(option), measured_cells(option)];
        let cells = expected.into_iter().chain(found);
        let all = [what(&option.candidate)].into_iter().chain(cells);
        all.chain([verdict(option)]).collect()
    };
    let table = table.rows(advice.options.iter().map(row));
    let narrow = narrow(advice, caption);
    let panel = match forest(advice) {
        Some(chart) => Panel::drawn(chart, table),
        None => Panel::table(table),
    };
    let panels = vec![panel.on_terminal(Terminal::Instead(narrow))];
    Part { title: "Options".to_owned(), notes: notes(advice), panels, ..Part::default() }
}

fn interval((low, high): (f64, f64)) -> String {
    format!("{} to {}", signed(low), signed(high))
}

fn predicted_cells(option: &AdvisedOption) -> [String; 2] {
    option.predicted.map_or([const { String::new() }; 2], |of| {
        [signed(of.change_percent), interval(of.interval_percent)]
    })
}

fn measured_cells(option: &AdvisedOption) -> [String; 2] {
    option.measured.as_ref().map_or([const { String::new() }; 2], |of| {
        [signed(of.change_percent), of.interval_percent.map_or_else(String::new, interval)]
    })
}

/// Returns the tables for a terminal: all predictions, then the trials.
fn narrow(advice: &Advice, caption: String) -> Vec<Table> {
    let all = Table::new(caption).words("option").figures("predicted").words("interval");
    let row = |option: &AdvisedOption| {
        [what(&option.candidate)].into_iter().chain(predicted_cells(option)).collect()
    };
    let all = all.rows(advice.options.iter().map(row));
    let trials = Table::new("Trials, or the reason why there are none")
        .words(["option", "measured"])
        .words("trial");
    let has_word = |option: &&AdvisedOption| {
        let why = option.untried.as_ref().filter(|why| **why != Untried::ProgramMustChange);
        option.measured.is_some() || why.is_some()
    };
    let row = |option: &AdvisedOption| {
        let measured = match measured_cells(option) {
            [change, ends] if ends.is_empty() => change,
            [change, ends] => format!("{change} ({ends})"),
        };
        vec![what(&option.candidate), measured, verdict(option)]
    };
    let trials = trials.rows(advice.options.iter().filter(has_word).map(row));
    let shown = [(advice.profile.is_some(), all), (advice.trials.is_some(), trials)];
    shown.into_iter().filter(|(is_known, _)| *is_known).map(|(_, table)| table).collect()
}

/// Returns a forest plot with prediction and trial of each tried option.
fn forest(advice: &Advice) -> Option<Chart> {
    let row =
        |name: String, percent: f64, ends: Option<(f64, f64)>, (mood, words): (Mood, &str)| {
            let verdict = format!("{} %, {words}", signed(percent));
            let detail = ends.map_or_else(String::new, |ends| format!(": {} %", interval(ends)));
            IntervalRow {
                percent: Some(percent),
                interval: ends.map(|(lo, hi)| Interval { lo, hi }),
                margin_percent: MARGIN_PERCENT,
                mood,
                detail: format!("{name}: {verdict}{detail}"),
                name,
                verdict,
            }
        };
    let rows = |option: &AdvisedOption| {
        let measured = option.measured.as_ref()?;
        let name = what(&option.candidate);
        let mood = match measured.verdict {
            VerdictWord::Better if measured.out.is_none() => Mood::Good,
            VerdictWord::Worse => Mood::Bad,
            _ => Mood::Plain,
        };
        let words = verdict(option);
        let predicted = option.predicted.map(|of| {
            let ends = Some(of.interval_percent);
            row(name.clone(), of.change_percent, ends, (Mood::Plain, "predicted"))
        });
        let found =
            row(name.clone(), measured.change_percent, measured.interval_percent, (mood, &words));
        Some(predicted.into_iter().chain([found]).collect::<Vec<_>>())
    };
    let all: Vec<IntervalRow> = advice.options.iter().filter_map(rows).flatten().collect();
    (!all.is_empty()).then_some(Chart::Intervals(all))
}

fn notes(advice: &Advice) -> Vec<String> {
    let predicted = advice.profile.map(|_| {
        "Predicted: from access counts and the machine's latencies; empty where one run cannot \
         predict it and only trials can show it."
            .to_owned()
    });
    let place = match advice.place {
        TrialPlace::Host => "on this machine",
        TrialPlace::Guest => "in an emulated Linux guest, in virtual time,",
        TrialPlace::Emulation => "under emulation",
    };
    let measured = advice.trials.as_ref().map(|_| {
        format!(
            "Measured: the program run {place} with each placement, in randomised blocks that \
             include the unchanged program. A candidate drops out once it is shown to be slower \
             than another or to gain less than 2 %; the chance of losing the best one this way is \
             at most 5 %."
        )
    });
    let cut = advice.options.iter().filter_map(|option| cut_short(advice, option));
    // That of the best option is in the answer.
    let best = advice.best();
    let others = advice.options.iter().filter(|option| {
        option.is_worth_a_change() && !best.is_some_and(|best| std::ptr::eq(best, *option))
    });
    let changes = others.filter_map(|option| {
        Some(format!("{}: {}", what(&option.candidate), change_to_make(&option.candidate)?))
    });
    predicted.into_iter().chain(measured).chain(cut).chain(changes).collect()
}

/// Lists the commands for other tools; on a terminal, only for the recommended option.
pub(super) fn commands(advice: &Advice, best: Option<&AdvisedOption>) -> Option<Part> {
    let table = |caption: &str| Table::new(caption).words("option").words("tool").words("command");
    let rows = |option: &AdvisedOption| {
        let name = what(&option.candidate);
        let row = move |line: &crate::advice::ToolCommand| {
            vec![name.clone(), line.tool.clone(), line.command.clone()]
        };
        option.commands.iter().map(row).collect::<Vec<_>>()
    };
    let all = table("Command lines of each option").rows(advice.options.iter().flat_map(rows));
    let listing = best.map(|best| {
        let line =
            |line: &crate::advice::ToolCommand| format!("{:10}  {}\n", line.tool, line.command);
        best.commands.iter().map(line).collect::<String>()
    });
    let panel = Panel::table(all).on_terminal(Terminal::Nothing);
    let part = Part::of("Commands for other tools", vec![panel.folded()])?;
    Some(Part { listing: listing.filter(|text| !text.is_empty()), ..part })
}
