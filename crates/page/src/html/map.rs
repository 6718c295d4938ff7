//! Regions, the nodes that hold them and the threads that use them, as a coloured table.

use super::markup::{escape, tip};
use crate::{AccessMap, MapCell, MapRow, StripPart};

/// The number of colours from little to much.
const STEPS: f64 = 6.0;
/// The share below which cells have the faintest colour: the scale spans two decades.
const LEAST: f64 = 0.005;
/// The share of remote accesses above which a cell counts as remote.
const MOSTLY: f64 = 0.5;
/// The share of remote accesses below which none are marked.
const LEAST_FAR: f64 = 0.02;
/// The width and height of a strip, in its own units.
const STRIP: (usize, usize) = (128, 18);

/// Draws the map, with its legend.
pub(super) fn chart(map: &AccessMap, caption: &str) -> String {
    let mut out = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\
         <table class=\"heat map\" data-chart>{}<tbody>\n",
        escape(caption),
        head(map)
    );
    let mut is_first = true;
    for row in &map.rows {
        out.push_str(&line(row, map, &mut is_first));
    }
    out.push_str("</tbody></table></div>\n");
    out + &legend(map)
}

fn head(map: &AccessMap) -> String {
    let has_strips = map.rows.iter().any(|row| !row.strip.is_empty());
    let strip =
        if has_strips { "<th rowspan=\"2\" scope=\"col\">first address to last</th>" } else { "" };
    let nodes = map.memory_nodes.len();
    let on = if nodes > 0 {
        format!("<th colspan=\"{nodes}\" scope=\"colgroup\">on node</th>")
    } else {
        String::new()
    };
    let group = |(from, threads): &(String, Vec<String>)| {
        let (count, from) = (threads.len(), escape(from));
        format!("<th class=\"first\" colspan=\"{count}\" scope=\"colgroup\">{from}</th>")
    };
    let groups: String = map.threads.iter().map(group).collect();
    let nodes: String = map
        .memory_nodes
        .iter()
        .map(|node| format!("<th scope=\"col\" class=\"n\">{node}</th>"))
        .collect();
    let threads: String = map
        .threads
        .iter()
        .flat_map(|(_, threads)| threads.iter().enumerate())
        .map(|(at, thread)| {
            let first = if at == 0 { " first" } else { "" };
            format!("<th scope=\"col\" class=\"n{first}\">{}</th>", escape(thread))
        })
        .collect();
    format!(
        "<thead><tr><th rowspan=\"2\" scope=\"col\">region</th>{strip}{on}{groups}</tr>\
         <tr>{nodes}{threads}</tr></thead>"
    )
}

fn line(row: &MapRow, map: &AccessMap, is_first: &mut bool) -> String {
    let has_strips = map.rows.iter().any(|row| !row.strip.is_empty());
    let mut out = format!(
        "<tr><th scope=\"row\">{}<small>{}</small></th>",
        escape(&row.name),
        escape(&row.detail)
    );
    if has_strips {
        out.push_str(&format!("<td class=\"strip\">{}</td>", strip(&row.strip)));
    }
    for value in &row.memory {
        out.push_str(&cell(value.as_ref(), "m", "", is_first));
    }
    let firsts = map.threads.iter().flat_map(|(_, threads)| (0..threads.len()).map(|at| at == 0));
    for (value, first) in row.accesses.iter().zip(firsts) {
        let remote = value.as_ref().and_then(|of| of.remote).unwrap_or(0.0);
        let kind = if remote > MOSTLY { "r" } else { "h" };
        out.push_str(&cell(value.as_ref(), kind, if first { " first" } else { "" }, is_first));
    }
    out.push_str("</tr>\n");
    out
}

fn cell(value: Option<&MapCell>, kind: &str, more: &str, is_first: &mut bool) -> String {
    let Some(of) = value else { return format!("<td class=\"none{more}\"></td>") };
    let percent = 100.0 * of.share;
    let text = if percent >= 0.95 { format!("{percent:.0}") } else { String::new() };
    let tip = tip(&of.tip, *is_first);
    *is_first = false;
    let far = of
        .remote
        .filter(|far| kind == "h" && *far >= LEAST_FAR)
        .map_or_else(String::new, |far| format!(" style=\"--far:{:.0}%\"", 100.0 * far));
    let part = if far.is_empty() { "" } else { " part" };
    format!("<td class=\"{kind}{}{more}{part}\"{far} {tip}>{text}</td>", step(of.share))
}

