//! Real cells on the machine that runs the tests: placement is proven, samples are kept, an
//! interruption loses nothing.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use numalab_host::{
    Interrupt, Root, base_pages, process_cpu_ns, read_machine, set_thread_affinity, thread_affinity,
};
use numalab_measure::kind::bandwidth::{BandwidthSpec, bandwidth_cells};
use numalab_measure::kind::c2c::{c2c_cells, c2c_pairs};
use numalab_measure::kind::latency::{LatencySpec, latency_cells};
use numalab_measure::kind::loaded::loaded_cells;
use numalab_measure::{MeasureContext, MeasureError, RunRecorder, Session, Settings, Tally, read};
use numalab_measure::{Scope, all_workers, isa_name};
use numalab_record::{
    AccessPattern, Cell, CoreCell, Document, Environment, Experiment, Kind, LoadedCell, Metric,
    Outcome, Pages, Run, StreamKernel, Team, WorkerPlan,
};
use numalab_topology::{CpuId, CpuSet, Machine};

const SIZE: u64 = 4 << 20;

fn machine() -> Machine {
    read_machine(&Root::live()).expect("this machine is readable").machine
}

fn context(budget: Duration) -> MeasureContext {
    let settings = Settings { seed: 1, precision: 0.2, budget };
    MeasureContext::new(machine(), settings, Interrupt::never()).expect("the clock is usable")
}

fn run_of(machine: &Machine) -> Run {
    Run {
        schema: Kind::Run.into(),
        name: "measure".into(),
        label: Some("live".into()),
        version: "0".into(),
        command: vec!["test".into()],
        started_unix_ms: 1_795_228_800_000,
        seed: 1,
        precision: 0.2,
        budget_ns: 1,
        environment: Environment::default(),
        machine: machine.clone(),
        survey: None,
        launch: None,
        plan: Vec::new(),
    }
}

fn measure(
    context: &MeasureContext,
    recorder: &mut RunRecorder,
    cells: &[Cell],
) -> Result<Tally, MeasureError> {
    let mut nobody = ();
    let mut session = Session::new(context, recorder, &mut nobody);
    session.run(cells)?;
    Ok(session.into_tally())
}

/// One cell at a time: tests in parallel would disturb each other.
static MACHINE: Mutex<()> = Mutex::new(());

fn measured(cells: &[Cell]) -> Document {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let context = context(Duration::from_secs(20));
    let mut recorder = RunRecorder::in_memory(run_of(&context.machine));
    let tally = measure(&context, &mut recorder, cells).expect("nothing interrupts");
    assert_eq!(tally.failed, 0, "{:?}", tally.first_failure);
    recorder.document()
}

fn first_worker(scope: &Scope, machine: &Machine) -> WorkerPlan {
    WorkerPlan { cpu: scope.cpus[0], node: scope.nearest_node(machine, scope.cpus[0]) }
}

fn latency_plan(sizes: &[u64], team: Team) -> Vec<Cell> {
    let machine = machine();
    let scope = Scope::new(&machine, None, None).expect("something is usable");
    let workers = match team {
        Team::Serial => vec![first_worker(&scope, &machine)],
        Team::Concurrent => all_workers(&machine, &scope),
    };
    let spec = LatencySpec { pattern: AccessPattern::Random, pages: base_pages(), team };
    latency_cells(&workers, sizes, spec)
}

/// Asserts that every cell has samples, and that each worker and its memory were placed as planned.
fn assert_proven(document: &Document, workers: usize) {
    for result in &document.cells {
        assert!(matches!(result.ended, Some(Outcome::Precise | Outcome::BudgetSpent)));
        assert_eq!(result.placements.len(), workers, "{}", result.cell.id);
        for placement in &result.placements {
            assert_eq!(placement.affinity.len(), 1);
            assert!(placement.affinity.contains(placement.cpu));
            let nodes: Vec<_> = placement.pages_per_node.keys().copied().collect();
            assert_eq!(nodes, [placement.memory_node]);
            assert!(placement.pages_checked > 0);
        }
        let first = result.samples.first().expect("a measured cell has samples").metric;
        let mut decisive = result.samples.iter().filter(|sample| sample.metric == first);
        assert!(decisive.all(|sample| sample.value > 0.0 && sample.work > 0));
    }
}

