//! Reads result files into steps.

use super::error::ScalingError;
use super::placement::{ScaleJson, StepJson, in_log, in_mapping_check};
use super::{RankPlace, Scaling, ScalingMetric, ScalingStep, csv, name};
use crate::document::Document;
use crate::kind::{Kind, file};
use crate::metric::Metric;
use crate::ranks::{RankFigures, RankTable};

/// A file of a result directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalingFile {
    /// Path below the directory, with `/` as separator.
    pub path: String,
    pub text: String,
}

/// Joins the files of a directory: the runs of `numalab scale`, each with its CSV. For a CSV
/// without a run (from an aborted step, the suite or an earlier version) its figures are read, and
/// the ranks' locations from the files next to it. The text of the architecture file is returned
/// unparsed, if there is one.
///
/// # Errors
///
/// [`ScalingError::Line`] for a damaged CSV, [`ScalingError::Empty`] if there is none.
pub fn read(
    directory: &str,
    files: &[ScalingFile],
) -> Result<(Scaling, Option<String>), ScalingError> {
    let mut scaling = Scaling { name: directory.to_owned(), ..Scaling::default() };
    let mut architecture = None;
    for file in files {
        let Some((run, stem)) = csv_stem(&file.path) else { continue };
        if file.path.ends_with(".part") && is_there(files, file.path.trim_end_matches(".part")) {
            continue;
        }
        let companions = Companions::of(run, stem, files, &mut scaling.findings);
        if let Some(scale) = companions.scale.as_ref() {
            if !scale.system.is_empty() {
                scaling.name =
                    format!("{} {}", scale.system, scale.partition).trim_end().to_owned();
            }
            architecture =
                Some(scale.arch.clone()).filter(|text| !text.is_empty()).or(architecture);
        }
        scaling.steps.push(step(file, run, stem, &companions)?);
    }
    if scaling.steps.is_empty() {
        return Err(ScalingError::Empty { directory: directory.to_owned() });
    }
    for step in &scaling.steps {
        if !step.complete {
            scaling
                .findings
                .push(format!("{}: the step was aborted, so sizes are missing", step.file));
        }
    }
    scaling.steps.sort_by(|a, b| {
        let key = |step: &ScalingStep| {
            (step.metric, step.mode, step.serial, step.domains.clone(), step.ranks())
        };
        (key(a), &a.file).cmp(&(key(b), &b.file))
    });
    Ok((scaling, architecture))
}

fn is_there(files: &[ScalingFile], path: &str) -> bool {
    files.iter().any(|file| file.path == path)
}

/// Returns the directory and the stem of a result CSV's path.
fn csv_stem(path: &str) -> Option<(&str, &str)> {
    let (run, name) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = name.strip_suffix(".csv").or_else(|| name.strip_suffix(".csv.part"))?;
    // CSV files that other commands leave in a result directory.
    (!["samples", "cells"].contains(&stem)).then_some((run, stem))
}

/// The files next to a CSV.
struct Companions<'a> {
    run: Option<RankTable>,
    earlier: Option<StepJson>,
    scale: Option<ScaleJson>,
    logs: Vec<&'a str>,
    mapping: Option<&'a str>,
}

impl<'a> Companions<'a> {
    fn of(run: &str, stem: &str, files: &'a [ScalingFile], findings: &mut Vec<String>) -> Self {
        let prefix = if run.is_empty() { String::new() } else { format!("{run}/") };
        let text = |name: &str| {
            let path = format!("{prefix}{name}");
            files.iter().find(|file| file.path == path).map(|file| file.text.as_str())
        };
        let logs = files.iter().filter(|file| {
            let name = file.path.strip_prefix(&prefix);
            name.is_some_and(|name| name.starts_with("slurm_") && name.ends_with(".log"))
        });
        let mut damaged = |name: &str, error: serde_json::Error| {
            findings.push(format!("{prefix}{name} is damaged and not used: {error}"));
        };
        let json = format!("{stem}.json");
        let (mut run, mut earlier) = (None, None);
        match text(&json).map(|text| (Kind::of(text), text)) {
            Some((Ok(Kind::Run), text)) => match serde_json::from_str::<Document>(text) {
                Ok(document) => run = document.rank_table(),
                Err(error) => damaged(&json, error),
            },
            Some((_, text)) => match serde_json::from_str(text) {
                Ok(step) => earlier = Some(step),
                Err(error) => damaged(&json, error),
            },
            None => {}
        }
        let scale = text(file::SCALE).and_then(|text| {
            serde_json::from_str(text).map_err(|error| damaged(file::SCALE, error)).ok()
        });
        Self {
            run,
            earlier,
            scale,
            logs: logs.map(|file| file.text.as_str()).collect(),
            mapping: text("mapping_check.log"),
        }
    }

