//! The parts of a scaling run's page.

use numalab_page::number::{count, figure, percent, size};
use numalab_page::{Chart, Curves, Lead, Mood, Page, Panel, Part, Series, Table};
use numalab_record::scaling::{Mode, Scaling, ScalingMetric, ScalingStep};
use numalab_stats::{Alternative, Sample, rank_sum};

use super::words;
use crate::label::{capital, whole_sentence};
use crate::scaling::figures::{mean, same_series, series, series_name};
use crate::scaling::groups::fullest;
use crate::scaling::{Group, GroupKind, ScalingSummary, StepFigures};

/// Maximum number of sizes with a curve over ranks.
const SHOWN_SIZES: usize = 3;
/// Maximum number of findings at the top of the page.
const LEADS: usize = 4;

pub(super) fn page(report: &ScalingSummary<'_>) -> Page {
    let scaling = report.scaling;
    let lead = |found| {
        let sentence = whole_sentence(&words::sentence(found));
        Lead::new(capital(words::name(found)), sentence, Mood::Plain)
    };
    let sizes = sizes(scaling);
    let meta = [
        count(scaling.steps.len(), "step"),
        sizes.first().zip(sizes.last()).map_or_else(String::new, |(from, to)| {
            format!("{} to {} each", size(*from), size(*to))
        }),
    ];
    let mut over_ranks = over_ranks(scaling, &sizes);
    let picture = (!over_ranks.is_empty()).then(|| over_ranks.remove(0));
    let parts = [
        Part::of("Over ranks", over_ranks),
        over_sizes(scaling),
        modes(scaling),
        groups(report),
        seen(report),
        all_figures(&report.figures),
        problems(scaling),
    ];
    Page {
        brand: "numalab scale".to_owned(),
        title: format!("Scaling on {}", scaling.name),
        meta: meta.join(" · "),
        lead: report.findings.iter().take(LEADS).map(lead).collect(),
        picture,
        parts: parts.into_iter().flatten().collect(),
        ..Page::default()
    }
}

