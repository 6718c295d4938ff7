//! The box of a node: its memory, and its cores by L3 group.

use std::collections::BTreeMap;

use numalab_topology::{CacheKind, Cpu, CpuSet, Machine, MemorySideCache, Node, count};

use super::canvas::{Canvas, Size, text_width, units};
use crate::device::label_of;
use crate::size::format_rounded;

const PADDING: u32 = 10;
const HEADER: u32 = 26;
const MEMORY_HEIGHT: u32 = 22;
const BAR_HEIGHT: u32 = 6;
const GROUP_HEADER: u32 = 18;
const GROUP_PADDING: u32 = 6;
const GROUP_GAP: u32 = 8;
const CORE_GAP: u32 = 3;
const LINE_HEIGHT: u32 = 12;
/// Height of a line below the groups.
const ROW_HEIGHT: u32 = 14;
/// The largest number of devices of a node that are drawn separately.
const MOST_DEVICES: usize = 8;
const CPU_FONT: u32 = 10;
const SMALL_FONT: u32 = 11;
const LEAST_WIDTH: u32 = 150;
/// The largest number of cores that are drawn separately.
const MOST_CORES: usize = 288;
const MOST_CORES_IN_GROUP: usize = 64;
/// Maximum number of a core's cpus that are written below each other.
const MOST_THREADS: usize = 4;
/// Number of characters in a line of a collapsed list.
const LIST_LETTERS: usize = 24;

/// The level of detail, the same for the whole machine.
#[derive(Clone, Copy)]
pub(super) struct Detail {
    cores: bool,
    core: Size,
    largest_memory: u64,
}

impl Detail {
    pub(super) fn of(machine: &Machine) -> Self {
        let cores = cores(machine.cpus.iter());
        let lines = cores.iter().map(|core| core_lines(core));
        let (mut letters, mut most_lines) = (String::new(), 1);
        for lines in lines {
            most_lines = most_lines.max(lines.len());
            letters =
                lines.into_iter().chain([letters]).max_by_key(String::len).unwrap_or_default();
        }
        Self {
            cores: cores.len() <= MOST_CORES,
            core: Size {
                width: text_width(&letters, CPU_FONT) + 8,
                height: units(most_lines) * LINE_HEIGHT + 6,
            },
            largest_memory: machine
                .nodes
                .iter()
                .map(|node| node.memory_bytes)
                .max()
                .unwrap_or_default(),
        }
    }
}

/// A node before it is drawn.
pub(super) struct NodeBox {
    name: String,
    class: &'static str,
    online: bool,
    memory_bytes: u64,
    detail: Detail,
    groups: Vec<Group>,
    /// A line for each cache in front of its memory, and for each device that is near the node.
    lines: Vec<String>,
}

/// The cores of one L3 group that are on the node.
struct Group {
    /// The label; `None` if L3 groups are not known.
    label: Option<String>,
    body: Body,
}

enum Body {
    /// Cores with their lines of cpu numbers.
    Cores(Vec<Vec<String>>),
    /// Lines of a list of cpus.
    List(Vec<String>),
}

impl NodeBox {
    pub(super) fn of(machine: &Machine, node: &Node, detail: Detail) -> Self {
        let mut groups: BTreeMap<(bool, Option<u32>), Vec<&Cpu>> = BTreeMap::new();
        for cpu in node.cpus.iter().filter_map(|id| machine.cpu(id)) {
            groups.entry((cpu.l3_group.is_none(), cpu.l3_group)).or_default().push(cpu);
        }
        let groups = groups.into_iter().map(|((_, number), cpus)| Group {
            label: number.map(|number| group_label(machine, number, &cpus)),
            body: Body::of(&cpus, detail),
        });
        Self {
            name: match machine.tier_of(node.id) {
                Some(tier) => format!("node {} · tier {tier}", node.id),
                None => format!("node {}", node.id),
            },
            class: if node.cpus.is_empty() { "memory-only" } else { "node" },
            online: node.online,
            memory_bytes: node.memory_bytes,
            detail,
            groups: groups.collect(),
            lines: cache_lines(node).chain(device_lines(machine, node)).collect(),
        }
    }

    pub(super) fn is_memory_only(&self) -> bool {
        self.groups.is_empty()
    }

    fn columns(&self) -> usize {
        match self.groups.len() {
            0..=1 => 1,
            2..=4 => 2,
            _ => 4,
        }
    }

    fn group(&self) -> Size {
        let sizes = || self.groups.iter().map(|group| group.size(self.detail));
        Size {
            width: sizes().map(|size| size.width).max().unwrap_or_default(),
            height: sizes().map(|size| size.height).max().unwrap_or_default(),
        }
    }

