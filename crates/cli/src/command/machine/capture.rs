//! `numalab machine capture`.

use numalab_formats::machine_toml;
use numalab_host::note;
use numalab_measure::{MeasurePlan, Target, usual_budget};
use numalab_places::machine::{mess_curves, run_document};
use numalab_record::{Document, Effort, StreamKernel};
use numalab_results::capture::capture;
use numalab_results::capture::page::{head, sentences};

use super::CaptureArgs;
use crate::args::{Format, Measuring, Output, Rules, VERSION};
use crate::command::measuring::{print_plan, run_plan, survey, write_reports};
use crate::failure::Failure;
use crate::output;

/// Kernels that load memory in a quick capture: only loads, and only stores.
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
        Some(place) => run_document(place)?,
        None => match measure(args)? {
            Some(document) => document,
            None => return Ok(()),
        },
    };
    let mut captured = capture(&document);
    if let Some(place) = &args.mess {
        captured.take_curves(&mess_curves(place)?);
    }
    let remarks = sentences(&captured);
    if !output::quiet() {
        remarks.iter().for_each(note);
    }
    let head = head(&document.run, &remarks, VERSION);
    let file = machine_toml::write_file(&captured.figures);
    let file = file.map_err(|error| Failure::bad_input(error.to_string()))?;
    let text = format!("{head}\n{file}");
    let Some(path) = &args.output else { return output::print(&text) };
    output::save(path, &text)
}

/// Measures everything that a machine file has; with `--dry-run`, only shows the plan.
fn measure(args: &CaptureArgs) -> Result<Option<Document>, Failure> {
    let target = survey(&args.selection)?;
    let Target { machine, scope, pages } = &target;
    let (effort, kernels) = match args.quick {
        true => (Effort::Quick, &QUICK[..]),
        false => (Effort::Normal, &StreamKernel::ALL[..]),
    };
    let plan = MeasurePlan::new(machine, scope.clone(), effort, *pages);
    let foreseen = plan.with_surface(plan.foreseen(), kernels, None);
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
    let second =
        |first: &Document| plan.with_surface(plan.second_phase(first), kernels, Some(first));
    let (document, directory) = run_plan("capture", &target, &given, &plan.first_phase(), second)?;
    if let Some(directory) = directory {
        write_reports(&document, &directory)?;
    }
    Ok(Some(document))
}
