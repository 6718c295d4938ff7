//! Page, JSON and rows of a probe of memory tiers: pages by tier and latency over time.

use numalab_page::number::{figure, size};
use numalab_page::rows::{Field, Rows};
use numalab_page::{Chart, Lead, Mood, Page, Panel, Part, Series, Table};
use numalab_record::Kind;
use numalab_record::tiering::{TierLook, TieringProbed};
use numalab_topology::NodeSet;

use crate::document::document;
use crate::over_time::{curves, rows, seconds};
use crate::report::Report;
use crate::tiering::Contradiction;
use crate::tiering::document::TieringDocument;

impl Report for TieringProbed {
    fn page(&self) -> Page {
        let rows = self.readings.iter().map(|reading| {
            let quantity = &reading.quantity;
            vec![quantity.metric.clone(), figure(reading.value), quantity.unit.clone()]
        });
        let figures = Table::new("access time, hot pages and migrations")
            .words("figure")
            .figures("value")
            .words("unit")
            .rows(rows);
        let parts = [
            Part::of("Figures", vec![Panel::table(figures)]),
            Part::of("Tiers", vec![Panel::table(by_tier(self))]),
            Part::of("Over time", vec![pages(self), latency(&self.looks)]),
        ];
        Page {
            brand: "numalab study probe tiering".to_owned(),
            title: "Does hot memory move to the fast tier?".to_owned(),
            meta: format!(
                "{}, {}; {}; {}",
                size(self.size_bytes),
                self.placed,
                self.heat,
                tiers(&self.tiers)
            ),
            lead: std::iter::once(answer(self))
                .chain(uncounted(self))
                .chain(contradictions(self))
                .collect(),
            parts: parts.into_iter().flatten().collect(),
            ..Page::default()
        }
    }

    fn json(&self) -> serde_json::Result<String> {
        document(Kind::Tiering, &TieringDocument::of(self))
    }

    fn rows(&self) -> Option<Rows> {
        let row = |look: &TierLook| {
            vec![
                Field::from(look.at_ns),
                look.latency_ns.into(),
                look.fast_pages.into(),
                look.slow_pages.into(),
                look.marked_pages.into(),
            ]
        };
        Some(columns().rows(self.looks.iter().map(row)))
    }
}

pub(crate) fn columns() -> Rows {
    Rows::new("tier look")
        .labels(["since_begin_ns"])
        .values("ns", [("latency", "the mean latency of an access since the previous look")])
        .values(
            "pages",
            [
                ("fast_pages", "the pages on the fast tier"),
                ("slow_pages", "the pages on slower tiers"),
                ("marked_pages", "the pages that the kernel has marked to detect their users"),
            ],
        )
}

fn answer(probed: &TieringProbed) -> Lead {
    let end = probed.value("latency-end").unwrap_or(0.0);
    let hot = match probed.value("hot-fast") {
        Some(hot) => format!("{hot:.1} % of the hot pages are on the fast tier"),
        None => "the kernel has marked all hot pages and does not report their nodes".to_owned(),
    };
    let sentence = format!("At the end {hot}, and an access takes {end:.1} ns.");
    Lead::new("Answer", sentence, Mood::Plain)
}

/// Explains pages that reached the fast tier without being counted by the kernel.
fn uncounted(probed: &TieringProbed) -> Option<Lead> {
    let [first, last] = [probed.looks.first()?, probed.looks.last()?];
    let moved = last.fast_pages.checked_sub(first.fast_pages).filter(|moved| *moved > 0)?;
    let sentence = format!(
        "{moved} pages moved to the fast tier, and the kernel counts none as promoted: it counts \
         those that it moves with numa_balancing=2, but not with 1 or through DAMON."
    );
    let is_uncounted = probed.value("promoted").is_some_and(|promoted| promoted == 0.0);
    is_uncounted.then(|| Lead::new("Promotions", sentence, Mood::Plain))
}

