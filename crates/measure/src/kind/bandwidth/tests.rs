use numalab_host::base_pages;
use numalab_membench::{Isa, Line};
use numalab_topology::{CpuId, NodeId};

use super::*;
use crate::kind::c2c::{c2c_cells, c2c_pairs};
use crate::kind::loaded::{load_workers, loaded_cells, loaded_surface};
use crate::stream::isa_name;
use crate::test_machines::{ids, machine, whole, with_memory_alone};
use numalab_record::LoadedCell;

fn spec() -> BandwidthSpec {
    BandwidthSpec {
        pattern: AccessPattern::Sequential,
        pages: base_pages(),
        isa: IsaName("portable".to_owned()),
        size_bytes: 1 << 20,
    }
}

fn workers(cell: &Cell) -> Vec<(u32, u32)> {
    cell.experiment.workers().iter().map(|of| (of.cpu.0, of.node.0)).collect()
}

#[test]
fn a_matrix_has_the_cores_of_each_node_on_the_memory_of_each() {
    let machine = machine(2, 2);
    let cells = bandwidth_matrix(&machine, &whole(&machine), StreamKernel::Read, &spec());
    let teams: Vec<_> = cells.iter().map(workers).collect();
    let expected =
        [vec![(0, 0), (1, 0)], vec![(2, 0), (3, 0)], vec![(0, 1), (1, 1)], vec![(2, 1), (3, 1)]];
    assert_eq!(teams, expected);
}

#[test]
fn memory_without_cpus_is_streamed_by_all_nodes_and_streams_none() {
    let machine = with_memory_alone(machine(2, 1));
    let cells = bandwidth_matrix(&machine, &whole(&machine), StreamKernel::Triad, &spec());
    let teams: Vec<_> = cells.iter().map(workers).collect();
    assert_eq!(teams[4..], [vec![(0, 2)], vec![(1, 2)]]);
    assert_eq!(teams.len(), 6);
}

#[test]
fn a_cell_for_each_kernel_keeps_team_and_rules() {
    let team = [WorkerPlan { cpu: CpuId(3), node: NodeId(1) }];
    let cells = bandwidth_cells(&team, &[StreamKernel::Read, StreamKernel::Triad], &spec());
    let of = |cell: &Cell| cell.experiment.cell::<BandwidthCell>().cloned().unwrap();
    assert_eq!(of(&cells[0]).kernel, StreamKernel::Read);
    assert_eq!(of(&cells[1]).kernel, StreamKernel::Triad);
    for cell in &cells {
        let BandwidthSpec { pattern, pages, isa, size_bytes } = spec();
        let found = of(cell);
        assert_eq!((found.pattern, found.pages, found.isa), (pattern, pages, isa));
        assert_eq!((found.size_bytes, found.workers), (size_bytes, team.to_vec()));
    }
}

#[test]
fn streams_share_buffers_of_one_team_size_and_pages() {
    let machine = machine(2, 1);
    let read = bandwidth_matrix(&machine, &whole(&machine), StreamKernel::Read, &spec());
    let triad = bandwidth_matrix(&machine, &whole(&machine), StreamKernel::Triad, &spec());
    let of = |cell: &Cell| cell.experiment.cell::<BandwidthCell>().cloned().unwrap();
    let first = of(&read[0]);
    assert!(first.shares_buffers(&triad[0].experiment));
    assert!(!first.shares_buffers(&triad[1].experiment), "another team");
    let larger = BandwidthCell { size_bytes: 2 << 20, ..of(&triad[0]) };
    assert!(!first.shares_buffers(&Experiment::Bandwidth(larger)));
    let huge = BandwidthCell { pages: Pages::HUGE_2M, ..of(&triad[0]) };
    assert!(!first.shares_buffers(&Experiment::Bandwidth(huge)));
}

#[test]
fn a_stream_in_the_order_of_a_chase_and_an_unknown_isa_are_refused_by_name() {
    let refused = |pattern, isa: &str| {
        let rules =
            StreamRules { kernel: StreamKernel::Read, pattern, isa: IsaName(isa.to_owned()) };
        rules.checked(0).unwrap_err()
    };
    let error = refused(AccessPattern::PageLocal, "portable");
    let expected = "a stream cannot be page-local: expected sequential, random or stride:N";
    assert_eq!(error.to_string(), expected);
    let error = refused(AccessPattern::OneLinePer(64), "portable");
    assert!(error.to_string().starts_with("a stream cannot be one-line-per:64: "), "{error}");
    let error = refused(AccessPattern::Sequential, "abacus");
    assert!(matches!(&error, MeasureError::UnknownIsa { name, .. } if name == "abacus"));
    let message = error.to_string();
    let expected = "instruction set `abacus` is not available here: expected fastest, ";
    assert!(message.starts_with(expected), "{message}");
}