/// Draws how hot each part is, as a row of small boxes.
fn strip(parts: &[StripPart]) -> String {
    let (width, height) = STRIP;
    let mut out = format!(
        "<svg viewBox=\"0 0 {width} {height}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <rect class=\"empty\" width=\"{width}\" height=\"{height}\"/>"
    );
    let each = width as f64 / parts.len().max(1) as f64;
    for (at, part) in parts.iter().enumerate().filter(|(_, part)| part.heat > 0.0) {
        let class = if part.is_remote { "f1" } else { "f0" };
        out.push_str(&format!(
            "<rect class=\"{class}\" x=\"{:.2}\" width=\"{each:.2}\" height=\"{height}\" \
             fill-opacity=\"{:.2}\" data-tip=\"{}\"/>",
            at as f64 * each,
            0.2 + 0.8 * part.heat.clamp(0.0, 1.0),
            escape(&part.tip)
        ));
    }
    out + "</svg>"
}

/// Returns a colour on a logarithmic scale, so that small shares are visible next to the largest
/// region.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the steps")]
fn step(share: f64) -> usize {
    let height = (share.max(LEAST) / LEAST).ln() / LEAST.recip().ln();
    (height * STEPS).round().clamp(0.0, STEPS) as usize
}

fn legend(map: &AccessMap) -> String {
    let steps = |kind: &str| -> String {
        (0..=6).map(|step| format!("<i class=\"{kind}{step}\"></i>")).collect()
    };
    let counted = escape(&map.counted);
    let mut items = Vec::new();
    if map.memory_nodes.len() > 1 {
        items.push(("m", "% of the region's pages".to_owned()));
    }
    if !map.threads.is_empty() {
        let is_remote =
            |cell: &Option<MapCell>| cell.as_ref().is_some_and(|of| of.remote > Some(0.0));
        let any = map.rows.iter().any(|row| row.accesses.iter().any(is_remote));
        let local = if any { ", to memory of the thread's own node" } else { "" };
        items.push(("h", format!("% of all {counted}{local}")));
        if any {
            items.push((
                "r",
                "mostly to memory of other nodes; a bar shows a smaller share".to_owned(),
            ));
        }
    }
    let items: String = items
        .iter()
        .map(|(kind, text)| format!("<span class=\"steps\">{}</span> {text}\n", steps(kind)))
        .collect();
    format!("<div class=\"legend many\" aria-hidden=\"true\">{items}</div>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_distinguish_two_decades() {
        assert_eq!((step(0.0), step(0.005), step(1.0)), (0, 0, 6));
        assert!(step(0.05) > step(0.01) && step(0.3) > step(0.05));
    }

    #[test]
    fn a_cell_of_remote_accesses_has_another_colour_and_names_are_escaped() {
        let cell =
            |remote| Some(MapCell { share: 0.4, remote: Some(remote), tip: "<t>".to_owned() });
        let of = |from: &str, thread: &str| (from.to_owned(), vec![thread.to_owned()]);
        let map = AccessMap {
            memory_nodes: vec![0, 1],
            threads: vec![of("from 0", "7"), of("from 1", "8")],
            rows: vec![MapRow {
                name: "<heap>".to_owned(),
                memory: vec![Some(MapCell { share: 1.0, ..MapCell::default() }), None],
                accesses: vec![cell(0.25), cell(0.9)],
                ..MapRow::default()
            }],
            counted: "accesses".to_owned(),
        };
        let html = chart(&map, "map");
        assert!(
            html.contains("class=\"m6\"")
                && html.contains("class=\"h5 first part\" style=\"--far:25%\""),
            "{html}"
        );
        assert!(html.contains("class=\"r5 first\"") && html.contains("&lt;heap&gt;"), "{html}");
        assert!(html.contains("mostly to memory of other nodes"));
        assert!(!html.contains("<t>"));
    }
}