/// Names the nodes of each tier: `tier 1: nodes 0, tier 2: nodes 1-2`.
pub fn tiers(tiers: &[NodeSet]) -> String {
    let named = tiers.iter().zip(1..).map(|(nodes, tier)| format!("tier {tier}: nodes {nodes}"));
    named.collect::<Vec<_>>().join(", ")
}

/// Returns a row per tier with its pages at the first and the last look.
fn by_tier(of: &TieringProbed) -> Table {
    let pages = |look: Option<&TierLook>, tier: usize| {
        let pages = look.and_then(|look| look.tier_pages.get(tier));
        pages.map_or_else(|| "–".to_owned(), ToString::to_string)
    };
    let row = |(tier, nodes): (usize, &NodeSet)| {
        let [first, last] = [of.looks.first(), of.looks.last()].map(|look| pages(look, tier));
        vec![(tier + 1).to_string(), nodes.to_string(), first, last]
    };
    Table::new("pages on each tier, fastest first")
        .words(["tier", "nodes"])
        .figures(["at the first reading", "at the end"])
        .rows(of.tiers.iter().enumerate().map(row))
}

fn contradictions(probed: &TieringProbed) -> Vec<Lead> {
    let said = Contradiction::all(probed).into_iter().map(|found| match found {
        Contradiction::NotOfMemory { latency_ns, predicted_ns } => format!(
            "An access takes {} ns, but the accesses counted on the tiers cost {}: something else \
             took the time, such as the kernel's own work; caches (--emulate-cache 32K,256K@4) \
             reduce its cost, and a longer --time its share.",
            figure(latency_ns),
            figure(predicted_ns)
        ),
        Contradiction::PagesElsewhere { hot_fast_percent, fast_accesses_percent } => format!(
            "{} % of the hot pages are on the fast tier at the end, and {} % of the last accesses \
             went there: pages were still moving, or the kernel does not report where marked \
             ones are; a longer --time shows which.",
            figure(hot_fast_percent),
            figure(fast_accesses_percent)
        ),
    });
    said.map(|sentence| Lead::new("Contradiction", sentence, Mood::Bad)).collect()
}

/// Returns a column and a curve per tier; older results have all slower tiers together.
fn pages(of: &TieringProbed) -> Panel {
    let looks = &of.looks;
    let known = |look: &TierLook| !look.tier_pages.is_empty();
    let names: Vec<String> = match looks.iter().all(known) && !looks.is_empty() {
        true => of.tiers.iter().map(|nodes| format!("tier of node {nodes}")).collect(),
        false => vec!["fast tier".to_owned(), "slower".to_owned()],
    };
    let on = |look: &TierLook, tier: usize| match (known(look), tier) {
        (true, _) => look.tier_pages.get(tier).copied().unwrap_or(0),
        (false, 0) => look.fast_pages,
        (false, _) => look.slow_pages,
    };
    let series = |(tier, name): (usize, &String)| {
        let point = |look: &TierLook| (seconds(look.at_ns as f64), on(look, tier) as f64);
        Series { name: name.clone(), points: looks.iter().map(point).collect() }
    };
    let series = names.iter().enumerate().map(series).collect();
    let row = |look: &TierLook| {
        let mut row = vec![format!("{:.1}", seconds(look.at_ns as f64))];
        row.extend((0..names.len()).map(|tier| on(look, tier).to_string()));
        row.push(look.marked_pages.to_string());
        row
    };
    let table = Table::new(
        "pages by tier; marked: unmapped to see who uses them, node not \
         reported",
    );
    let table = names.iter().fold(table.figures("s"), |table, name| table.figures(name.clone()));
    let table = table.figures("marked").rows(rows(looks).map(row));
    Panel::drawn(Chart::Curves(curves("pages", series)), table)
}

fn latency(looks: &[TierLook]) -> Panel {
    let point = |look: &TierLook| (seconds(look.at_ns as f64), look.latency_ns);
    let series =
        vec![Series { name: "an access".to_owned(), points: looks.iter().map(point).collect() }];
    let row = |look: &TierLook| {
        vec![format!("{:.1}", seconds(look.at_ns as f64)), format!("{:.1}", look.latency_ns)]
    };
    let table = Table::new("access time since the previous reading")
        .figures(["s", "ns"])
        .rows(rows(looks).map(row));
    Panel::drawn(Chart::Curves(curves("ns", series)), table)
}