    /// Returns the locations of this number of ranks, from the first source that has them all.
    fn places(&self, stem: &str, ranks: usize) -> Vec<Option<RankPlace>> {
        let step = self.earlier.iter().map(StepJson::places);
        let scale = self.scale.iter().map(|scale| scale.places(stem));
        let csv = format!("{stem}.csv");
        let logs = self.logs.iter().map(|log| in_log(log, &csv));
        let mapping = self.mapping.iter().map(|text| in_mapping_check(text));
        let mut sources = step.chain(scale).chain(logs).chain(mapping);
        let found = sources.find(|places| places.len() == ranks);
        found.map_or_else(|| vec![None; ranks], |places| places.into_iter().map(Some).collect())
    }
}

fn step(
    file: &ScalingFile,
    run: &str,
    stem: &str,
    companions: &Companions<'_>,
) -> Result<ScalingStep, ScalingError> {
    let name = name::parse(stem);
    let planned = companions.scale.as_ref().and_then(|scale| scale.binding(stem));
    let (mode, domains) = planned.unwrap_or((name.mode, name.domains));
    let step = ScalingStep {
        file: file.path.clone(),
        run: run.to_owned(),
        mode,
        domains,
        metric: ScalingMetric::Latency,
        serial: name.serial,
        complete: file.path.ends_with(".csv"),
        sizes_bytes: Vec::new(),
        values: Vec::new(),
        medians: Vec::new(),
        places: Vec::new(),
        disturbed: None,
    };
    match &companions.run {
        Some(table) => Ok(step_of_run(step, table)),
        None => Ok(step_of_csv(step, csv::parse(&file.path, &file.text)?, stem, companions)),
    }
}

/// Fills a step with the figures of a run's ranks.
fn step_of_run(step: ScalingStep, table: &RankTable) -> ScalingStep {
    let is_known = |at: &usize| table.ranks.iter().all(|rank| rank.mean[*at].is_finite());
    let mut order: Vec<usize> = (0..table.sizes_bytes.len()).filter(is_known).collect();
    order.sort_by_key(|&at| table.sizes_bytes[at]);
    let by_size = |of: fn(&RankFigures) -> &Vec<f64>| -> Vec<Vec<f64>> {
        let ranks = |&at: &usize| table.ranks.iter().map(|rank| of(rank)[at]).collect();
        order.iter().map(ranks).collect()
    };
    let place = |rank: &RankFigures| RankPlace {
        cpu: rank.placement.cpu,
        cpu_node: rank.placement.cpu_node,
        memory_node: Some(rank.memory_node()),
    };
    ScalingStep {
        metric: scaling_metric(table.metric),
        serial: step.serial || table.serial,
        sizes_bytes: order.iter().map(|&at| table.sizes_bytes[at]).collect(),
        values: by_size(|rank| &rank.mean),
        medians: by_size(|rank| &rank.median),
        places: table.ranks.iter().map(|rank| Some(place(rank))).collect(),
        disturbed: table.disturbed_share(),
        ..step
    }
}

/// Fills a step with the figures of a CSV, of the suite or of an earlier version.
fn step_of_csv(
    step: ScalingStep,
    rows: csv::Rows,
    stem: &str,
    companions: &Companions<'_>,
) -> ScalingStep {
    let ranks = rows.values.first().map_or(0, Vec::len);
    let earlier = companions.earlier.as_ref();
    let is_bandwidth = earlier.is_some_and(|json| json.metric == Metric::Bandwidth.name());
    let medians = earlier.map(|json| json.medians(rows.sizes_bytes.len(), ranks));
    ScalingStep {
        metric: if is_bandwidth { ScalingMetric::Bandwidth } else { ScalingMetric::Latency },
        serial: step.serial || earlier.is_some_and(|json| json.serial),
        complete: step.complete && !rows.broken_off,
        sizes_bytes: rows.sizes_bytes,
        values: rows.values,
        medians: medians.unwrap_or_default(),
        places: companions.places(stem, ranks),
        disturbed: earlier.and_then(StepJson::disturbed),
        ..step
    }
}

