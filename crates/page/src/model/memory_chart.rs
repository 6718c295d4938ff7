//! The data of charts of a program's memory.

/// Regions by the nodes that hold them and the threads that use them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AccessMap {
    /// The nodes with memory, one per column.
    pub memory_nodes: Vec<u32>,
    /// The nodes from which it is used, with their threads, one per column.
    pub threads: Vec<(String, Vec<String>)>,
    pub rows: Vec<MapRow>,
    /// The name of the counted quantity: `accesses`.
    pub counted: String,
}

impl AccessMap {
    pub(super) fn texts_mut(&mut self) -> Vec<&mut String> {
        let threads = self.threads.iter_mut().flat_map(|(_, names)| names);
        threads.chain(self.rows.iter_mut().flat_map(MapRow::texts_mut)).collect()
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct MapRow {
    pub name: String,
    /// Size and origin of the mapping.
    pub detail: String,
    /// The heat of its parts, from start to end.
    pub strip: Vec<StripPart>,
    /// The share of it on each node.
    pub memory: Vec<Option<MapCell>>,
    /// The share of all accesses that each thread makes to it.
    pub accesses: Vec<Option<MapCell>>,
}

impl MapRow {
    fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let cells = self.memory.iter_mut().chain(&mut self.accesses).flatten();
        let tips =
            cells.map(|cell| &mut cell.tip).chain(self.strip.iter_mut().map(|of| &mut of.tip));
        tips.chain([&mut self.name, &mut self.detail])
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct StripPart {
    /// The heat, from 0 (unused) to 1 (the hottest part of all regions).
    pub heat: f64,
    /// True if most of its accesses come from other nodes.
    pub is_remote: bool,
    /// A full description.
    pub tip: String,
}

/// The share of a row that one column of an [`AccessMap`] has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MapCell {
    /// The share, from 0 to 1.
    pub share: f64,
    /// The part of the share that goes to other nodes; `None` if that does not apply.
    pub remote: Option<f64>,
    /// A full description.
    pub tip: String,
}

/// The use of memory over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryOverTime {
    pub moments: Vec<Moment>,
    /// The regions that are used most, and one row for all others.
    pub rows: Vec<TimeRow>,
    pub phases: Vec<PhaseMark>,
    /// The name of the counted quantity: `accesses`.
    pub counted: String,
    /// True if the time spent waiting for memory is known.
    pub has_waits: bool,
}

/// A stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moment {
    /// End of the interval, in seconds since the start.
    pub end_s: f64,
    /// Accesses per second to memory of the cpu's node.
    pub local: f64,
    /// Accesses per second to memory of other nodes.
    pub remote: f64,
    /// Accesses per second to memory of unknown location.
    pub unplaced: f64,
    /// The mean number of threads that ran.
    pub running: f64,
    /// The mean number of those threads that waited for memory.
    pub waiting: f64,
}

/// A region over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimeRow {
    pub name: String,
    /// For each moment, the accesses per second, and the share of them that is remote.
    pub cells: Vec<(f64, f64)>,
}

/// A labelled span of time in a chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseMark {
    /// Start of the phase, in seconds.
    pub begin_s: f64,
    /// End of the phase, in seconds.
    pub end_s: f64,
    pub label: String,
}