/// Returns all sizes, ascending.
fn sizes(scaling: &Scaling) -> Vec<u64> {
    let mut sizes: Vec<u64> =
        scaling.steps.iter().flat_map(|step| step.sizes_bytes.iter().copied()).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Returns the first, the middle and the last size.
fn shown(sizes: &[u64]) -> Vec<u64> {
    let last = sizes.len().saturating_sub(1);
    let mut at: Vec<usize> = (0..SHOWN_SIZES).map(|part| part * last / (SHOWN_SIZES - 1)).collect();
    at.dedup();
    at.into_iter().filter_map(|at| sizes.get(at).copied()).collect()
}

fn seen(report: &ScalingSummary<'_>) -> Option<Part> {
    let rows = report.findings.iter().flat_map(|found| {
        let cited = |evidence| vec![words::name(found).to_owned(), words::evidence(evidence)];
        found.evidence.iter().map(cited)
    });
    let table = Table::new("evidence for the sentences").words("rule").words("evidence").rows(rows);
    let notes =
        report.findings.iter().skip(LEADS).map(|found| whole_sentence(&words::sentence(found)));
    Part::of("Findings and evidence", vec![Panel::table(table).folded()])
        .map(|part| part.noted(notes.collect()))
}

#[expect(clippy::cast_precision_loss, reason = "numbers of ranks and sizes in MiB are drawn")]
fn number(count: usize) -> f64 {
    count as f64
}

/// Draws each series over its number of ranks, for a few sizes, the largest first.
fn over_ranks(scaling: &Scaling, sizes: &[u64]) -> Vec<Panel> {
    let several = series(scaling)
        .iter()
        .any(|first| scaling.steps.iter().filter(|step| same_series(step, first)).count() > 1);
    let mut panels = Vec::new();
    if !several {
        return panels;
    }
    for metric in [ScalingMetric::Latency, ScalingMetric::Bandwidth] {
        for size_bytes in shown(sizes).into_iter().rev() {
            let of = |first: &&ScalingStep| curve_over_ranks(scaling, first, size_bytes);
            let curves: Vec<Series> = series(scaling)
                .iter()
                .filter(|first| first.metric == metric)
                .filter_map(of)
                .collect();
            if curves.iter().any(|curve| curve.points.len() > 1) {
                panels.push(rank_panel(metric, size_bytes, curves));
            }
        }
    }
    panels
}

fn curve_over_ranks(scaling: &Scaling, first: &ScalingStep, size_bytes: u64) -> Option<Series> {
    let steps = scaling.steps.iter().filter(|step| same_series(step, first));
    let points: Vec<(f64, f64)> = steps
        .filter_map(|step| Some((number(step.ranks()), mean(step.at(size_bytes)?)?)))
        .collect();
    (!points.is_empty()).then(|| Series { name: series_name(first), points })
}

fn rank_panel(metric: ScalingMetric, size_bytes: u64, series: Vec<Series>) -> Panel {
    let what = match metric {
        ScalingMetric::Latency => "mean latency of the ranks in ns",
        ScalingMetric::Bandwidth => "mean bandwidth of a rank in GB/s",
    };
    let mut ranks: Vec<f64> =
        series.iter().flat_map(|curve| curve.points.iter().map(|point| point.0)).collect();
    ranks.sort_by(f64::total_cmp);
    ranks.dedup();
    let heading = series.iter().fold(
        Table::new(format!("{what}, {} each", size(size_bytes))).figures("ranks"),
        |table, curve| table.figures(curve.name.clone()),
    );
    let rows = ranks.iter().map(|&rank| {
        let mut row = vec![format!("{rank:.0}")];
        row.extend(series.iter().map(|curve| {
            let point = curve.points.iter().find(|point| point.0 == rank);
            point.map_or_else(|| "–".to_owned(), |point| figure(point.1))
        }));
        row
    });
    let table = heading.rows(rows);
    let curves = Curves {
        x_name: "ranks".to_owned(),
        x_is_logarithmic: false,
        y_name: metric.unit().to_owned(),
        series,
    };
    Panel::drawn(Chart::Curves(curves), table)
}

/// Draws the fewest and the most ranks of each series over the sizes.
fn over_sizes(scaling: &Scaling) -> Option<Part> {
    let mut chosen: Vec<&ScalingStep> = Vec::new();
    for first in series(scaling) {
        let most = fullest(scaling, first);
        chosen.extend(
            [Some(first), most.filter(|most| most.ranks() > first.ranks())].into_iter().flatten(),
        );
    }
    chosen.retain(|step| step.metric == ScalingMetric::Latency && step.sizes_bytes.len() > 1);
    if chosen.is_empty() {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "a size on a drawing")]
    let point =
        |step: &ScalingStep, bytes: u64| Some((bytes as f64 / 1_048_576.0, mean(step.at(bytes)?)?));
    let series = chosen.iter().map(|step| Series {
        name: format!("{} {}", count(step.ranks(), "rank"), series_name(step)),
        points: step.sizes_bytes.iter().filter_map(|&bytes| point(step, bytes)).collect(),
    });
    let curves = Curves {
        x_name: "MiB per rank".to_owned(),
        x_is_logarithmic: true,
        y_name: "ns".to_owned(),
        series: series.collect(),
    };
    let rows = chosen.iter().flat_map(|step| {
        step.sizes_bytes.iter().filter_map(|&bytes| {
            Some(vec![
                series_name(step),
                step.ranks().to_string(),
                size(bytes),
                figure(mean(step.at(bytes)?)?),
            ])
        })
    });
    let table = Table::new("mean latency of the ranks in ns, fewest and most ranks of each series")
        .words("series")
        .figures(["ranks", "size", "ns"])
        .rows(rows);
    Part::of("Over sizes", vec![Panel::drawn(Chart::Curves(curves), table)])
}

/// Compares sequential with interleaved binding, and one rank at a time with all at once, on the
/// same ranks.
fn modes(scaling: &Scaling) -> Option<Part> {
    let steps = &scaling.steps;
    let pairs = steps.iter().flat_map(|a| steps.iter().map(move |b| (a, b)));
    let alike = pairs.filter(|(a, b)| {
        let same = a.metric == b.metric && a.domains == b.domains && a.ranks() == b.ranks();
        let orders =
            a.mode == Mode::Sequential && b.mode == Mode::Interleaved && a.serial == b.serial;
        let times = a.serial && !b.serial && a.mode == b.mode;
        same && (orders || times)
    });
    let rows: Vec<Vec<String>> = alike.filter_map(|(a, b)| compared(a, b)).collect();
    let table = Table::new("the same ranks at the largest size, bound and timed in two ways")
        .words(["this", "against"])
        .figures(["ranks", "size", "this", "that", "change", "p"])
        .rows(rows);
    let note = "p: the probability of such a difference by chance (rank-sum test over the ranks); \
         with few ranks it cannot be small";
    Part::of("Two ways compared", vec![Panel::table(table).folded()])
        .map(|part| part.noted(vec![note.to_owned()]))
}