fn scaling_metric(metric: Metric) -> ScalingMetric {
    match metric {
        Metric::Bandwidth => ScalingMetric::Bandwidth,
        _ => ScalingMetric::Latency,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Mode;
    use super::*;

    fn file(path: &str, text: &str) -> ScalingFile {
        ScalingFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn runs_below_one_directory_are_joined_and_ordered() {
        let files = [
            file("job_2/interleaved_domain0_2ranks_8MB.csv", "size (MB),0,1\n8,10,11\n"),
            file("job_1/sequential_domain0_2ranks_8MB.csv", "size (MB),0,1\n8,12,13\n"),
            file("job_1/sequential_domain0_1ranks_8MB.csv", "size (MB),0\n8,9\n"),
            file("job_1/mapping_check.log", "rank,cpu_id,cpu_numa,memory_numa\n0,4,0,0\n1,5,0,0\n"),
            file(
                "job_1/sequential_domain0_2ranks_8MB.json",
                "{\"metric\":\"latency\",\"serial\":true",
            ),
            file("job_1/samples.csv", "not ours\n"),
        ];
        let (scaling, architecture) = read("results_scaling", &files).unwrap();
        let order: Vec<(Mode, usize)> =
            scaling.steps.iter().map(|step| (step.mode, step.ranks())).collect();
        assert_eq!(order, [(Mode::Sequential, 1), (Mode::Sequential, 2), (Mode::Interleaved, 2)]);
        assert_eq!(scaling.steps[1].places[1].unwrap().cpu.0, 5);
        assert_eq!(scaling.steps[2].places, [None, None]);
        assert!(scaling.findings[0].contains("is damaged and not used"), "{:?}", scaling.findings);
        assert_eq!(architecture, None);
    }

    #[test]
    fn the_disturbed_share_is_of_all_ranks_windows_and_unknown_without_any() {
        let csv = file("sequential_domain0_2ranks_8MB.csv", "size (MB),0,1\n8,9,9\n");
        let share = |ranks: &str| {
            let json = format!("{{\"metric\":\"latency\",\"ranks\":[{ranks}]}}");
            let files = [csv.clone(), file("sequential_domain0_2ranks_8MB.json", &json)];
            read("d", &files).unwrap().0.steps[0].disturbed
        };
        let quiet = r#"{"cpu":0,"windows":[[9,9,9]],"disturbed":[{}]}"#;
        let busy = r#"{"cpu":1,"windows":[[9,9,9,9,9]],"disturbed":[{"1":"switched","4":"off"}]}"#;
        assert_eq!(share(&format!("{quiet},{busy}")), Some(0.25));
        assert_eq!(share(r#"{"cpu":0},{"cpu":1}"#), None);
    }

    #[test]
    fn figures_are_the_medians_where_every_rank_has_one() {
        let csv = file("sequential_domain0_2ranks_8MB.csv", "size (MB),0,1\n8,19,29\n");
        let figures = |ranks: &str| {
            let json = format!("{{\"metric\":\"latency\",\"ranks\":[{ranks}]}}");
            let files = [csv.clone(), file("sequential_domain0_2ranks_8MB.json", &json)];
            read("d", &files).unwrap().0.steps[0].at(8 << 20).unwrap().to_vec()
        };
        assert_eq!(figures(r#"{"cpu":0,"median":[9.0]},{"cpu":1,"median":[9.5]}"#), [9.0, 9.5]);
        assert_eq!(figures(r#"{"cpu":0,"median":[9.0]},{"cpu":1,"median":[null]}"#), [19.0, 29.0]);
        assert_eq!(figures(r#"{"cpu":0,"median":[9.0]}"#), [19.0, 29.0], "of another number");
    }

    #[test]
    fn a_step_that_broke_off_counts_unless_it_was_done_again() {
        let part = file("sequential_domain0_1ranks_8MB.csv.part", "size (MB),0\n8,9\n");
        let whole = file("sequential_domain0_1ranks_8MB.csv", "size (MB),0\n8,9\n16,10\n");
        let (alone, _) = read("d", std::slice::from_ref(&part)).unwrap();
        assert!(!alone.steps[0].complete && alone.findings.len() == 1);
        let (both, _) = read("d", &[part, whole]).unwrap();
        assert_eq!((both.steps.len(), both.steps[0].sizes_bytes.len()), (1, 2));
    }

    #[test]
    fn a_directory_without_results_is_refused_with_the_expected_files() {
        let error = read("empty", &[]).unwrap_err();
        assert!(error.to_string().contains("sequential_domain0_8ranks_16MB.csv"), "{error}");
    }
}