    pub(super) fn size(&self) -> Size {
        let group = self.group();
        let columns = units(self.columns());
        let rows = units(self.groups.len()).div_ceil(columns);
        let width = columns * (group.width + GROUP_GAP) - GROUP_GAP + 2 * PADDING;
        let lines = self.lines.iter().map(|line| text_width(line, SMALL_FONT) + 2 * PADDING);
        let no_cpus = if self.groups.is_empty() { LINE_HEIGHT } else { 0 };
        let below = match units(self.lines.len()) {
            0 => 0,
            lines => lines * ROW_HEIGHT + PADDING / 2 + no_cpus,
        };
        Size {
            width: lines.chain([width, LEAST_WIDTH]).max().unwrap_or(LEAST_WIDTH),
            height: HEADER
                + MEMORY_HEIGHT
                + rows * (group.height + GROUP_GAP)
                + below
                + PADDING / 2,
        }
    }

    pub(super) fn draw(&self, canvas: &mut Canvas, x: u32, y: u32, size: Size) {
        canvas.group(if self.online { "online" } else { "offline" });
        canvas.rectangle(self.class, x, y, size);
        canvas.text("name", x + PADDING, y + 19, &self.name);
        let memory = match self.memory_bytes {
            0 if self.detail.largest_memory == 0 => String::new(),
            0 => "no memory".to_owned(),
            bytes => format_rounded(bytes),
        };
        canvas.text("amount", x + size.width - PADDING, y + 19, &memory);
        self.draw_memory(canvas, x + PADDING, y + HEADER + 4, size.width - 2 * PADDING);
        if self.groups.is_empty() {
            let below = y + HEADER + MEMORY_HEIGHT + LINE_HEIGHT;
            canvas.text("small", x + PADDING, below, "no cpus");
        }
        let group = self.group();
        let columns = self.columns();
        // Groups fill the width of the widest node.
        let room = size.width - 2 * PADDING + GROUP_GAP;
        let width = room / units(columns) - GROUP_GAP;
        for (index, one) in self.groups.iter().enumerate() {
            let column = units(index % columns);
            let row = units(index / columns);
            let group_x = x + PADDING + column * (width + GROUP_GAP);
            let group_y = y + HEADER + MEMORY_HEIGHT + row * (group.height + GROUP_GAP);
            let size = Size { width, ..group };
            one.draw(canvas, group_x, group_y, size, self.detail);
        }
        let bottom = y + size.height - PADDING;
        for (line, above) in self.lines.iter().rev().zip(0..) {
            canvas.text("small", x + PADDING, bottom - above * ROW_HEIGHT, line);
        }
        canvas.end_group();
    }

    /// Draws a bar as long as the memory is large, compared with the largest of the machine.
    fn draw_memory(&self, canvas: &mut Canvas, x: u32, y: u32, width: u32) {
        if self.detail.largest_memory == 0 {
            return;
        }
        let height = BAR_HEIGHT;
        canvas.rectangle("track", x, y, Size { width, height });
        let part = u128::from(width) * u128::from(self.memory_bytes)
            / u128::from(self.detail.largest_memory);
        let part = u32::try_from(part).unwrap_or(width);
        if part > 0 {
            canvas.rectangle("bar", x, y, Size { width: part, height });
        }
    }
}

/// Returns lines such as `memory-side cache 64 MiB`, nearest to the cpus first.
fn cache_lines(node: &Node) -> impl Iterator<Item = String> {
    let size = |cache: &MemorySideCache| format_rounded(cache.size_bytes);
    node.memory_side_caches.iter().map(move |cache| format!("memory-side cache {}", size(cache)))
}

/// Returns lines such as `network eth0 · 0000:41:00.0`, and the number of devices above the limit.
fn device_lines(machine: &Machine, node: &Node) -> Vec<String> {
    let near = machine.devices.iter().filter(|device| device.node == Some(node.id));
    let mut lines: Vec<String> = near.map(label_of).collect();
    if lines.len() > MOST_DEVICES {
        let more = lines.len() - MOST_DEVICES;
        lines.truncate(MOST_DEVICES);
        lines.push(format!("and {more} more"));
    }
    lines
}

impl Body {
    fn of(cpus: &[&Cpu], detail: Detail) -> Self {
        let cores = cores(cpus.iter().copied());
        if detail.cores && cores.len() <= MOST_CORES_IN_GROUP {
            return Self::Cores(cores.iter().map(|core| core_lines(core)).collect());
        }
        let set: CpuSet = cpus.iter().map(|cpu| cpu.id).collect();
        let known = cpus.iter().all(|cpu| cpu.core.is_some());
        let mut lines = match known {
            true => vec![format!("{}, {}", count(cores.len(), "core"), count(cpus.len(), "cpu"))],
            false => vec![count(cpus.len(), "cpu")],
        };
        lines.extend(wrap(&set.to_string()));
        Self::List(lines)
    }
}

