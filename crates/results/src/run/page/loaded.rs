//! Latency under load.

use numalab_page::number::{count, figure, interval_text, size};
use numalab_page::{Chart, Curves, Panel, Part, Series, Table, Terminal};
use numalab_record::AccessPattern;

use super::charts::load_points;
use crate::label;
use crate::run::{BandwidthRow, Doubt, LoadedCurve, MemoryPeak, PageWalk, Summary};

pub(super) fn loaded(summary: &Summary<'_>) -> Option<Part> {
    let curves = &summary.loaded;
    let families: Vec<&[LoadedCurve<'_>]> = curves.chunk_by(LoadedCurve::is_of_family).collect();
    let panels = families.iter().flat_map(|family| panels(family, summary)).collect();
    // The table of a family covers what the notes would say.
    let alone = families.iter().filter(|family| family.len() == 1).copied().flatten();
    let doubted = curves.iter().filter(|curve| curve.doubt.is_some());
    let shown = doubted.chain(alone.clone().filter(|curve| curve.doubt.is_none()));
    let mut notes: Vec<String> = shown.map(knee_note).collect();
    notes.extend(alone.filter_map(saturation_note));
    notes.extend(families.iter().filter_map(|family| limit_note(family, summary)));
    notes.extend(families.iter().filter_map(|family| idle_note(family.first()?, summary)));
    notes.extend(summary.memory_peak.as_ref().map(peak_note));
    if curves.iter().any(|curve| curve.cell.kernel.traffic_factor() > 1.0) {
        notes.push(TRAFFIC.to_owned());
    }
    Part::of("Latency under load", panels).map(|part| part.noted(notes))
}

/// Multiple of a curve's peak above which the memory is shown to move more.
const CLEARLY_MORE: f64 = 1.1;

const TRAFFIC: &str = "Traffic is the data moved in memory, counted as if every ordinary store \
     first read its line; processors that recognise stores of whole lines move less.";

/// Draws a single curve with its knee. Curves that differ only in kernel share one chart, as in
/// Mess (Esmaili-Dokht et al., MICRO 2024), with their points listed below.
fn panels(family: &[LoadedCurve<'_>], summary: &Summary<'_>) -> Vec<Panel> {
    if let [curve] = family {
        let chart = Chart::LatencyOverBandwidth(load_points(&curve.points), curve.knee);
        return vec![Panel::drawn(chart, points_table(curve)).on_terminal(Terminal::Chart)];
    }
    let points = |curve: &LoadedCurve<'_>| {
        curve.points.iter().map(|point| (point.traffic_gb_per_s, point.latency.median)).collect()
    };
    let series = family.iter().map(|curve| Series { name: kernel(curve), points: points(curve) });
    let chart = Chart::Curves(Curves {
        x_name: "GB/s of traffic in memory".to_owned(),
        x_is_logarithmic: false,
        y_name: "ns per load".to_owned(),
        series: series.collect(),
    });
    let mut panels = vec![Panel::drawn(chart, family_table(family, summary))];
    panels.extend(
        family
            .iter()
            .map(|curve| Panel::table(points_table(curve)).folded().on_terminal(Terminal::Nothing)),
    );
    panels
}

fn kernel(curve: &LoadedCurve<'_>) -> String {
    let kernel = curve.cell.kernel;
    format!("{}, {:.0} % reads", kernel.name(), kernel.read_percent())
}

fn family_table(family: &[LoadedCurve<'_>], summary: &Summary<'_>) -> Table {
    let rows = family.iter().map(|curve| {
        let idle = curve.points.first().map(|point| point.latency.median);
        vec![
            curve.cell.kernel.name().to_owned(),
            format!("{:.0}", curve.cell.kernel.read_percent()),
            optional(idle),
            optional(curve.knee.map(|knee| knee.bandwidth)),
            optional(curve.saturation.map(|at| at.gb_per_s)),
            optional(curve.peak.map(|peak| peak.gb_per_s)),
            optional(curve.peak.map(|peak| peak.latency_ns)),
        ]
    });
    let who = family.first().map(|curve| {
        format!("{} against {}", label::worker(curve.cell.chaser), label::workers(&curve.cell.load))
    });
    // A single cpu reaches its own limit, and so do several cpus if other cells move more.
    let is_one = family.first().is_some_and(|curve| curve.cell.load.len() == 1);
    let is_of_load = is_one || limit_note(family, summary).is_some();
    let saturated = if is_of_load { "limit of load GB/s" } else { "saturated GB/s" };
    Table::new(format!("{}: traffic in GB/s, latency in ns", who.unwrap_or_default()))
        .words("load")
        .figures(["% reads", "idle ns", "knee GB/s"])
        .figures([saturated, "peak GB/s", "ns at peak"])
        .rows(rows)
}

fn who(curve: &LoadedCurve<'_>) -> String {
    format!(
        "{} against {} ({})",
        label::worker(curve.cell.chaser),
        label::workers(&curve.cell.load),
        curve.cell.kernel.name()
    )
}

fn knee_note(curve: &LoadedCurve<'_>) -> String {
    let who = who(curve);
    match curve.doubt {
        Some(Doubt::Disturbed(share)) => {
            return format!(
                "{who}: the knee is not shown, because other load disturbed {:.0} % of the \
                 windows without load.",
                100.0 * share
            );
        }
        Some(Doubt::IdleSlower { idle_ns, loaded_ns }) => {
            return format!(
                "{who}: the knee is not shown, because latency was {} ns without load and {} ns \
                 under load: something else was running.",
                figure(idle_ns),
                figure(loaded_ns)
            );
        }
        None => {}
    }
    curve.knee.as_ref().map_or_else(
        || {
            format!(
                "{who}: latency does not reach twice its idle value at any load up to {} GB/s.",
                figure(curve.peak.map_or(0.0, |peak| peak.gb_per_s))
            )
        },
        |knee| {
            format!(
                "{who}: latency reaches twice its idle {} ns at {} GB/s.",
                figure(knee.idle_ns),
                figure(knee.bandwidth)
            )
        },
    )
}

/// Returns a note on the traffic beyond which load only adds waiting.
fn saturation_note(curve: &LoadedCurve<'_>) -> Option<String> {
    let (at, peak) = (curve.saturation?, curve.peak?);
    let who = who(curve);
    let (found_ns, found, most) =
        (figure(at.latency_ns), figure(at.gb_per_s), figure(peak.gb_per_s));
    Some(format!("{who}: saturated at {found} GB/s with {found_ns} ns; the peak is {most} GB/s."))
}

/// Returns a note that other cells move more data to the same memory, so that the limit of these
/// curves is that of their load workers.
fn limit_note(family: &[LoadedCurve<'_>], summary: &Summary<'_>) -> Option<String> {
    let saturated = family.iter().filter(|curve| curve.saturation.is_some());
    let peaks = saturated.filter_map(|curve| Some((curve, curve.peak?.gb_per_s)));
    let (curve, peak) = peaks.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let load = curve.cell.load.len();
    let is_more = |row: &&BandwidthRow<'_>| {
        let workers = &row.cell.workers;
        workers.len() > load
            && row.cell.pattern == AccessPattern::Sequential
            && workers.iter().all(|worker| worker.node == curve.cell.chaser.node)
    };
    // The traffic that the program requested, which is a lower bound on the memory's.
    let traffic = |row: &BandwidthRow<'_>| row.figure.median;
    let rows = summary.bandwidth.rows.iter().filter(is_more);
    let most = rows.max_by(|a, b| traffic(a).total_cmp(&traffic(b)))?;
    (traffic(most) > CLEARLY_MORE * peak).then(|| {
        format!(
            "This is the limit of {}, not of the memory: {} move {} GB/s.",
            count(load, "loading cpu"),
            count(most.cell.workers.len(), "cpu"),
            figure(traffic(most))
        )
    })
}

/// Returns a note on the modules' peak bandwidth and the share of it that was reached.
fn peak_note(peak: &MemoryPeak) -> String {
    let most = if peak.is_bound { "at most " } else { "" };
    let reached = match peak.reached {
        Some(share) => format!("{:.0} % of a node's share was reached", 100.0 * share),
        None => "no cell streamed from memory alone".to_owned(),
    };
    format!("The memory modules move {most}{} GB/s on all nodes; {reached}.", figure(peak.gb_per_s))
}

/// Returns a figure, or a dash for none.
fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), figure)
}

