//! The distances as a heat table.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use numalab_topology::{Distances, LOCAL_DISTANCE, Machine};

use super::canvas::{Canvas, Size, units};

const HEADER: u32 = 26;
/// The largest number of nodes for which numbers are drawn.
const MOST_LABELLED: usize = 64;
/// The colours of the nearest and the farthest distance, in red, green and blue.
const NEAR: [u8; 3] = [0xe4, 0xf0, 0xfa];
const FAR: [u8; 3] = [0x0b, 0x3d, 0x78];

/// The table before it is drawn.
pub(super) struct HeatTable<'m> {
    distances: &'m Distances,
    /// The heat of every distance that occurs, from 0 to 100.
    heats: BTreeMap<u8, u32>,
    names: Vec<String>,
    cell: Size,
}

impl<'m> HeatTable<'m> {
    pub(super) fn of(machine: &'m Machine) -> Self {
        let names: Vec<String> = machine.nodes.iter().map(|node| node.id.to_string()).collect();
        let (width, height) = match names.len() {
            0..=4 => (52, 36),
            5..=10 => (40, 30),
            11..=16 => (34, 26),
            17..=MOST_LABELLED => (28, 22),
            _ => (4, 4),
        };
        let heats = heats(&machine.distances.values());
        Self { distances: &machine.distances, heats, names, cell: Size { width, height } }
    }

    fn is_empty(&self) -> bool {
        self.distances.is_empty() || self.names.len() < 2
    }

    pub(super) fn size(&self) -> Size {
        if self.is_empty() {
            return Size { width: 0, height: 0 };
        }
        let cells = units(self.names.len()) + 1;
        Size {
            width: (cells * self.cell.width).max(180),
            height: HEADER + cells * self.cell.height,
        }
    }

    pub(super) fn draw(&self, canvas: &mut Canvas, x: u32, y: u32) {
        if self.is_empty() {
            return;
        }
        canvas.text("label", x, y + 19, "distance, from row to column");
        if self.names.len() <= MOST_LABELLED {
            self.draw_labelled(canvas, x, y);
        } else {
            self.draw_compact(canvas, x, y);
        }
    }

    fn draw_labelled(&self, canvas: &mut Canvas, x: u32, y: u32) {
        let Size { width, height } = self.cell;
        let centre = |place: u32| {
            (x + place * width + width / 2, y + HEADER + place * height + height / 2 + 4)
        };
        let (left, top) = centre(0);
        for (name, place) in self.names.iter().zip(1..) {
            canvas.text("head", centre(place).0, top, name);
            canvas.text("head", left, centre(place).1, name);
        }
        for (from, row) in (1..=units(self.names.len())).enumerate() {
            for (to, column) in (1..=units(self.names.len())).enumerate() {
                let (cell_x, cell_y) = (x + column * width, y + HEADER + row * height);
                let patch = Size { width: width - 2, height: height - 2 };
                let (text_x, text_y) = (centre(column).0 - 1, centre(row).1 - 1);
                match self.distances.get(from, to) {
                    None => {
                        canvas.rectangle("unknown", cell_x, cell_y, patch);
                        canvas.text("value", text_x, text_y, "?");
                    }
                    Some(distance) => {
                        let heat = self.heats.get(&distance).copied().unwrap_or_default();
                        canvas.patch(&colour(heat), cell_x, cell_y, patch);
                        let ink = if heat > 45 { "value ondark" } else { "value onlight" };
                        canvas.text(ink, text_x, text_y, &distance.to_string());
                    }
                }
            }
        }
    }

    /// Draws one path for each distance, with a stroke for each run of equal cells; unknown
    /// distances are left blank.
    fn draw_compact(&self, canvas: &mut Canvas, x: u32, y: u32) {
        let Size { width, height } = self.cell;
        let mut paths: BTreeMap<u8, String> = BTreeMap::new();
        let places: Vec<(usize, u32)> = (0..self.names.len()).zip(1..).collect();
        for &(from, row) in &places {
            let distance = |to| self.distances.get(from, to);
            for run in places.chunk_by(|&(a, _), &(b, _)| distance(a) == distance(b)) {
                if let [(to, column), ..] = *run
                    && let Some(distance) = distance(to)
                {
                    let (left, middle) =
                        (x + column * width, y + HEADER + row * height + height / 2);
                    let path = paths.entry(distance).or_default();
                    let _ = write!(path, "M{left} {middle}h{}", units(run.len()) * width);
                }
            }
        }
        for (distance, path) in paths {
            let heat = self.heats.get(&distance).copied().unwrap_or_default();
            canvas.strokes(&colour(heat), height, &path);
        }
    }
}

/// Returns the heat of each of these ascending values: 0 for the local distance to 100 for the
/// largest, half by rank and half by value, so that neighbouring values are distinguishable and far
/// ones look far.
fn heats(values: &[u8]) -> BTreeMap<u8, u32> {
    let largest = u32::from(values.last().copied().unwrap_or_default().max(LOCAL_DISTANCE + 1));
    let heat = |(rank, &value): (u32, &u8)| {
        let above = u32::from(value.saturating_sub(LOCAL_DISTANCE));
        let by_value = 100 * above / (largest - u32::from(LOCAL_DISTANCE));
        let by_rank = 100 * rank / units(values.len()).saturating_sub(1).max(1);
        (value, (by_value + by_rank) / 2)
    };
    (0..).zip(values).map(heat).collect()
}

/// Returns the colour of a heat from 0 to 100.
fn colour(heat: u32) -> String {
    let heat = heat.min(100);
    let mix =
        |index: usize| (u32::from(NEAR[index]) * (100 - heat) + u32::from(FAR[index]) * heat) / 100;
    format!("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2))
}