fn compared(a: &ScalingStep, b: &ScalingStep) -> Option<Vec<String>> {
    let size_bytes = *a.sizes_bytes.last()?;
    let (this, that) = (Sample::new(a.at(size_bytes)?).ok()?, Sample::new(b.at(size_bytes)?).ok()?);
    let p = rank_sum(&this, &that, Alternative::TwoSided).p;
    Some(vec![
        series_name(a),
        series_name(b),
        a.ranks().to_string(),
        size(size_bytes),
        figure(this.mean()),
        figure(that.mean()),
        percent((that.mean() / this.mean() - 1.0) * 100.0),
        figure(p),
    ])
}

fn groups(report: &ScalingSummary<'_>) -> Option<Part> {
    let kinds = [
        (GroupKind::CpuNode, "by the node of the cpu"),
        (GroupKind::MemoryNode, "by the node of the memory"),
        (GroupKind::Ccd, "by CCD"),
        (GroupKind::Rank, "by rank and core"),
    ];
    let panels = kinds.into_iter().filter_map(|(kind, caption)| {
        let of: Vec<&Group> = report.groups.iter().filter(|group| group.kind == kind).collect();
        (!of.is_empty()).then(|| Panel::table(group_table(kind, caption, &of)))
    });
    let note = "the step with the most ranks of each series, at its largest size".to_owned();
    Part::of("By rank, core, CCD and node", panels.collect()).map(|part| part.noted(vec![note]))
}

fn group_table(kind: GroupKind, caption: &str, groups: &[&Group]) -> Table {
    let by_rank = kind == GroupKind::Rank;
    let name = match kind {
        GroupKind::Rank => "rank",
        GroupKind::Ccd => "CCD",
        GroupKind::CpuNode | GroupKind::MemoryNode => "node",
    };
    let table = Table::new(caption).words("series").figures(name);
    let table = match by_rank {
        true => table.figures("core").figures("memory").figures("value"),
        false => table.figures("ranks").figures("mean").figures("min").figures("max"),
    };
    table.rows(groups.iter().map(|group| {
        let mut row = vec![group.series.clone(), group.number.to_string()];
        if by_rank {
            let place = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
            row.push(place(group.place.map(|place| place.cpu.to_string())));
            row.push(place(group.place.and_then(|place| place.memory_node).map(|n| n.to_string())));
            row.push(figure(group.mean));
        } else {
            row.push(group.ranks.to_string());
            row.extend([group.mean, group.min, group.max].map(figure));
        }
        row
    }))
}

fn all_figures(figures: &[StepFigures]) -> Option<Part> {
    let rows = figures.iter().map(|of| {
        let domains: Vec<String> = of.domains.iter().map(u32::to_string).collect();
        let serial = if of.serial { " serial" } else { "" };
        let step = format!("{} {}{serial}", of.mode.name(), domains.join(","));
        let mut row = vec![format!("{step}, {} x {}", of.ranks, size(of.size_bytes))];
        let values = [of.mean, of.median, of.deviation, of.min, of.max, of.p90, of.p99, of.range];
        row.extend(values.map(figure));
        row.push(
            of.efficiency.map_or_else(|| "–".to_owned(), |share| format!("{:.0} %", share * 100.0)),
        );
        row
    });
    let heading = Table::new(
        "statistics over the ranks; efficiency: speed relative to the step \
         with the fewest ranks",
    )
    .words("step");
    let names = ["mean", "median", "sd", "min", "max", "P90", "P99", "range", "efficiency"];
    let table = names.into_iter().fold(heading, Table::figures).rows(rows);
    let note = "A rank's value is the median of its undisturbed windows, where they are kept; the \
                suite's CSV files hold the mean of all its windows.";
    Part::of("All figures", vec![Panel::table(table)]).map(|part| part.noted(vec![note.to_owned()]))
}

fn problems(scaling: &Scaling) -> Option<Part> {
    (!scaling.findings.is_empty()).then(|| Part {
        title: "Problems in the files".to_owned(),
        notes: scaling.findings.clone(),
        ..Part::default()
    })
}
