//! `numalab machine capture`.

use std::path::Path;

use numalab_formats::machine_toml::{self, LoadFigures};
use numalab_formats::mess;
use numalab_host::files::write_atomically;
use numalab_host::{UtcTime, note};
use numalab_measure::MeasurePlan;
use numalab_measure::kind::loaded::loaded_surface;
use numalab_record::{Cell, Document, Effort, Experiment, StreamKernel};
use numalab_results::capture::page::sentences;
use numalab_results::capture::{Captured, Remark, capture};
use numalab_topology::NodeSet;

use crate::args::{CaptureArgs, Format, Measuring, Output, Rules, VERSION};
use crate::command::measuring::{Target, print_plan, run_plan, usual_budget, write_reports};
use crate::failure::{Code, Failure};
use crate::{input, output, source};

/// Kernels that load memory in a quick capture: loads alone, and stores alone.
const QUICK: [StreamKernel; 2] = [StreamKernel::Read, StreamKernel::WriteNt];

/// Prints the machine file of a run, measured now unless `--from` names one.
pub(super) fn run(args: &CaptureArgs) -> Result<(), Failure> {
    if let Some(directory) = args.output.as_deref().filter(|path| path.is_dir()) {
        return Err(Failure::bad_input(format!(
            "--output {}: it is a directory: expected the file to write, such as here.toml; \
             --results DIR keeps the measured results",
            directory.display()
        )));
    }
    let document = match &args.from {
        Some(place) => source::run_document(place)?,
        None => match measure(args)? {
            Some(document) => document,
            None => return Ok(()),
        },
    };
    let mut captured = capture(&document);
    if let Some(curves) = &args.mess {
        take_curves(&mut captured, curves)?;
    }
    let remarks = sentences(&captured);
    if !output::quiet() {
        remarks.iter().for_each(note);
    }
    let head = head(&document, &remarks);
    let file = machine_toml::write_file(&captured.figures);
    let file = file.map_err(|error| Failure::bad_input(error.to_string()))?;
    let text = format!("{head}\n{file}");
    let Some(path) = &args.output else { return output::print(&text) };
    write_atomically(path, &text).map_err(|error| {
        Failure::new(Code::Failed, format!("{}: could not write it: {error}", path.display()))
    })
}

/// Measures everything that a machine file has; with `--dry-run`, only shows the plan.
fn measure(args: &CaptureArgs) -> Result<Option<Document>, Failure> {
    let target = Target::survey(&args.selection)?;
    let Target { machine, scope, pages } = &target;
    let (effort, kernels) = match args.quick {
        true => (Effort::Quick, &QUICK[..]),
        false => (Effort::Normal, &StreamKernel::ALL[..]),
    };
    let plan = MeasurePlan::new(machine, scope.clone(), effort, *pages);
    let cpu = scope.cpus.first().copied().unwrap_or_default();
    let with_surface = |cells: Vec<Cell>, first: Option<&Document>| -> Vec<Cell> {
        let buffers = (plan.beyond_bytes(first), *pages);
        let surface = loaded_surface(machine, scope, cpu, kernels, buffers);
        let is_load = |cell: &Cell| matches!(cell.experiment, Experiment::Loaded(_));
        cells.into_iter().filter(|cell| !is_load(cell)).chain(surface).collect()
    };
    let foreseen = with_surface(plan.foreseen(), None);
    let budget = usual_budget(&foreseen);
    if args.dry_run {
        return print_plan(&foreseen, &args.rules, budget).map(|()| None);
    }
    let given = Measuring {
        selection: args.selection.clone(),
        rules: Rules { budget: args.rules.budget.or(Some(budget)), ..args.rules.clone() },
        output: Output {
            output: args.results.clone(),
            label: None,
            format: Format::Text,
            dry_run: false,
        },
    };
    let second = |document: &Document| with_surface(plan.second_phase(document), Some(document));
    let (document, directory) = run_plan("capture", &target, &given, &plan.first_phase(), second)?;
    if let Some(directory) = directory {
        write_reports(&document, &directory)?;
    }
    Ok(Some(document))
}

/// Takes the load curves of every node's memory from Mess.
fn take_curves(captured: &mut Captured, place: &Path) -> Result<(), Failure> {
    let failed = |file: &Path, error: &dyn std::fmt::Display| {
        Failure::bad_input(format!("{}: {error}", file.display()))
    };
    let mut curves = Vec::new();
    if place.is_dir() {
        let entries = std::fs::read_dir(place).map_err(|error| failed(place, &error))?;
        for file in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let percent = name.strip_prefix("bwlat_").and_then(|name| name.strip_suffix(".txt"));
            let Some(percent) = percent.and_then(|percent| percent.parse::<u8>().ok()) else {
                continue;
            };
            let read = mess::read_simulator(f64::from(percent), &input::text(&file)?);
            curves.push(read.map_err(|error| failed(&file, &error))?);
        }
        curves.sort_by(|a, b| a.writes_percent.total_cmp(&b.writes_percent));
    } else {
        let read = mess::read(&input::text(place)?);
        curves = read.map_err(|error| failed(place, &error))?;
    }
    if curves.is_empty() {
        return Err(failed(place, &"expected memory_curves.csv or files bwlat_PERCENT.txt"));
    }
    let nodes = captured.figures.machine.memory_nodes();
    let load = |node| {
        let nodes = NodeSet::from_iter([node]);
        LoadFigures { nodes, from: None, peak_mb_s: None, curves: curves.clone() }
    };
    captured.figures.memory.load = nodes.iter().map(load).collect();
    captured.remarks.retain(|remark| !matches!(remark, Remark::NoLoad { .. }));
    Ok(())
}

/// Returns the comments at the start of the file: its origin and remarks.
fn head(document: &Document, remarks: &[String]) -> String {
    let run = &document.run;
    let fact = |name| run.environment.facts.get(name).map(String::as_str);
    let day = UtcTime { unix_ms: run.started_unix_ms }.to_string();
    let title = fact("cpu_model").unwrap_or("A machine");
    let nodes = run.machine.nodes.len();
    let mut text = format!(
        "# {title}, {nodes} {}, as measured\n#\n# Measured by numalab {} on {day}, written by \
         numalab {VERSION}.\n",
        if nodes == 1 { "node" } else { "nodes" },
        run.version
    );
    for remark in remarks {
        text.push_str(&format!("# {remark}\n"));
    }
    text
}
