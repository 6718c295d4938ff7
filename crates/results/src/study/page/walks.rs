//! Page walks that the memory emulator counted while a workload ran.

use numalab_page::number::{figure, percent};
use numalab_page::{Lead, Mood, Panel, Part, Table};

use crate::study::{PageWalks, StudySummary, TreatmentWalks};

/// Describes the time that page walks take, or else their number: `of the time of sysbench 8.90 %
/// under host=4k, 0.10 % under host=2m.`
pub(super) fn lead(found: &PageWalks) -> Lead {
    let under = |value: String, of: &TreatmentWalks| format!("{value} under {}", of.treatment);
    let share = |of: &TreatmentWalks| Some(under(share(of.time_percent?), of));
    let shares: Option<Vec<String>> = found.treatments.iter().map(share).collect();
    let (name, what, values) = match shares {
        Some(shares) => ("Page walks take", "of the time of", shares),
        None => {
            let number = |of: &TreatmentWalks| under(format!("{:.0}", of.walks), of);
            ("Page walks", "of", found.treatments.iter().map(number).collect())
        }
    };
    let sentence = format!("{what} {} {}.", found.workload, values.join(", "));
    Lead::new(name, sentence, Mood::Plain)
}

/// Formats a share without a sign: `8.90 %`.
fn share(value: f64) -> String {
    percent(value).trim_start_matches('+').to_owned()
}

/// Returns the part about page walks; `None` for a study that does not count them.
pub(super) fn part(summary: &StudySummary<'_>) -> Option<Part> {
    let tables = summary.page_walks().into_iter().map(|found| Panel::table(table(&found)));
    Part::of("Page walks", tables.collect())
}

fn table(found: &PageWalks) -> Table {
    let row = |name: &str, value: fn(&TreatmentWalks) -> Option<String>| {
        let cells: Vec<String> = found.treatments.iter().map(value).collect::<Option<_>>()?;
        Some(std::iter::once(name.to_owned()).chain(cells).collect::<Vec<String>>())
    };
    let rows = [
        row("page walks", |of| Some(format!("{:.0}", of.walks))),
        row("entries of tables that the longest walk read", |of| {
            Some(format!("{:.0}", of.longest_entries?))
        }),
        row("entries that a walk read, mean", |of| of.entries_each.map(figure)),
        row("time of a walk in ns, mean", |of| of.ns_each.map(figure)),
        row("share of the cpu's time", |of| of.time_percent.map(share)),
    ];
    let caption = format!("page walks while {} ran, as the emulator counted them", found.workload);
    let table = Table::new(caption).words("medians");
    let named = found.treatments.iter().fold(table, |table, of| table.figures(&*of.treatment));
    named.rows(rows.into_iter().flatten())
}
