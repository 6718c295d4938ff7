//! A picture of a machine: packages, nodes with their memory, L3 groups, cores with their cpu
//! numbers, and distances as a heat table. One self-contained SVG file that is readable on light
//! and dark pages.

mod canvas;
mod heat;
mod node_box;

use std::collections::BTreeMap;

use numalab_topology::{Machine, Node, count};

use crate::feature::{Carried, Feature};
use crate::size::format_rounded;
use canvas::{Canvas, Size};
use heat::HeatTable;
use node_box::NodeBox;

const MARGIN: u32 = 24;
const GAP: u32 = 14;
const TITLE_HEIGHT: u32 = 40;
const PACKAGE_HEADER: u32 = 26;

/// The features that a drawing shows.
pub const CARRIED: Carried = Carried {
    format: "a drawing",
    features: &[
        Feature::Nodes,
        Feature::Memory,
        Feature::Packages,
        Feature::Cores,
        Feature::L3Groups,
        Feature::Caches,
        Feature::Distances,
        Feature::Tiers,
        Feature::MemorySideCaches,
        Feature::OfflineCpus,
        Feature::OfflineNodes,
        Feature::Devices,
    ],
    but: &[
        Feature::MemorySideWays,
        Feature::DeviceIds,
        Feature::UnplacedDevices,
        Feature::PackagesInNodes,
        Feature::InnerCaches,
        Feature::CacheLines,
        Feature::LoneDistance,
        Feature::CpuState,
        Feature::Digits,
    ],
};

/// Draws a machine.
pub fn write(machine: &Machine) -> String {
    let machine = &CARRIED.left(machine);
    let packages = packages(machine);
    let heat = HeatTable::of(machine);
    let title = summary(machine);
    let layout = PartPositions::best(&packages, heat.size(), canvas::text_width(&title, 20));
    let mut canvas = Canvas::default();
    canvas.text("title", MARGIN, MARGIN + 18, &title);
    for (package, &(x, y)) in packages.iter().zip(&layout.packages) {
        package.draw(&mut canvas, x, y);
    }
    let (x, y) = layout.heat;
    heat.draw(&mut canvas, x, y);
    canvas.finish(layout.size, &title)
}

/// The positions of all parts.
struct PartPositions {
    packages: Vec<(u32, u32)>,
    heat: (u32, u32),
    size: Size,
}

impl PartPositions {
    /// Returns the layout with proportions closest to those of a slide, among all numbers of rows
    /// with the distances at the side or below.
    fn best(packages: &[PackageBox], heat: Size, title_width: u32) -> Self {
        let rows = 1..=packages.len().max(1);
        let all = rows.flat_map(|rows| {
            let columns = packages.len().div_ceil(rows).max(1);
            let ragged = !packages.len().is_multiple_of(columns);
            [true, false]
                .map(|beside| (ragged, Self::new(packages, columns, heat, beside, title_width)))
        });
        // A row that is not full costs the same as a ratio that is wrong by a half.
        let flaw =
            |(ragged, layout): &(bool, Self)| layout.unlike_a_slide() + u64::from(*ragged) * 50;
        let best = all.min_by_key(flaw).map(|(_, layout)| layout);
        best.unwrap_or_else(|| Self::new(packages, 1, heat, true, title_width))
    }

    fn new(
        packages: &[PackageBox],
        columns: usize,
        heat: Size,
        beside: bool,
        title_width: u32,
    ) -> Self {
        let (mut places, area) = in_rows(packages, columns);
        for place in &mut places {
            *place = (place.0 + MARGIN, place.1 + MARGIN + TITLE_HEIGHT);
        }
        let (right, bottom) = (MARGIN + area.width, MARGIN + TITLE_HEIGHT + area.height);
        let heat_place = if heat == Size::default() {
            (MARGIN, MARGIN)
        } else if beside {
            (right + 2 * GAP, MARGIN + TITLE_HEIGHT)
        } else {
            (MARGIN, bottom + 2 * GAP)
        };
        let right = right.max(MARGIN + title_width);
        Self {
            packages: places,
            heat: heat_place,
            size: Size {
                width: right.max(heat_place.0 + heat.width) + MARGIN,
                height: bottom.max(heat_place.1 + heat.height) + MARGIN,
            },
        }
    }

