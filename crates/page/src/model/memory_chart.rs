//! What pictures of a program's memory are drawn of.

/// Regions by the nodes that they lie on and the threads that use them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AccessMap {
    /// The nodes that memory lies on, a column each.
    pub memory_nodes: Vec<u32>,
    /// From where it is used, with the threads that do, a column each.
    pub threads: Vec<(String, Vec<String>)>,
    /// The regions.
    pub rows: Vec<MapRow>,
    /// What is counted: `accesses`.
    pub counted: String,
}

impl AccessMap {
    pub(super) fn texts_mut(&mut self) -> Vec<&mut String> {
        let threads = self.threads.iter_mut().flat_map(|(_, names)| names);
        threads.chain(self.rows.iter_mut().flat_map(MapRow::texts_mut)).collect()
    }
}

/// A region of the map.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MapRow {
    /// Its name.
    pub name: String,
    /// Its size, and where it is from.
    pub detail: String,
    /// What is hot of it, from its beginning to its end.
    pub strip: Vec<StripPart>,
    /// Which part of it lies on each node.
    pub memory: Vec<Option<MapCell>>,
    /// Which part of all accesses are each thread's to it.
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

/// A part of a region.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StripPart {
    /// From 0, not used, to 1, the hottest part of all regions.
    pub heat: f64,
    /// Whether most of its accesses come from other nodes.
    pub is_remote: bool,
    /// All about it.
    pub tip: String,
}

/// A value of the map.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MapCell {
    /// The part, from 0 to 1.
    pub share: f64,
    /// Of that, the part that goes to other nodes; `None` where it is not about that.
    pub remote: Option<f64>,
    /// All about it.
    pub tip: String,
}

/// What is done to memory over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryOverTime {
    /// The moments, in order.
    pub moments: Vec<Moment>,
    /// The regions that are used most, and the others together.
    pub rows: Vec<TimeRow>,
    /// The phases.
    pub phases: Vec<PhaseMark>,
    /// What is counted: `accesses`.
    pub counted: String,
    /// Whether it is known how long memory is waited for.
    pub has_waits: bool,
}

/// A stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moment {
    /// Its end, in seconds since the beginning.
    pub end_s: f64,
    /// Accesses per second to memory of the cpu's node.
    pub local: f64,
    /// To memory of others.
    pub remote: f64,
    /// Of which that is not known.
    pub unplaced: f64,
    /// How many threads ran, on average.
    pub running: f64,
    /// Of these, how many waited for memory.
    pub waiting: f64,
}

/// A region over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimeRow {
    /// Its name.
    pub name: String,
    /// For each moment accesses per second, and the part of them that is remote.
    pub cells: Vec<(f64, f64)>,
}

/// A phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseMark {
    /// When it begins, in seconds.
    pub begin_s: f64,
    /// When it ends.
    pub end_s: f64,
    /// Its number.
    pub label: String,
}