#[test]
fn a_latency_curve_is_measured_with_proof_and_does_not_fall_with_size() {
    let document = measured(&latency_plan(&[16 << 10, 64 << 20], Team::Serial));
    assert_proven(&document, 1);
    let median = |index: usize| {
        let mut values: Vec<f64> =
            document.cells[index].samples.iter().map(|sample| sample.value).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    assert!(median(1) > median(0), "64 MiB cannot be faster than 16 KiB");
}

/// Regression: within one page of 4 KiB prefetching reduces a load to some 0.7 of memory's latency.
#[test]
fn page_local_order_on_small_pages_has_the_latency_of_memory() {
    let machine = machine();
    let scope = Scope::new(&machine, None, None).expect("something is usable");
    let pattern = AccessPattern::PageLocal;
    let cells = [base_pages(), Pages::Transparent].map(|pages| {
        let spec = LatencySpec { pattern, pages, team: Team::Serial };
        latency_cells(&[first_worker(&scope, &machine)], &[256 << 20], spec)
    });
    let median = |cells: &[Cell]| {
        let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        let context = context(Duration::from_secs(3));
        let mut recorder = RunRecorder::in_memory(run_of(&context.machine));
        measure(&context, &mut recorder, cells).expect("nothing interrupts");
        let mut values = recorder.document().cells[0].values(Metric::Latency);
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    // Other load changes single figures; an order that is prefetched is faster every time.
    let ratio = || Some(median(&cells[0])? / median(&cells[1])?);
    match ratio() {
        None => eprintln!("NOT RUN: there are no huge pages to compare with"),
        Some(first) => {
            let agrees = |ratio: f64| ratio > 0.85;
            assert!(agrees(first) || (0..4).filter_map(|_| ratio()).any(agrees), "{first}");
        }
    }
}

/// Regression: cells that share a buffer were lost together if the largest was too large.
#[test]
fn a_cell_without_memory_is_left_out_and_named_and_smaller_ones_are_measured() {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let context = context(Duration::from_secs(20));
    // No address space has as much as the largest.
    let cells = latency_plan(&[64 << 10, 128 << 10, 1 << 47], Team::Serial);
    let mut recorder = RunRecorder::in_memory(run_of(&context.machine));
    let tally = measure(&context, &mut recorder, &cells).expect("nothing interrupts");
    assert_eq!((tally.failed, tally.precise + tally.budget_spent), (1, 2), "{tally:?}");
    let (_, first) = tally.first_failure.expect("one failed");
    assert!(first.starts_with(&format!("{}: ", cells[2].id)), "{first}");
    let document = recorder.document();
    let is_measured = |id: &str| {
        let mut cells = document.cells.iter().filter(|of| of.cell.id.0.contains(id));
        cells.any(|of| !of.samples.is_empty())
    };
    assert!(is_measured("64K") && is_measured("128K"));
}

#[test]
fn concurrent_chasers_have_separate_memory() {
    let document = measured(&latency_plan(&[SIZE], Team::Concurrent));
    assert_proven(&document, 1);
    let addresses: BTreeSet<u64> =
        document.cells.iter().map(|result| result.placements[0].address).collect();
    assert_eq!(addresses.len(), document.cells.len());
}

#[test]
fn every_kernel_streams_on_one_cpu_and_on_all() {
    let machine = machine();
    let scope = Scope::new(&machine, None, None).expect("something is usable");
    let all = all_workers(&machine, &scope);
    let spec = BandwidthSpec {
        pattern: AccessPattern::Sequential,
        pages: base_pages(),
        isa: isa_name(numalab_membench::Isa::detect()),
        size_bytes: 3 * SIZE,
    };
    assert_proven(&measured(&bandwidth_cells(&all[..1], &StreamKernel::ALL, &spec)), 1);
    assert_proven(&measured(&bandwidth_cells(&all, &[StreamKernel::Copy], &spec)), all.len());
}

#[test]
fn a_loaded_curve_counts_the_bytes_of_its_load_workers() {
    let machine = machine();
    let scope = Scope::new(&machine, None, None).expect("something is usable");
    let workers = all_workers(&machine, &scope);
    let [chaser, load @ ..] = &workers[..] else { panic!("a machine without cpus") };
    if load.is_empty() {
        eprintln!("NOT RUN: loaded latency needs two cores, this machine has one");
        return;
    }
    let (load, kernel) = (load.to_vec(), StreamKernel::Read);
    let (chaser, size_bytes, pages) = (*chaser, SIZE, base_pages());
    let idle = LoadedCell { chaser, load, kernel, delay: None, size_bytes, pages };
    // On a busy machine the workers may never run at the same moment, or the time be over before the
    // last cell, so this is tried again.
    let moved = (0..5).any(|_| {
        let document = measured(&loaded_cells(&idle));
        if document.cells.iter().any(|cell| cell.ended.is_none()) {
            return false;
        }
        assert_proven(&document, 1);
        // Disturbed windows count their bytes too.
        let bandwidth = |index: usize| {
            let samples = document.cells[index].samples.iter();
            samples.filter(|sample| sample.metric == Metric::Bandwidth).map(|sample| sample.value)
        };
        assert!(bandwidth(0).all(|value| value == 0.0), "no load is no bandwidth");
        bandwidth(1).any(|value| value > 0.1)
    });
    assert!(moved, "full load moves bytes");
}

#[test]
fn a_cache_line_goes_between_every_two_cpus() {
    let machine = machine();
    let scope = Scope::new(&machine, None, None).expect("something is usable");
    let pairs = c2c_pairs(&machine, &scope, 3);
    if pairs.is_empty() {
        eprintln!("NOT RUN: core to core needs two cpus, this machine has one");
        return;
    }
    assert_proven(&measured(&c2c_cells(&machine, &scope, &pairs)), 2);
}

/// Moves the thread that is pinned to `from` to `to`, once it has been there for some windows.
fn move_thread(from: CpuId, to: CpuId, over: &AtomicBool) {
    let [from, to] = [from, to].map(|cpu| CpuSet::from_iter([cpu]));
    while !over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
        let threads = std::fs::read_dir("/proc/self/task").expect("Linux").flatten();
        let ids = threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
        for thread in ids.filter(|id| thread_affinity(*id).is_ok_and(|cpus| cpus == from)) {
            std::thread::sleep(Duration::from_millis(50));
            let _ = set_thread_affinity(thread, &to);
        }
    }
}

/// Regression: with both sides on one cpu each hand-over takes a time slice, so a pair took 39 s of
/// a budget of 8.
#[test]
fn a_side_that_is_moved_to_the_cpu_of_the_other_ends_its_pair() {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let machine = machine();
    let scope = Scope::new(&machine, None, None).expect("something is usable");
    let pairs = c2c_pairs(&machine, &scope, 1);
    let Some(&(from, to)) = pairs.first() else {
        eprintln!("NOT RUN: core to core needs two cpus, this machine has one");
        return;
    };
    let settings = Settings { seed: 1, precision: 1e-9, budget: Duration::from_secs(36_000) };
    let context = MeasureContext::new(machine, settings, Interrupt::never()).expect("a clock");
    let cells = c2c_cells(&context.machine, &scope, &pairs);
    let mut recorder = RunRecorder::in_memory(run_of(&context.machine));
    let over = AtomicBool::new(false);
    let tally = std::thread::scope(|threads| {
        threads.spawn(|| move_thread(to, from, &over));
        let tally = measure(&context, &mut recorder, &cells[..1]);
        over.store(true, Ordering::Relaxed);
        tally.expect("nothing interrupts")
    });
    assert_eq!(tally.failed, 1, "{tally:?}");
}

#[test]
fn load_to_use_is_a_few_adds_and_atomic_additions_take_time() {
    let machine = machine();
    let scope = Scope::new(&machine, None, None).expect("something is usable");
    let document = measured(&[Cell::of(Experiment::Core(CoreCell { cpu: scope.cpus[0] }))]);
    assert_proven(&document, 1);
    let values = document.cells[0].values(Metric::LoadToUse);
    assert!(values.iter().any(|value| (2.0..12.0).contains(value)), "{values:?}");
    let atomic = document.cells[0].values(Metric::AtomicAdd);
    assert!(!atomic.is_empty() && atomic.iter().all(|ns| *ns > 0.0), "{atomic:?}");
}

/// Regression: a sample's faults and processes evicted the buffer, so that an L1 of 4 cycles had 4.03 in
/// the next ones, 4.7 where neighbours leave no L3, and a page told of 5.
#[test]
fn loads_hit_the_l1_in_every_sample_of_a_core() {
    let machine = machine();
    let scope = Scope::new(&machine, None, None).expect("something is usable");
    let document = measured(&[Cell::of(Experiment::Core(CoreCell { cpu: scope.cpus[0] }))]);
    let ratios = document.cells[0].values(Metric::LoadToUse);
    // The ratio is a whole number of cycles; many samples may be of a loaded machine.
    let whole = |ratio: &&f64| (*ratio / ratio.round() - 1.0).abs() < 0.005;
    assert!(3 * ratios.iter().filter(whole).count() >= ratios.len(), "{ratios:?}");
}

#[test]
fn cells_measured_before_an_interruption_are_not_measured_again() {
    let directory = tempfile::tempdir().expect("a directory for results");
    let plan = latency_plan(&[64 << 10, 128 << 10, 256 << 10], Team::Serial);
    let context = context(Duration::from_secs(20));
    let mut recorder = RunRecorder::in_directory(run_of(&context.machine), directory.path())
        .expect("a new directory");
    recorder.extend_plan(&plan).expect("the plan is kept");
    measure(&context, &mut recorder, &plan[..1]).expect("the first cell");
    let kept = recorder.directory().expect("on disk").to_owned();
    drop(recorder);
    // The trace of a crash in the middle of an append.
    let samples = std::fs::read_to_string(kept.join("samples.csv")).expect("samples");
    std::fs::write(kept.join("samples.csv"), format!("{samples}latency/ran")).expect("cut line");

    let mut recorder = RunRecorder::resumed(&kept).expect("resumable");
    assert_eq!(recorder.done().len(), 1);
    let before = read(&kept).expect("readable").cells[0].samples.clone();
    let tally = measure(&context, &mut recorder, &plan).expect("the rest");
    assert_eq!(tally.precise + tally.budget_spent, 2);
    let document = read(&kept).expect("readable");
    assert_eq!(document.cells[0].samples, before);
    assert_proven(&document, 1);
}

#[test]
fn a_run_is_resumed_only_on_an_unchanged_system() {
    let facts = |governor: &str, load: &str| Environment {
        facts: [("governor", governor), ("load_average", load)]
            .map(|(name, value)| (name.to_owned(), value.into()))
            .into(),
    };
    let mut run = run_of(&machine());
    run.environment = facts("performance", "1");
    // A fact found by measuring is not known before.
    run.environment.facts.insert("clock_invariant".to_owned(), true.into());
    let recorder = RunRecorder::in_memory(run);
    recorder.check_same_system(&facts("performance", "2")).expect("only the load differs");
    let refused = recorder.check_same_system(&facts("powersave", "1")).expect_err("another rate");
    let expected =
        "started with governor `performance`, but now it is `powersave`: start a new run";
    assert!(refused.to_string().contains(expected), "{refused}");
}

#[test]
fn a_second_run_in_the_same_second_gets_its_own_directory() {
    let directory = tempfile::tempdir().expect("a directory for results");
    let name = |recorder: RunRecorder| {
        let path = recorder.directory().expect("on disk").to_owned();
        path.file_name().expect("a name").to_string_lossy().into_owned()
    };
    let create = || RunRecorder::in_directory(run_of(&machine()), directory.path()).expect("new");
    assert_eq!(name(create()), "measure-20261121-024000-live");
    assert_eq!(name(create()), "measure-20261121-024000-live-2");
}

#[test]
fn a_spent_budget_leaves_cells_unmeasured_and_says_how_many() {
    let context = context(Duration::from_nanos(1));
    let plan = latency_plan(&[64 << 10, 128 << 10], Team::Serial);
    let mut recorder = RunRecorder::in_memory(run_of(&context.machine));
    let tally = measure(&context, &mut recorder, &plan).expect("no failure");
    assert_eq!(tally.unmeasured, 2);
}

/// Returns the cells of a plan by subject; the first subject takes far longer than the budget.
fn plan_of_every_subject(machine: &Machine) -> Vec<Vec<Cell>> {
    let scope = Scope::new(machine, None, None).expect("something is usable");
    let workers = all_workers(machine, &scope);
    let latency = |pattern, pages, sizes: &[u64]| {
        latency_cells(&workers[..1], sizes, LatencySpec { pattern, pages, team: Team::Serial })
    };
    let sizes: Vec<u64> = (32..=112).map(|size| size << 20).collect();
    let spec = BandwidthSpec {
        pattern: AccessPattern::Sequential,
        pages: base_pages(),
        isa: isa_name(numalab_membench::Isa::detect()),
        size_bytes: SIZE,
    };
    let mut plan = vec![
        latency(AccessPattern::Random, Pages::Transparent, &sizes),
        latency(AccessPattern::PageLocal, base_pages(), &[SIZE]),
        bandwidth_cells(&workers, &[StreamKernel::Read, StreamKernel::Triad], &spec),
    ];
    if let [chaser, load @ ..] = &workers[..]
        && !load.is_empty()
    {
        let (load, kernel, pages) = (load.to_vec(), StreamKernel::Read, base_pages());
        let (chaser, size_bytes) = (*chaser, SIZE);
        let idle = LoadedCell { chaser, load, kernel, delay: None, size_bytes, pages };
        plan.push(loaded_cells(&idle));
    }
    plan.push(c2c_cells(machine, &scope, &c2c_pairs(machine, &scope, 2)));
    plan.retain(|cells| !cells.is_empty());
    plan
}

#[test]
fn every_subject_of_a_plan_has_cells_although_the_first_exceeds_the_budget() {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let subjects = plan_of_every_subject(&machine());
    // The sizes of the first subject alone would take longer: up to 3 s each. Cpu time, since a
    // busy machine may build the first cells so slowly that nothing is left for others.
    let settings = Settings { seed: 1, precision: 1e-6, budget: Duration::from_secs(6) };
    let context = MeasureContext::new(machine(), settings, Interrupt::never()).expect("a clock");
    let context = context.counted_by(process_cpu_ns);
    let mut recorder = RunRecorder::in_memory(run_of(&context.machine));
    let mut nobody = ();
    // Like a measuring run: the curve first, with time reserved for later cells.
    let later = subjects[1..].concat();
    let mut session = Session::new(&context, &mut recorder, &mut nobody).before(&later);
    session.run(&subjects[0]).expect("nothing interrupts");
    measure(&context, &mut recorder, &later).expect("nothing interrupts");
    let done = recorder.done();
    assert!(done.len() < subjects.concat().len(), "the budget is too little for all");
    let measured = |cells: &[Cell]| cells.iter().filter(|cell| done.contains(&cell.id)).count();
    let measured: Vec<usize> = subjects.iter().map(|cells| measured(cells)).collect();
    assert!(measured.iter().all(|measured| *measured > 0), "{measured:?}");
}