    /// Returns the deviation of the sides from 16 to 9, as a ratio in percent.
    fn unlike_a_slide(&self) -> u64 {
        let wide = u64::from(self.size.width) * 9;
        let high = u64::from(self.size.height) * 16;
        wide.max(high) * 100 / wide.min(high).max(1)
    }
}

fn summary(machine: &Machine) -> String {
    let some = |number: usize, noun: &str| (number > 0).then(|| count(number, noun));
    let memory = Some(machine.memory_bytes()).filter(|&bytes| bytes > 0);
    let parts = [
        some(machine.packages().len(), "package"),
        some(machine.nodes.len(), "node"),
        some(machine.l3_groups().len(), "L3 group"),
        some(machine.cores().len(), "core"),
        some(machine.cpus.len(), "cpu"),
        memory.map(format_rounded),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        return "an empty machine".to_owned();
    }
    parts.join(" · ")
}

/// A package with its nodes, or the nodes that are not in a single package.
struct PackageBox {
    label: String,
    nodes: Vec<NodeBox>,
    columns: usize,
    /// The size of every node.
    node: Size,
    size: Size,
}

impl PackageBox {
    fn new(label: String, nodes: Vec<NodeBox>, node: Size) -> Self {
        let columns = match nodes.len() {
            0..=3 => nodes.len(),
            4 => 2,
            5..=9 => 3,
            _ => 4,
        };
        let rows = nodes.len().div_ceil(columns.max(1));
        let across = |count: usize, length: u32| canvas::units(count) * (length + GAP) + GAP;
        Self {
            label,
            nodes,
            columns,
            node,
            size: Size {
                width: across(columns, node.width),
                height: across(rows, node.height) + PACKAGE_HEADER - GAP / 2,
            },
        }
    }

    fn draw(&self, canvas: &mut Canvas, x: u32, y: u32) {
        canvas.rectangle("package", x, y, self.size);
        canvas.text("label", x + GAP, y + 19, &self.label);
        for (index, node) in self.nodes.iter().enumerate() {
            let column = canvas::units(index % self.columns);
            let row = canvas::units(index / self.columns);
            let node_x = x + GAP + column * (self.node.width + GAP);
            let node_y = y + PACKAGE_HEADER + GAP / 2 + row * (self.node.height + GAP);
            node.draw(canvas, node_x, node_y, self.node);
        }
    }
}

/// Returns the nodes by package, all drawn in one size.
fn packages(machine: &Machine) -> Vec<PackageBox> {
    let style = node_box::Detail::of(machine);
    let mut groups: BTreeMap<(bool, Option<u32>), Vec<NodeBox>> = BTreeMap::new();
    for node in &machine.nodes {
        let package = package_of(machine, node);
        let drawn = NodeBox::of(machine, node, style);
        groups.entry((package.is_none(), package)).or_default().push(drawn);
    }
    let sizes = || groups.values().flatten().map(NodeBox::size);
    let node = Size {
        width: sizes().map(|size| size.width).max().unwrap_or_default(),
        height: sizes().map(|size| size.height).max().unwrap_or_default(),
    };
    let label = |package: Option<u32>, nodes: &[NodeBox]| match package {
        Some(package) => format!("package {package}"),
        None if nodes.iter().all(NodeBox::is_memory_only) => "memory only".to_owned(),
        None => "nodes".to_owned(),
    };
    let boxes = groups.into_iter().map(|((_, package), nodes)| {
        let label = label(package, &nodes);
        PackageBox::new(label, nodes, node)
    });
    boxes.collect()
}

/// Returns the package that contains all cpus of a node.
fn package_of(machine: &Machine, node: &Node) -> Option<u32> {
    let mut packages = node.cpus.iter().map(|cpu| machine.cpu(cpu).and_then(|cpu| cpu.package));
    let first = packages.next()??;
    packages.all(|package| package == Some(first)).then_some(first)
}

/// Places boxes in rows of `columns` boxes.
fn in_rows(boxes: &[PackageBox], columns: usize) -> (Vec<(u32, u32)>, Size) {
    let mut places = Vec::new();
    let mut area = Size::default();
    for row in boxes.chunks(columns) {
        let y = if area.height == 0 { 0 } else { area.height + GAP };
        let mut x = 0;
        for one in row {
            places.push((x, y));
            x += one.size.width + GAP;
            area.height = area.height.max(y + one.size.height);
        }
        area.width = area.width.max(x.saturating_sub(GAP));
    }
    (places, area)
}
