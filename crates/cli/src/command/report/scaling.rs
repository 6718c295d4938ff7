//! Results of `numalab scale` and of the NUMA benchmarking suite.

use std::fs;
use std::io;
use std::path::Path;

use numalab_formats::architecture;
use numalab_host::bounded::read_file;
use numalab_record::file;
use numalab_record::scaling::{Scaling, ScalingFile, read};
use numalab_results::scaling::ScalingSummary;

use crate::args::{Format, ReportArgs};
use crate::failure::Failure;
use crate::output;

/// Directories of runs may lie in one of all.
const DEPTH: usize = 2;
/// No file of such a run is nearly as long, in bytes.
const LONGEST: u64 = 256 << 20;

/// Whether the path is a CSV, or a directory with one that is no `samples.csv` of ours.
pub(super) fn is_meant(path: &Path) -> bool {
    if path.is_file() {
        return path.to_str().is_some_and(is_table);
    }
    let mut files = Vec::new();
    !path.join(file::RUN).exists()
        && list(path, DEPTH, &mut files).is_ok()
        && files.iter().any(|file| is_table(file) && !file.ends_with(file::SAMPLES))
}

fn is_table(name: &str) -> bool {
    name.ends_with(".csv") || name.ends_with(".csv.part")
}

pub(super) fn run(args: &ReportArgs) -> Result<(), Failure> {
    let scaling = load(&args.place)?;
    let report = ScalingSummary::of(&scaling);
    let format = args.format.or_else(|| args.place.is_file().then_some(Format::Text));
    let Some(format) = format else {
        let page = output::shared_page(&report);
        for (name, text) in
            [(file::REPORT_MARKDOWN, page.markdown()), (file::REPORT_HTML, page.html())]
        {
            let path = args.place.join(name);
            fs::write(&path, text).map_err(|error| Failure::at(&path, error))?;
        }
        let directory = args.place.display();
        return output::print(&format!("{directory}/report.md\n{directory}/report.html\n"));
    };
    output::show(&report, format)
}

/// Every file of the run, and the machine of its architecture file.
fn load(path: &Path) -> Result<Scaling, Failure> {
    let mut names = Vec::new();
    let root = match path.is_file() {
        true => {
            names.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
            path.parent().unwrap_or(path)
        }
        false => {
            list(path, DEPTH, &mut names).map_err(|error| Failure::at(path, error))?;
            path
        }
    };
    let mut files = Vec::new();
    for name in names {
        let file = root.join(&name);
        let length = fs::metadata(&file).map_or(0, |data| data.len());
        if length <= LONGEST {
            let bytes = read_file(&file, LONGEST).map_err(|error| Failure::at(&file, error))?;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            files.push(ScalingFile { path: name, text });
        }
    }
    let (mut scaling, text) =
        read(&path.display().to_string(), &files).map_err(Failure::bad_input)?;
    match text.map(|text| architecture::read(&text)) {
        Some(Ok(reading)) => scaling.machine = Some(reading.value.machine),
        Some(Err(error)) => {
            scaling.findings.push(format!("the architecture in scale.json is not used: {error}"));
        }
        None => {}
    }
    Ok(scaling)
}

/// The paths of files that such a run has, below `root`, sorted.
fn list(root: &Path, depth: usize, names: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_run = entry.file_type()?.is_dir();
        if is_run && depth > 1 {
            let mut below = Vec::new();
            list(&entry.path(), depth - 1, &mut below)?;
            names.extend(below.into_iter().map(|file| format!("{name}/{file}")));
        } else if !is_run
            && [".csv", ".csv.part", ".json", ".log"].iter().any(|end| name.ends_with(end))
        {
            names.push(name);
        }
    }
    names.sort();
    Ok(())
}
