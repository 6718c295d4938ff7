//! Two files of numbers, or two logs.

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use numalab_host::bounded::{MOST_RESULT_BYTES, read_input_text};
use numalab_host::note;
use numalab_results::samples::{SampleComparison, numbers};
use numalab_stats::Direction;
use numalab_workload::{LogSample, Pattern};

use super::commands::{no_direction, of_metric};
use super::{Compared, MARGIN};
use crate::args::CompareArgs;
use crate::failure::Failure;

pub(super) fn compared(args: &CompareArgs, paths: [&PathBuf; 2]) -> Result<Compared, Failure> {
    let names = names(paths);
    let (values, unit, usual) = match &args.metric {
        None => (both(paths, read_numbers)?, String::new(), None),
        Some(metric) => {
            let pattern = Pattern::parse(metric).map_err(of_metric)?;
            let logs = both(paths, |path| {
                let text = text(path)?;
                let undefined = pattern.undefined(&text);
                if undefined > 0 {
                    let name = path.display();
                    note(format!(
                        "{name}: {undefined} times `nan` or `inf` in the place of the number: left out"
                    ));
                }
                let sample = LogSample::of(&text, metric, &pattern);
                sample.map_err(|error| of_metric(format_args!("{}: {error}", path.display())))
            })?;
            LogSample::expect_one_unit([(&names[0], &logs[0]), (&names[1], &logs[1])], metric)
                .map_err(of_metric)?;
            let usual = logs.iter().find_map(|log| log.usual_direction(&pattern));
            if args.better.or(usual).is_none() {
                return Err(no_direction(metric));
            }
            (logs.map(|log| log.values), pattern.label().to_owned(), usual)
        }
    };
    let better = args.better.or(usual).unwrap_or_else(|| {
        note("lower is taken to be better: --better higher if these are rates");
        Direction::LowerIsBetter
    });
    let margin_percent = args.margin.unwrap_or(MARGIN);
    let comparison = SampleComparison::of(names, values, unit, better, margin_percent)
        .map_err(|error| Failure::bad_input(format!("--margin {margin_percent}: {error}")))?;
    let judgement = comparison.judgement(margin_percent);
    Ok((Box::new(comparison), judgement))
}

/// Returns the names of two files: the last parts of their paths if these differ, because pages leave
/// out paths. Those of pipes, such as `/dev/fd/63`, say nothing without the rest.
fn names(paths: [&PathBuf; 2]) -> [String; 2] {
    let whole = paths.map(|path| path.display().to_string());
    let last =
        paths.map(|path| path.file_name().unwrap_or_default().to_string_lossy().into_owned());
    let are_files = paths.iter().all(|path| !path.starts_with("/dev"));
    if are_files && last[0] != last[1] { last } else { whole }
}

/// Reads two files in parallel, because they may have millions of numbers.
fn both<T: Send>(
    paths: [&PathBuf; 2],
    read: impl Fn(&Path) -> Result<T, Failure> + Sync,
) -> Result<[T; 2], Failure> {
    let [first, second] = thread::scope(|scope| {
        let second = scope.spawn(|| read(paths[1]));
        [read(paths[0]), second.join().unwrap_or_else(|panic| resume_unwind(panic))]
    });
    Ok([first?, second?])
}

fn read_numbers(path: &Path) -> Result<Vec<f64>, Failure> {
    let name = path.display();
    let values = numbers(&text(path)?);
    let values = values.map_err(|error| Failure::bad_input(format!("{name}, {error}")))?;
    match values.is_empty() {
        true => Err(Failure::bad_input(format!("{name}: no values: expected at least one"))),
        false => Ok(values),
    }
}

fn text(path: &Path) -> Result<String, Failure> {
    read_input_text(path, MOST_RESULT_BYTES).map_err(|error| {
        Failure::bad_input(format!(
            "{}: {error}: expected two result directories, files of numbers or logs",
            path.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_by_the_part_of_their_paths_that_pages_show() {
        let named = |paths: [&str; 2]| names(paths.map(PathBuf::from).each_ref());
        assert_eq!(named(["/home/a/old.txt", "/home/a/new.txt"]), ["old.txt", "new.txt"]);
        for same in [["/tmp/a/t.txt", "/tmp/b/t.txt"], ["/dev/fd/63", "/dev/fd/62"]] {
            assert_eq!(named(same), same);
        }
    }
}