impl Group {
    fn columns(cores: usize) -> usize {
        match cores {
            0..=4 => cores.max(1),
            5..=8 => 4,
            9..=12 => 6,
            _ => 8,
        }
    }

    fn header(&self) -> u32 {
        if self.label.is_some() { GROUP_HEADER } else { 0 }
    }

    fn size(&self, detail: Detail) -> Size {
        let (width, height) = match &self.body {
            Body::Cores(cores) => {
                let columns = Self::columns(cores.len());
                let rows = units(cores.len().div_ceil(columns));
                (
                    units(columns) * (detail.core.width + CORE_GAP) - CORE_GAP,
                    rows * (detail.core.height + CORE_GAP) - CORE_GAP,
                )
            }
            Body::List(lines) => {
                let longest = lines.iter().map(|line| text_width(line, SMALL_FONT)).max();
                (longest.unwrap_or_default(), units(lines.len()) * (LINE_HEIGHT + 2))
            }
        };
        let label = self.label.as_deref().map_or(0, |label| text_width(label, SMALL_FONT));
        Size {
            width: width.max(label) + 2 * GROUP_PADDING,
            height: height + self.header() + 2 * GROUP_PADDING,
        }
    }

    fn draw(&self, canvas: &mut Canvas, x: u32, y: u32, size: Size, detail: Detail) {
        if let Some(label) = &self.label {
            canvas.rectangle("l3", x, y, size);
            canvas.text("small", x + GROUP_PADDING, y + GROUP_HEADER - 3, label);
        }
        let top = y + self.header() + GROUP_PADDING;
        match &self.body {
            Body::List(lines) => {
                for (line, row) in lines.iter().zip(1..) {
                    canvas.text(
                        "small",
                        x + GROUP_PADDING,
                        top + row * (LINE_HEIGHT + 2) - 3,
                        line,
                    );
                }
            }
            Body::Cores(cores) => {
                let columns = Self::columns(cores.len());
                let inside = size.width - 2 * GROUP_PADDING + CORE_GAP;
                let width = inside / units(columns) - CORE_GAP;
                for (index, lines) in cores.iter().enumerate() {
                    let column = units(index % columns);
                    let row = units(index / columns);
                    let core_x = x + GROUP_PADDING + column * (width + CORE_GAP);
                    let core_y = top + row * (detail.core.height + CORE_GAP);
                    let core = Size { width, ..detail.core };
                    canvas.rectangle("core", core_x, core_y, core);
                    for (line, place) in lines.iter().zip(1..) {
                        canvas.text("cpu", core_x + width / 2, core_y + place * LINE_HEIGHT, line);
                    }
                }
            }
        }
    }
}

/// Returns the cpus of each core, in order of the first; a cpu without a known core counts as a
/// core.
fn cores<'c>(cpus: impl Iterator<Item = &'c Cpu>) -> Vec<Vec<&'c Cpu>> {
    let mut known: BTreeMap<u32, Vec<&Cpu>> = BTreeMap::new();
    let mut cores: Vec<Vec<&Cpu>> = Vec::new();
    for cpu in cpus {
        match cpu.core {
            Some(core) => known.entry(core).or_default().push(cpu),
            None => cores.push(vec![cpu]),
        }
    }
    cores.extend(known.into_values());
    cores.sort_by_key(|core| core.first().map(|cpu| cpu.id));
    cores
}

/// Returns the numbers of a core's cpus, one per line, or as a list if there are many.
fn core_lines(core: &[&Cpu]) -> Vec<String> {
    if core.len() <= MOST_THREADS {
        return core.iter().map(|cpu| cpu.id.to_string()).collect();
    }
    let set: CpuSet = core.iter().map(|cpu| cpu.id).collect();
    vec![set.to_string()]
}

/// Returns `L3 5 · 32 MiB`, with a mark if the group extends to other nodes.
fn group_label(machine: &Machine, number: u32, cpus: &[&Cpu]) -> String {
    let first = cpus.first().map(|cpu| cpu.id);
    let l3 = machine.caches.iter().find(|cache| {
        let unified = cache.level == 3 && cache.kind == CacheKind::Unified;
        unified && first.is_some_and(|first| cache.cpus.contains(first))
    });
    let mut label = format!("L3 {number}");
    if let Some(bytes) = l3.and_then(|cache| cache.size_bytes) {
        label += &format!(" · {}", format_rounded(bytes));
    }
    let own = cpus.len();
    if machine.cpus.iter().filter(|cpu| cpu.l3_group == Some(number)).count() > own {
        label += " · shared";
    }
    label
}

/// Breaks a list at its commas.
fn wrap(list: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for item in list.split_inclusive(',') {
        match lines.last_mut() {
            Some(line) if line.is_empty() || line.len() + item.len() <= LIST_LETTERS => {
                line.push_str(item);
            }
            _ => lines.push(item.to_owned()),
        }
    }
    lines
}
