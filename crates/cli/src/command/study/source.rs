//! Lists and shows studies, and begins new ones.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use numalab_page::Style;
use numalab_places::BACKENDS;
use numalab_record::study::StudyList;
use numalab_results::Report;
use numalab_study::{ReadyStudy, StudyChanges, bundled, parse, start};

use super::StudyNewArgs;
use crate::args::Format;
use crate::failure::{Code, Failure};
use crate::output;

/// Prints the bundled studies.
pub(super) fn list(format: Format) -> Result<(), Failure> {
    let studies = bundled().iter().map(|(name, _)| Ok(read(name)?.listed()));
    output::show(&StudyList { studies: studies.collect::<Result<_, Failure>>()? }, format)
}

/// Prints a study with all defaults filled in, and how long it takes.
pub(super) fn show(name: &str, format: Format) -> Result<(), Failure> {
    output::show(&read(name)?.shown()?, format)
}

fn read(name: &str) -> Result<ReadyStudy, Failure> {
    Ok(ReadyStudy::named(name, &StudyChanges::default(), BACKENDS)?)
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
    let settings = BACKENDS.settings(None)?.page().terminal(Style::Plain);
    let comments = settings.lines().map(|line| format!("# {line}").trim_end().to_owned() + "\n");
    let text = format!("{}\n{}", start(name), comments.collect::<String>());
    // A name that is invalid for a study is refused before anything is written.
    parse(&text, name, BACKENDS).map_err(Failure::bad_input)?;
    write_new(&path, &text)?;
    output::print(&format!("{}\n", path.display()))
}

fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let written = file.and_then(|mut file| {
        // On a full disk an empty file would stay, which no second attempt overwrites.
        file.write_all(text.as_bytes()).inspect_err(|_| drop(fs::remove_file(path)))
    });
    let path = path.display();
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::bad_input(format!(
            "{path} already exists and was not changed: expected another name, or -o FILE; `numalab \
             study run {path}` runs it if it is a study"
        )),
        ErrorKind::NotFound => Failure::bad_input(format!("{path}: {error}")),
        _ => Failure::new(Code::Failed, format!("{path}: {error}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_listed_with_its_values_and_default() {
        let settings = BACKENDS.settings(None).expect("all of them");
        let text = settings.page().terminal(Style::Plain);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for spec in BACKENDS.kinds().flat_map(|kind| kind.settings.iter().chain(kind.levels)) {
            let said = format!("{} {}: {}", spec.name, spec.about, spec.kind.expected());
            assert!(text.contains(&said), "{said}");
            assert!(text.contains(spec.default), "{said}");
            let spelled = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(spec.name.chars().all(spelled), "{}", spec.name);
        }
    }
}
