//! A probe of memory tiers as a page: pages by tier over time, and latency over time.

use numalab_record::Kind;
use numalab_record::tiering::{TierLook, TieringProbed};

use crate::documents::document;
use crate::from::over_time::{curves, rows, seconds};
use crate::number::{figure, size};
use crate::page::{Chart, Lead, Mood, Page, Panel, Part, Series};
use crate::report::Report;
use crate::rows::Rows;
use crate::table::Table;

impl Report for TieringProbed {
    fn page(&self) -> Page {
        let rows = self.readings.iter().map(|reading| {
            let quantity = &reading.quantity;
            vec![quantity.metric.clone(), figure(reading.value), quantity.unit.clone()]
        });
        let figures = Table::new("time of an access; where hot pages are; what the kernel moved")
            .words("figure")
            .figures("value")
            .words("unit")
            .rows(rows);
        let parts = [
            Part::of("Figures", vec![Panel::table(figures)]),
            Part::of("Over time", vec![pages(&self.looks), latency(&self.looks)]),
        ];
        Page {
            brand: "numalab study probe tiering".to_owned(),
            title: "Does hot memory come to the fast tier?".to_owned(),
            meta: format!(
                "{}, {}; {}; fast tier: nodes {}, slower: nodes {}",
                size(self.size_bytes),
                self.placed,
                self.heat,
                self.fast,
                self.slow
            ),
            lead: vec![answer(self)],
            parts: parts.into_iter().flatten().collect(),
            ..Page::default()
        }
    }

    fn json(&self) -> serde_json::Result<String> {
        document(Kind::Tiering, self)
    }

    /// A row for each look.
    fn rows(&self) -> Option<Rows> {
        let row = |look: &TierLook| {
            vec![
                look.at_ns.to_string(),
                look.latency_ns.to_string(),
                look.fast_pages.to_string(),
                look.slow_pages.to_string(),
                look.marked_pages.to_string(),
            ]
        };
        let rows = Rows::new("tier look")
            .labels(["since_begin_ns"])
            .values("ns", ["latency"])
            .values("pages", ["fast_pages", "slow_pages", "marked_pages"])
            .rows(self.looks.iter().map(row));
        Some(rows)
    }
}

fn answer(probed: &TieringProbed) -> Lead {
    let value = |name| probed.value(name).unwrap_or(0.0);
    let (hot, end) = (value("hot-fast"), value("latency-end"));
    let sentence = format!(
        "at the end {hot:.1} % of the hot pages are on the fast tier, an access takes {end:.1} ns"
    );
    Lead::new("Answer", sentence, Mood::Plain)
}

fn pages(looks: &[TierLook]) -> Panel {
    let series = |name: &str, pages: &dyn Fn(&TierLook) -> u64| {
        let point = |look: &TierLook| (seconds(look.at_ns as f64), pages(look) as f64);
        Series { name: name.to_owned(), points: looks.iter().map(point).collect() }
    };
    let series = vec![
        series("fast tier", &|look| look.fast_pages),
        series("slower tiers", &|look| look.slow_pages),
    ];
    let row = |look: &TierLook| {
        vec![
            format!("{:.1}", seconds(look.at_ns as f64)),
            look.fast_pages.to_string(),
            look.slow_pages.to_string(),
            look.marked_pages.to_string(),
        ]
    };
    let table = Table::new("pages by tier; marked: to see who uses them, and not told of")
        .figures("s")
        .figures("fast tier")
        .figures("slower")
        .figures("marked")
        .rows(rows(looks).map(row));
    Panel::drawn(Chart::Curves(curves("pages", series)), table)
}

fn latency(looks: &[TierLook]) -> Panel {
    let point = |look: &TierLook| (seconds(look.at_ns as f64), look.latency_ns);
    let series =
        vec![Series { name: "an access".to_owned(), points: looks.iter().map(point).collect() }];
    let row = |look: &TierLook| {
        vec![format!("{:.1}", seconds(look.at_ns as f64)), format!("{:.1}", look.latency_ns)]
    };
    let table = Table::new("time of an access since the look before")
        .figures("s")
        .figures("ns")
        .rows(rows(looks).map(row));
    Panel::drawn(Chart::Curves(curves("ns", series)), table)
}