#[test]
fn a_stream_in_the_fastest_set_says_which_one_that_is() {
    let context = MeasureContext::for_tests();
    let mut lines = vec![Line::ZERO; 4096];
    let mut chosen = |isa| {
        let rules =
            StreamRules { kernel: StreamKernel::Read, pattern: AccessPattern::Sequential, isa };
        let stream = stream_over(&context, &rules, &mut lines).unwrap();
        rules.chosen(&stream)
    };
    let found = chosen(IsaName::fastest()).unwrap();
    assert!(Isa::ALL.iter().any(|&isa| isa.is_available() && isa_name(isa) == found), "{found:?}");
    assert_eq!(chosen(isa_name(Isa::detect())), None);
}

#[test]
fn a_loaded_curve_begins_idle_and_at_full_speed_and_loads_less_and_less() {
    let chaser = WorkerPlan { cpu: CpuId(0), node: NodeId(0) };
    let load = vec![WorkerPlan { cpu: CpuId(1), node: NodeId(0) }];
    let (kernel, size_bytes, pages) = (StreamKernel::Read, 1 << 20, base_pages());
    let idle = LoadedCell { chaser, load, kernel, delay: None, size_bytes, pages };
    let cells = loaded_cells(&idle);
    let delays: Vec<Option<u32>> =
        cells.iter().map(|cell| cell.experiment.cell::<LoadedCell>().unwrap().delay).collect();
    let expected = [0, 32, 64, 128, 256, 512, 1024, 2048, 4096].map(Some);
    assert_eq!((delays[0], &delays[1..]), (None, &expected[..]));
    assert!(ids(&cells)[0].ends_with("/idle"));
    assert!(ids(&cells)[1].ends_with("/delay0"));
}

#[test]
fn load_comes_from_every_other_core_on_the_chasers_memory() {
    let machine = machine(2, 2);
    let load = load_workers(&machine, &whole(&machine), CpuId(1), NodeId(1));
    let found: Vec<_> = load.iter().map(|of| (of.cpu.0, of.node.0)).collect();
    assert_eq!(found, [(0, 1), (2, 1), (3, 1)]);
}

#[test]
fn a_surface_has_local_and_remote_load_on_each_node_for_each_kernel() {
    let machine = machine(2, 2);
    let kernels = [StreamKernel::Read, StreamKernel::Triad];
    let size = (1 << 20, base_pages());
    let surface = loaded_surface(&machine, &whole(&machine), CpuId(0), &kernels, size);
    assert_eq!(surface.len(), 2 * 2 * 2 * 10);
    let load = |at: usize| -> Vec<u32> {
        let cell: &LoadedCell = surface[at].experiment.cell().unwrap();
        cell.load.iter().map(|of| of.cpu.0).collect()
    };
    assert_eq!((load(0), load(20)), (vec![1], vec![2, 3]), "near first, then far");
    let nodes: Vec<u32> = surface
        .iter()
        .map(|cell| cell.experiment.cell::<LoadedCell>().unwrap().chaser.node.0)
        .collect();
    assert!(nodes[..40].iter().all(|node| *node == 0) && nodes[40..].iter().all(|node| *node == 1));
    let alone = crate::test_machines::machine(1, 1);
    let none = loaded_surface(&alone, &whole(&alone), CpuId(0), &kernels, size);
    assert!(none.is_empty(), "no other core");
}

#[test]
fn less_time_gives_fewer_pairs_of_cpus() {
    let machine = machine(2, 3);
    let scope = whole(&machine);
    let pairs = |at_most| -> Vec<(u32, u32)> {
        c2c_pairs(&machine, &scope, at_most).iter().map(|(a, b)| (a.0, b.0)).collect()
    };
    assert_eq!(pairs(66).len(), 66, "all pairs of 12 cpus");
    assert_eq!(pairs(65).len(), 15, "all pairs of 6 cores");
    let groups = [(0, 1), (0, 3), (0, 4), (1, 3), (1, 4), (3, 4)];
    assert_eq!(pairs(6), groups, "two of each L3 group");
    assert_eq!(pairs(5), [(0, 3)], "one of each node");
    assert_eq!(pairs(0), [(0, 3)], "one at least");
}

#[test]
fn a_pair_has_the_line_on_either_sides_node() {
    let machine = machine(2, 1);
    let pairs = [(CpuId(0), CpuId(1)), (CpuId(0), CpuId(2))];
    let cells = c2c_cells(&machine, &whole(&machine), &pairs);
    let expected = ["c2c/cpu0/cpu1/home0", "c2c/cpu0/cpu1/home1", "c2c/cpu0/cpu2/home0"];
    assert_eq!(ids(&cells), expected);
}