/// Returns a note on why the idle latency differs from the latency elsewhere on the page.
fn idle_note(curve: &LoadedCurve<'_>, summary: &Summary<'_>) -> Option<String> {
    let idle = curve.points.first().filter(|point| point.delay.is_none())?;
    let same =
        |walk: &&PageWalk| walk.worker == curve.cell.chaser && walk.pages == curve.cell.pages;
    let walk = summary.walks.iter().find(same)?;
    Some(format!(
        "These loads are in random order over the whole buffer, so they include page walks: {} ns \
         without load, {} ns in the same order alone, and {} ns in page-local order, which hits \
         the TLB.",
        figure(idle.latency.median),
        figure(walk.random.median),
        figure(walk.page_local.median)
    ))
}

fn points_table(curve: &LoadedCurve<'_>) -> Table {
    let rows = curve.points.iter().map(|point| {
        vec![
            label::delay(point.delay),
            figure(point.bandwidth_gb_per_s()),
            figure(point.traffic_gb_per_s),
            figure(point.latency.median),
            interval_text(point.latency.interval),
        ]
    });
    Table::new(format!(
        "{} against {} {}, {} each, {} pages",
        label::worker(curve.cell.chaser),
        label::workers(&curve.cell.load),
        curve.cell.kernel.name(),
        size(curve.cell.size_bytes),
        curve.cell.pages.name()
    ))
    .words("load")
    .figures(["GB/s", "GB/s of traffic", "ns", "95 % interval, this run"])
    .rows(rows)
}
