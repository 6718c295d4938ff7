//! Two files of numbers, or two logs.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use numalab_host::bounded::{MOST_RESULT_BYTES, read_input_text};
use numalab_results::samples::{SampleComparison, numbers};
use numalab_stats::Verdict;
use numalab_workload::{Pattern, usual_direction};

use super::{Compared, MARGIN};
use crate::args::CompareArgs;
use crate::failure::Failure;

/// The longest line that a message quotes, in letters.
const MOST_QUOTED: usize = 80;

/// Compares the values of two files.
pub(super) fn compared(args: &CompareArgs, paths: [&PathBuf; 2]) -> Result<Compared, Failure> {
    let pattern = args.metric.as_deref().map(|text| Pattern::parse(text).map(|it| (text, it)));
    let pattern = pattern.transpose();
    let pattern = pattern.map_err(|error| Failure::bad_input(format!("--metric: {error}")))?;
    let pattern = pattern.as_ref().map(|(text, pattern)| (*text, pattern));
    let names = paths.map(|path| path.display().to_string());
    // Files of millions of numbers are read in parallel.
    let [baseline, candidate] = thread::scope(|scope| {
        let candidate = scope.spawn(|| sample(paths[1], pattern));
        let baseline = sample(paths[0], pattern);
        [baseline, candidate.join().unwrap_or_else(|panic| resume_unwind(panic))]
    });
    let (baseline, candidate) = (baseline?, candidate?);
    check_units(&names, [&baseline, &candidate], pattern.map_or("", |(text, _)| text))?;
    let unit = pattern.map_or("", |(_, pattern)| pattern.label()).to_owned();
    let printed = baseline.units.keys().next().map_or("", String::as_str);
    let better = args.better.unwrap_or_else(|| usual_direction(&format!("{unit} {printed}")));
    let margin_percent = args.margin.unwrap_or(MARGIN);
    let values = [baseline.values, candidate.values];
    let comparison = SampleComparison::of(names, values, unit, better, margin_percent)
        .map_err(|error| Failure::bad_input(format!("--margin {margin_percent}: {error}")))?;
    let worse = [comparison.is_worse(), comparison.is_tail_worse()];
    let is_decided = !matches!(comparison.found.verdict, Verdict::Inconclusive { .. });
    let undecided = (!is_decided).then_some("the values are too few, too different, or drift");
    let baseline = paths[0].display().to_string();
    Ok(Compared { report: Box::new(comparison), worse, undecided, margin_percent, baseline })
}

/// The values of a file, and the number of values with each unit.
struct Sample {
    values: Vec<f64>,
    units: BTreeMap<String, usize>,
}

/// Returns the values of a file: those that match the pattern, or all of its words.
fn sample(path: &Path, pattern: Option<(&str, &Pattern)>) -> Result<Sample, Failure> {
    let name = path.display();
    let text = read_input_text(path, MOST_RESULT_BYTES).map_err(|error| {
        Failure::bad_input(format!(
            "{name}: {error}: expected two result directories, files of numbers or logs"
        ))
    })?;
    let mut units = BTreeMap::new();
    let Some((written, pattern)) = pattern else {
        let values =
            numbers(&text).map_err(|error| Failure::bad_input(format!("{name}, {error}")))?;
        return match values.is_empty() {
            true => Err(Failure::bad_input(format!("{name}: no values: expected at least one"))),
            false => Ok(Sample { values, units }),
        };
    };
    let found = pattern
        .values_with_units("its number", &text)
        .map_err(|error| Failure::bad_input(format!("{name}: --metric `{written}`: {error}")))?;
    if found.is_empty() {
        let nearest = nearest_line(&text, written)
            .map(|(number, line)| format!("; line {number} is the nearest: `{line}`"));
        return Err(Failure::bad_input(format!(
            "{name}: no line matches --metric `{written}`{}",
            nearest.unwrap_or_default()
        )));
    }
    for (_, unit) in found.iter().filter(|(_, unit)| !unit.is_empty()) {
        *units.entry((*unit).to_owned()).or_default() += 1;
    }
    Ok(Sample { values: found.into_iter().map(|(value, _)| value).collect(), units })
}

/// Returns the line with the longest common start with a pattern, and its number; `None` if even the
/// first letters differ.
fn nearest_line<'a>(text: &'a str, pattern: &str) -> Option<(usize, &'a str)> {
    let common =
        |line: &str| line.chars().zip(pattern.trim().chars()).take_while(|(a, b)| a == b).count();
    let lines = text.lines().map(str::trim).enumerate();
    let (index, line) = lines.min_by_key(|(_, line)| Reverse(common(line)))?;
    let end = line.char_indices().nth(MOST_QUOTED).map_or(line.len(), |(end, _)| end);
    (common(line) > 0).then_some((index + 1, &line[..end]))
}

/// Refuses values of different units, which the pattern passed over.
fn check_units(names: &[String; 2], samples: [&Sample; 2], pattern: &str) -> Result<(), Failure> {
    let all = samples.iter().zip(names).flat_map(|(sample, name)| {
        // The commonest first.
        let mut units: Vec<(&String, &usize)> = sample.units.iter().collect();
        units.sort_by_key(|(_, count)| Reverse(**count));
        units.into_iter().map(move |(unit, _)| (unit, name))
    });
    let all: Vec<(&String, &String)> = all.collect();
    let Some((first, of_first)) = all.first() else { return Ok(()) };
    let Some((other, of_other)) = all.iter().find(|(unit, _)| unit != first) else {
        return Ok(());
    };
    Err(Failure::bad_input(format!(
        "--metric `{pattern}`: values in `{first}` ({of_first}) and in `{other}` ({of_other}): expected \
         one unit; put it into the pattern, as in `{pattern} {first}`"
    )))
}