#[cfg(test)]
mod tests {
    use numalab_record::study::Quantity;

    use super::*;
    use crate::over_time::LOOKS_A_ROW;
    use numalab_page::Style;

    /// Repeats a reading for each one that a table row summarises.
    fn every_look<'a>(pages: &&'a [u64]) -> impl Iterator<Item = &'a [u64]> {
        std::iter::repeat_n(*pages, LOOKS_A_ROW)
    }

    #[test]
    fn pages_that_moved_without_being_counted_as_promoted_are_explained() {
        let looked = |promoted: f64, fast_pages: u64| {
            let mut probed = probed([&[], &[]], &[("promoted", promoted)]);
            probed.looks[0].fast_pages = 10;
            probed.looks.last_mut().unwrap().fast_pages = fast_pages;
            let leads = probed.page().lead.into_iter().filter(|lead| lead.name == "Promotions");
            leads.map(|lead| lead.sentence).collect::<Vec<String>>()
        };
        let said = looked(0.0, 8192);
        assert!(said[0].starts_with("8182 pages moved to the fast tier"), "{said:?}");
        assert!(looked(8182.0, 8192).is_empty() && looked(0.0, 10).is_empty());
    }

    fn probed(tier_pages: [&[u64]; 2], figures: &[(&str, f64)]) -> TieringProbed {
        let look = |(at, pages): (u64, &[u64])| TierLook {
            at_ns: (at + 1) * 1_000_000_000,
            latency_ns: 100.0,
            fast_pages: 30,
            slow_pages: 70,
            tier_pages: pages.to_vec(),
            marked_pages: 0,
        };
        let reading = |&(name, value): &(&str, f64)| Quantity::lower(name, "ns").at(value);
        TieringProbed {
            fast: "0".parse().unwrap(),
            slow: "1-2".parse().unwrap(),
            tiers: ["0", "1", "2"].map(|nodes| nodes.parse().unwrap()).to_vec(),
            size_bytes: 8 << 20,
            heat: String::new(),
            placed: String::new(),
            readings: figures.iter().map(reading).collect(),
            looks: (0..).zip(tier_pages.iter().flat_map(every_look)).map(look).collect(),
        }
    }

    #[test]
    fn each_of_three_tiers_has_its_column_and_older_looks_have_two() {
        let text = probed([&[10, 20, 70], &[30, 60, 10]], &[]).page().markdown();
        let heading = "| s | tier of node 0 | tier of node 1 | tier of node 2 | marked |";
        assert!(text.contains(heading) && text.contains("| 30 | 60 | 10 | 0 |"), "{text}");
        assert!(text.contains("tier 1: nodes 0, tier 2: nodes 1, tier 3: nodes 2"), "{text}");
        assert!(text.contains("| 2 | 1 | 20 | 60 |"), "a row per tier: {text}");
        let older = probed([&[], &[]], &[]).page().markdown();
        assert!(older.contains("| s | fast tier | slower | marked |"), "{older}");
        assert!(older.contains("| 30 | 70 | 0 |"), "{older}");
    }

    #[test]
    fn figures_that_contradict_each_other_are_reported_after_the_answer() {
        let figures = [("latency-end", 7033.0), ("latency", 7033.0), ("predicted", 140.0)];
        let text = probed([&[], &[]], &figures).page().terminal(Style::Plain);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains("the kernel has marked all hot pages and does not report their nodes")
        );
        let said =
            "Contradiction An access takes 7033 ns, but the accesses counted on the tiers cost 140";
        assert!(text.contains(said), "{text}");
        let json = probed([&[], &[]], &figures).json().unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let expected = serde_json::json!([{
            "figures": ["latency", "predicted"], "values": [7033.0, 140.0]
        }]);
        assert_eq!(json["findings"], expected);
    }
}
