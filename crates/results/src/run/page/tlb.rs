//! TLB levels and costs.

use numalab_page::number::{figure, size};
use numalab_page::{Chart, Curves, Panel, Part, Series, Table};

use super::sentences::cycles;
use crate::label;
use crate::run::{Summary, Tlb, TlbLevel};

/// Returns entries and cost of each level, by page size.
pub(super) fn tlb(summary: &Summary<'_>) -> Option<Part> {
    let worker = label::worker(summary.tlbs.first()?.worker);
    let table = Table::new(format!("One line of each page loaded in random order, {worker}"))
        .words(["pages", "TLB"])
        .figures(["holds", "exceeded at", "reach", "costs, ns", "cycles"])
        .rows(summary.tlbs.iter().filter(is_shown).flat_map(|tlb| rows(tlb, summary)));
    let note = "A cost is the extra time over a load that hits the first level, with its line in \
         the same cache. `beyond` is a page walk, or a level larger than any number of pages \
         measured.";
    let panel = Panel::drawn(Chart::Curves(curves(&summary.tlbs)), table);
    Part::of("TLB reach", vec![panel]).map(|part| part.noted(vec![note.to_owned()]))
}

/// Returns `true` if the TLB has levels to show; a huge page that occupies one entry has no levels
/// within it.
fn is_shown(tlb: &&Tlb) -> bool {
    tlb.is_of_pages() || tlb.beyond_ns.is_some()
}

fn rows(tlb: &Tlb, summary: &Summary<'_>) -> Vec<Vec<String>> {
    let clock = summary.cycle_clock_ghz(tlb.worker.cpu);
    let row = |name: String, holds: [String; 3], cost_ns: f64| {
        // Costs are differences, so finer digits are noise.
        let cost_ns = (100.0 * cost_ns).round() / 100.0;
        let who = [pages(tlb), name];
        let cost = [figure(cost_ns), cycles(cost_ns, clock)];
        [&who[..], &holds, &cost].concat()
    };
    let of_level = |level: &TlbLevel| {
        let passed = level.passed_pages.map_or_else(|| "–".to_owned(), |pages| pages.to_string());
        let reach = size(level.holds_pages * tlb.apart_bytes);
        let holds = [level.holds_pages.to_string(), passed, reach];
        row(format!("L{}", level.level), holds, level.cost_ns)
    };
    let none = || ["–"; 3].map(str::to_owned);
    let beyond = tlb.beyond_ns.map(|cost_ns| row("beyond".to_owned(), none(), cost_ns));
    tlb.levels.iter().map(of_level).chain(beyond).collect()
}

fn pages(tlb: &Tlb) -> String {
    match tlb.is_of_pages() {
        true => tlb.pages.name().to_owned(),
        false => format!("{}, one line in {}", tlb.pages.name(), size(tlb.apart_bytes)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "places on a drawing")]
fn curves(tlbs: &[Tlb]) -> Curves {
    let series = |tlb: &Tlb| Series {
        name: pages(tlb),
        points: tlb.points.iter().map(|point| (point.pages as f64, point.cost_ns())).collect(),
    };
    Curves {
        x_name: "pages".to_owned(),
        x_is_logarithmic: true,
        y_name: "ns of translation".to_owned(),
        series: tlbs.iter().map(series).collect(),
    }
}
