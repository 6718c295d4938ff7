//! Round trips of cache lines between cpus.

use numalab_page::number::{figure, interval_text};
use numalab_page::{Panel, Part, Table, Tile};
use numalab_stats::Interval;

use super::charts::matrix_panel;
use crate::run::Summary;

/// Returns a tile with the round trip to the farthest cpu.
pub(super) fn tile(summary: &Summary<'_>) -> Option<Tile> {
    let farthest = summary.c2c.by_nearness.last()?;
    Some(Tile {
        name: "Cache line, one way",
        value: format!("{} ns", figure(farthest.median_ns / 2.0)),
        detail: format!(
            "round trip {} ns, cpus: {}",
            figure(farthest.median_ns),
            farthest.nearness.name()
        ),
    })
}

pub(super) fn part(summary: &Summary<'_>) -> Option<Part> {
    if summary.c2c.by_home.is_empty() {
        return None;
    }
    let by_home = summary.c2c.by_home.iter().map(|trips| {
        let home = trips.home.name();
        let caption = format!(
            "Round trip in ns, first sender (rows) by responder (columns), \
            {home}"
        );
        matrix_panel(&trips.round_trips, caption)
    });
    let mut panels: Vec<Panel> = by_home.collect();
    panels.push(Panel::table(nearness_table(summary)));
    let note = "A round trip sends a line to the other cpu and back; one way is half of it. The \
         waiting cpu reads the line, so one way is two messages: the writer takes the line from \
         the reader, and the reader fetches it again. If the waiting cpu tries to write instead \
         (compare and swap, as core-to-core-latency does), the line moves once each way, and one \
         way takes about half as long.";
    Part::of("Cache line from cpu to cpu", panels).map(|part| part.noted(vec![note.to_owned()]))
}

fn nearness_table(summary: &Summary<'_>) -> Table {
    let found = &summary.c2c.by_nearness;
    let has_lines = found.iter().any(|found| found.lines_ns.is_some());
    let rows = found.iter().map(|found| {
        let mut row = vec![
            found.nearness.name().to_owned(),
            found.pairs.to_string(),
            figure(found.median_ns),
            figure(found.median_ns / 2.0),
            interval_text(Some(Interval { lo: found.fastest_ns, hi: found.slowest_ns })),
        ];
        if has_lines {
            row.push(found.lines_ns.map_or_else(|| "–".to_owned(), figure));
        }
        row
    });
    let table = Table::new("Round trips by the closest level that two cpus share, in ns")
        .words("cpus")
        .figures(["pairs", "round trip", "one way"])
        .figures("range of round trips");
    let table = if has_lines { table.figures("lines of a pair differ by") } else { table };
    table.rows(rows)
}
