//! Memory that others use too: shared segments, and files in the page cache.

use numalab_record::explore::{FULL, MappingKind, MappingView, ProcessView, spread};
use numalab_topology::{NodeId, NodeSet};

use super::{LARGE_BYTES, MOSTLY, ProcessProblem, runs_on};
use crate::Finding;
use crate::explore::find::nodes::PLENTY;
use crate::explore::find::room::{has_room, spread_over};
use crate::explore::find::{
    ExploreFinding, JudgedProblem, Obstacle, Problem, ProblemPlace, Remedy,
};

/// Returns true for memory that other processes can use too.
pub(super) fn is_shared(mapping: &MappingView) -> bool {
    let is_private = mapping.file.as_deref().is_some_and(|file| file.starts_with("/anon_hugepage"));
    match mapping.kind {
        MappingKind::Shared => true,
        MappingKind::HugePool => mapping.file.is_some() && !is_private,
        _ => false,
    }
}

/// Returns the name of a segment: its file, or its address.
pub(super) fn name(mapping: &MappingView) -> String {
    mapping.file.clone().unwrap_or_else(|| format!("{:x}", mapping.start))
}

/// The nodes that a segment fills.
pub(super) struct Crowded {
    nodes: NodeSet,
    /// The largest share of memory that any of these nodes has left.
    share: f64,
    /// The nodes with room.
    roomy: NodeSet,
}

/// Returns the nodes that a large segment, placed by first touch, fills while others have room.
/// Memory without cpus is a device's or a slower tier, for programs that name it.
pub(super) fn crowded(view: &ProcessView, of: &MappingView) -> Option<Crowded> {
    let left = |node: NodeId| view.room_by_node.get(&node)?.available_share();
    let is_pool = of.kind == MappingKind::HugePool;
    let is_by_touch = ["default", "local"].contains(&of.policy.as_str());
    let nodes = on(of);
    let share = nodes.iter().map(|node| left(node).unwrap_or(1.0)).fold(0.0, f64::max);
    let has_cpus = |node: NodeId| view.cpus_by_node.get(&node).is_some_and(|cpus| !cpus.is_empty());
    let is_roomy = |node: &NodeId| has_cpus(*node) && left(*node).is_some_and(|of| of >= PLENTY);
    let roomy: NodeSet = view.room_by_node.keys().copied().filter(is_roomy).collect();
    let is_large = spread::total(&of.bytes_by_node) >= LARGE_BYTES;
    let is_crowded = is_large && is_by_touch && share < FULL && !roomy.is_empty();
    (is_crowded && (is_pool || is_shared(of))).then_some(Crowded { nodes, share, roomy })
}

fn on(of: &MappingView) -> NodeSet {
    of.bytes_by_node.iter().filter(|(_, bytes)| **bytes > 0).map(|(node, _)| *node).collect()
}

/// Interleaves a segment over its own nodes and `others`, when it is allocated again.
pub(super) fn interleaved(
    view: &ProcessView,
    of: &MappingView,
    others: &NodeSet,
) -> Result<Remedy, Obstacle> {
    let bytes = spread::total(&of.bytes_by_node);
    let all: NodeSet = on(of).iter().chain(others.iter()).collect();
    let nodes = spread_over(&view.room_by_node, &all, bytes, &of.bytes_by_node)?;
    Ok(Remedy::InterleaveSegment { nodes, segment: name(of), bytes })
}

/// Finds segments that fill their nodes.
pub(super) fn crowding(view: &ProcessView) -> impl Iterator<Item = ExploreFinding> {
    view.mappings.iter().filter_map(move |of| {
        let Crowded { nodes, share, roomy } = crowded(view, of)?;
        let remedy = interleaved(view, of, &roomy);
        let (segment, bytes) = (name(of), spread::total(&of.bytes_by_node));
        let problem = ProcessProblem::SegmentCrowds { segment, bytes, nodes, share, roomy };
        let advice = JudgedProblem::wrong_if(Problem::Process(problem), remedy);
        Some(Finding::new(advice).over(FULL).shown_by(vec![ProblemPlace::Mapping(of.start)]))
    })
}

/// Notes large files with most pages on nodes where no thread runs. The first process to
/// read a file placed its pages.
pub(super) fn remote_files(view: &ProcessView) -> impl Iterator<Item = ExploreFinding> {
    let nodes = runs_on(view);
    let is_file = |of: &&MappingView| of.kind == MappingKind::File && !of.own;
    view.mappings.iter().filter(is_file).filter_map(move |of| {
        let file = of.file.as_deref().filter(|file| is_data(file))?;
        let bytes = spread::total(&of.bytes_by_node);
        let (home, share) = spread::most(&of.bytes_by_node)?;
        let here = spread::share_on(&of.bytes_by_node, &nodes)?;
        if bytes < LARGE_BYTES || nodes.is_empty() || here >= 1.0 - MOSTLY || nodes.contains(home) {
            return None;
        }
        let problem = ProcessProblem::FileRemote {
            file: file.to_owned(),
            bytes,
            home,
            share,
            nodes: nodes.clone(),
        };
        let advice =
            JudgedProblem::note_if(Problem::Process(problem), placed(view, of, &nodes, file));
        Some(Finding::new(advice).over(MOSTLY).shown_by(vec![ProblemPlace::Mapping(of.start)]))
    })
}

/// Returns true for a file that can be read again: not for libraries, which other programs have mapped.
fn is_data(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    !file.ends_with(" (deleted)") && !name.ends_with(".so") && !name.contains(".so.")
}

/// Returns the remedy: reading the file again on the nodes of the threads, if they have room.
fn placed(
    view: &ProcessView,
    of: &MappingView,
    nodes: &NodeSet,
    file: &str,
) -> Result<Remedy, Obstacle> {
    let bytes = spread::total(&of.bytes_by_node);
    let nodes = match nodes.first().filter(|_| nodes.len() == 1) {
        Some(node) => {
            has_room(&view.room_by_node, node, bytes)?;
            nodes.clone()
        }
        None => spread_over(&view.room_by_node, nodes, bytes, &of.bytes_by_node)?,
    };
    Ok(Remedy::PlaceFile { nodes, file: file.to_owned(), command: view.command.clone() })
}
