//! Names of a machine's figures.

use super::{Access, LoadedPlace, MachineFigure};

pub(super) fn words(figure: &MachineFigure) -> String {
    match figure {
        MachineFigure::Latency { access, from, to } => {
            let access = if *access == Access::Load { "load" } else { "store" };
            format!("{access} latency from node {from} to node {to}")
        }
        MachineFigure::Bandwidth { access, from, to } => {
            let access = if *access == Access::Load { "reads" } else { "writes" };
            format!("{access} from node {from} to node {to}")
        }
        MachineFigure::CacheHit(level) => format!("hit in L{level}"),
        MachineFigure::CacheSize(level) => format!("size of L{level}"),
        MachineFigure::TlbEntries { level, page_bytes } => {
            let pages = page_bytes.iter().map(|bytes| format!("{} KiB", bytes >> 10));
            let pages: Vec<String> = pages.collect();
            format!("entries of TLB level {level} for pages of {}", pages.join(", "))
        }
        MachineFigure::LineWithinGroup => "line within an L3 group, one way".to_owned(),
        MachineFigure::LineBetweenNodes(from, to) => {
            format!("line between groups of nodes {from} and {to}, one way")
        }
        MachineFigure::Peak(place) => format!("peak of {}", loaded(place)),
        MachineFigure::LatencyAtPeak(place) => format!("latency at the peak of {}", loaded(place)),
    }
}

fn loaded(place: &LoadedPlace) -> String {
    let LoadedPlace { node, from, writes_percent } = place;
    match from {
        Some(from) => format!("link from node {from} to node {node}, {writes_percent} % writes"),
        None => format!("memory of node {node}, {writes_percent} % writes"),
    }
}
