//! Emulated nodes as typed by users: `4`, `2U`, `1G,1G,2G,0`.
#![expect(missing_docs, reason = "fields of errors that their names explain")]

use numalab_topology::{DistanceError, Distances, EmulatedNode, EmulatedNodes, EmulationSpec};

use crate::size::{SizeError, parse_with_unit};

/// Reasons why a string does not describe emulated nodes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmulationTextError {
    /// An item in a list of nodes is not a size.
    #[error(
        "`{item}` in `{text}` is not a node: expected a size with its unit, such as 1G, 0 for \
             no memory, and :COUNT after it for a number of cpus (4 alone is four equal nodes, \
             2U splits every node in two)"
    )]
    Node { text: String, item: String },
    /// A size in a list of nodes is out of range.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// A value in a distance table is not a number from 0 to 255.
    #[error(
        "`{item}` in the distance table `{text}` is not a distance: expected 10 to 255, rows \
             separated by `;`, such as 10,20;20,10"
    )]
    Distance { text: String, item: String },
    /// The rows of a distance table do not form a square.
    #[error("distance table: {0}")]
    Table(#[from] DistanceError),
}

/// Parses the nodes to emulate:
///
/// - `4`: four nodes with equal parts of the machine;
/// - `2U`: every physical node split in two;
/// - `1G,1G,2G,0`: nodes with this much memory, the last with none;
/// - `1G:4,1G:4,2G:0`: the same with their numbers of cpus; a node without one gets an even part of
///   the remaining cpus.
///
/// # Errors
/// [`EmulationTextError::Node`] and [`EmulationTextError::Size`], quoting the item.
pub fn parse_nodes(text: &str) -> Result<EmulatedNodes, EmulationTextError> {
    let trimmed = text.trim();
    if let Ok(nodes) = trimmed.parse() {
        return Ok(EmulatedNodes::Equal(nodes));
    }
    if let Some(Ok(ways)) = trimmed.strip_suffix(['U', 'u']).map(str::parse) {
        return Ok(EmulatedNodes::Split(ways));
    }
    let nodes: Result<_, _> =
        trimmed.split(',').map(|item| parse_node(item.trim(), text)).collect();
    Ok(EmulatedNodes::Listed(nodes?))
}

/// Parses a distance table: rows are separated by `;`, values by `,` or spaces.
///
/// # Errors
/// [`EmulationTextError::Distance`] and [`EmulationTextError::Table`].
pub fn parse_distances(text: &str) -> Result<Distances, EmulationTextError> {
    let value = |item: &str| {
        let malformed =
            || EmulationTextError::Distance { text: text.to_owned(), item: item.to_owned() };
        let value = item.parse::<u8>().map_err(|_| malformed())?;
        if value < numalab_topology::LOCAL_DISTANCE {
            return Err(malformed());
        }
        Ok(value)
    };
    let mut rows = Vec::new();
    for row in text.trim().trim_end_matches(';').split(';') {
        let items = row.split([',', ' ', '\t', '\n']).filter(|item| !item.is_empty());
        rows.push(items.map(value).collect::<Result<Vec<u8>, _>>()?);
    }
    Ok(Distances::from_rows(&rows)?)
}

/// Parses nodes and, if given, their distance table.
///
/// # Errors
/// As [`parse_nodes`] and [`parse_distances`].
pub fn parse(nodes: &str, distances: Option<&str>) -> Result<EmulationSpec, EmulationTextError> {
    Ok(EmulationSpec {
        nodes: parse_nodes(nodes)?,
        distances: distances.map(parse_distances).transpose()?,
    })
}

fn parse_node(item: &str, text: &str) -> Result<EmulatedNode, EmulationTextError> {
    let malformed = || EmulationTextError::Node { text: text.to_owned(), item: item.to_owned() };
    let (size, cpus) = match item.split_once(':') {
        Some((size, cpus)) => (size, Some(cpus.parse().map_err(|_| malformed())?)),
        None => (item, None),
    };
    let memory_bytes = parse_with_unit(size).map_err(|error| match error {
        SizeError::Form { .. } | SizeError::Unit { .. } => malformed(),
        error => error.into(),
    })?;
    Ok(EmulatedNode { memory_bytes, cpus })
}
