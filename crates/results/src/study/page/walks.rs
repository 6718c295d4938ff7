//! Page walks that the memory emulator counted while a workload ran.

use numalab_page::number::figure;
use numalab_page::{Lead, Mood, Panel, Part, Table};

use super::words::unsigned;
use crate::study::{PageWalks, StudySummary, TreatmentWalks};

/// Describes the time that page walks take, or else their number: `8.90 % of the time of sysbench,
/// including its start and end, under host=4k, 0.10 % under host=2m.` A metric such as throughput
/// often leaves out start and end, so it may change by more than this share.
pub(super) fn lead(found: &PageWalks) -> Lead {
    let shares = found.treatments.iter().map(|of| of.time_percent.map(unsigned));
    let shares: Option<Vec<String>> = shares.collect();
    let (name, of_what, values) = match shares {
        Some(shares) => {
            let of = format!(" of the time of {}, including its start and end,", found.workload);
            ("Page walks take", of, shares)
        }
        None => {
            let numbers = found.treatments.iter().map(|of| number(of.walks));
            ("Page walks", format!(" in {}", found.workload), numbers.collect())
        }
    };
    let under = values.iter().zip(&found.treatments).enumerate().map(|(at, (value, of))| {
        let of_what = if at == 0 { of_what.as_str() } else { "" };
        format!("{value}{of_what} under {}", of.treatment)
    });
    let under: Vec<String> = under.collect();
    Lead::new(name, format!("{}.", under.join(", ")), Mood::Plain)
}

/// Formats a number of walks: `1664`, `1.07 million`.
fn number(walks: f64) -> String {
    if walks < 1e6 { format!("{walks:.0}") } else { format!("{} million", figure(walks / 1e6)) }
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
        row("page walks", |of| Some(number(of.walks))),
        row("entries of tables that the longest walk read", |of| {
            Some(format!("{:.0}", of.longest_entries?))
        }),
        row("entries that a walk read, mean", |of| of.entries_each.map(figure)),
        row("time of a walk in ns, mean", |of| of.ns_each.map(figure)),
        row("share of the cpu's time, including start and end", |of| of.time_percent.map(unsigned)),
    ];
    let caption = format!("page walks while {} ran, as the emulator counted them", found.workload);
    let table = Table::new(caption).words("medians");
    let named = found.treatments.iter().fold(table, |table, of| table.figures(&*of.treatment));
    named.rows(rows.into_iter().flatten())
}
