//! Finds studies by name and by file.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use numalab_host::bounded::{MOST_STUDY_BYTES, read_input_text};
use numalab_page::Style;
use numalab_places::BACKENDS;
use numalab_record::shell::command_line;
use numalab_record::study::{ListedStudy, ShownStudy, StudyList};
use numalab_results::Report;
use numalab_study::{Plan, Study, bundled, bundled_text, parse, start, stated_time};
use numalab_workload::Workload;

use super::settings;
use crate::args::{Format, StudyNewArgs};
use crate::failure::{Code, Failure};
use crate::output;

/// Reads and plans a bundled study, or else a file.
fn read(name: &str) -> Result<Plan, Failure> {
    let study = parse(&text(name)?, name, BACKENDS).map_err(Failure::bad_input)?;
    Plan::new(study, 0).map_err(Failure::bad_input)
}

/// Returns the text of a bundled study, or else of a file.
pub(crate) fn text(name: &str) -> Result<String, Failure> {
    match bundled_text(name) {
        Some(text) => Ok(text.to_owned()),
        None => read_input_text(Path::new(name), MOST_STUDY_BYTES).map_err(|error| {
            let names: Vec<&str> = bundled().iter().map(|(name, _)| *name).collect();
            let known = names.join(", ");
            Failure::bad_input(format!("{name}: {error}: expected a file, or one of {known}"))
        }),
    }
}

/// Prints the bundled studies.
pub(super) fn list(format: Format) -> Result<(), Failure> {
    let studies = bundled().iter().map(|(name, _)| read(name).map(|plan| listed(&plan)));
    output::show(&StudyList { studies: studies.collect::<Result<_, Failure>>()? }, format)
}

/// Writes a commented template of a study; never overwrites a file.
pub(super) fn begin(args: &StudyNewArgs) -> Result<(), Failure> {
    // Accepts the file's name for the study in it.
    let name = args.name.strip_suffix(".toml").unwrap_or(&args.name);
    let path = match &args.output {
        Some(path) => path.clone(),
        None => PathBuf::from(format!("{name}.toml")),
    };
    let name = name.rsplit_once('/').map_or(name, |(_, name)| name);
    let text = format!("{}{}", start(name), settings_comment());
    // A name that is invalid for a study is refused before anything is written.
    parse(&text, name, BACKENDS).map_err(Failure::bad_input)?;
    write_new(&path, &text)?;
    output::print(&format!("{}\n", path.display()))
}

/// Returns the settings of every backend as comments, for the end of a template.
fn settings_comment() -> String {
    let listed = settings::listed(BACKENDS.kinds());
    let lines = listed.page().terminal(Style::Plain);
    let commented = lines.lines().map(|line| format!("# {line}").trim_end().to_owned() + "\n");
    format!("\n{}", commented.collect::<String>())
}

fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let path = path.display();
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::bad_input(format!(
            "{path} already exists and was not changed: expected another name, or -o FILE; `numalab \
             study run {path}` runs it if it is a study"
        )),
        ErrorKind::NotFound => Failure::bad_input(format!("{path}: {error}")),
        _ => Failure::new(Code::Failed, format!("{path}: {error}")),
    })
}

/// Prints a study with all defaults filled in, and how long it takes.
pub(super) fn show(name: &str, format: Format) -> Result<(), Failure> {
    let plan = read(name)?;
    let failed = |error: &dyn std::fmt::Display| Failure::new(Code::Failed, error);
    let text = plan.study().to_toml().map_err(|error| failed(&error))?;
    let value = serde_json::to_value(plan.study()).map_err(|error| failed(&error))?;
    let toml = format!("{}\n{text}", tool_commands(&plan));
    output::show(&ShownStudy { line: listed(&plan), toml, study: value }, format)
}

/// Returns the command lines of workloads that only name their tool, as comments.
fn tool_commands(plan: &Plan) -> String {
    let workloads = plan.study().workloads.iter().zip(plan.workloads());
    let of_tools = workloads.filter(|(spec, _)| spec.tool.is_some());
    let line = |workload: &Workload| {
        // A comment must stay on one line, whatever the arguments contain.
        let command = command_line(&workload.command).replace('\n', " ");
        format!("#   {}: {command}\n", workload.name)
    };
    of_tools.map(|(_, workload)| line(workload)).collect()
}

/// Summarizes a study in one line.
fn listed(plan: &Plan) -> ListedStudy {
    let Study { name, question, .. } = plan.study().clone();
    ListedStudy { name, question, blocks: plan.blocks(), time: stated_time(plan) }
}
