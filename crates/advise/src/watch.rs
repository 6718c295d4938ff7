//! The observer of advice in progress.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use numalab_formats::size::format_rounded;
use numalab_places::FilesSeen;
use numalab_results::advice::Candidate;
use numalab_results::advice::page::what;
use numalab_study::Observer;
use numalab_topology::{NodeId, NodeSet};

/// The expected time of trials from which the way to shorten them is shown.
const LONG: Duration = Duration::from_secs(300);
/// The largest budget proposed, in minutes.
const MOST_BUDGET: f64 = 5.0;

/// Receives the progress of trials, and remarks for the user.
pub trait Watch: Observer {
    /// Receives a remark for the user.
    fn remark(&mut self, remark: &Remark);

    /// Called when the trials have ended.
    fn tried(&mut self) {}
}

/// A remark for the user before the advice is ready.
#[derive(Clone, Debug, PartialEq)]
pub enum Remark {
    /// The program cannot be followed, for this reason; candidates are tried without predictions.
    NotFollowed(String),
    /// A limit of the emulator's view of the program.
    Seen(String),
    /// The program maps pages of files that are in the page cache.
    FilesMapped {
        /// The file with the most pages.
        name: String,
        /// The size of all such pages, in bytes.
        bytes: u64,
        /// Their nodes.
        nodes: NodeSet,
    },
    /// Each trial read this many bytes of files again, so that their pages are where it places them.
    FilesRenewed(u64),
    /// Trials shared file pages that could not be dropped from the page cache.
    SharedFiles {
        /// The file with the most pages.
        name: String,
        /// The size of all such pages, in bytes.
        bytes: u64,
    },
    /// Following the program would take more than an hour.
    TooLong {
        /// The shortest time that it would take.
        least: Duration,
    },
    /// The program is followed next.
    Following {
        /// The time that following it takes.
        least: Duration,
        most: Duration,
    },
    /// The program is still followed after this time, which was not known before.
    StillFollowing {
        after: Duration,
        /// The most times that following takes the program's own time.
        most: u32,
    },
    /// The program ends so soon that it does little more than start.
    Short {
        program: String,
        /// The run time of the program.
        took: Duration,
    },
    /// These candidates are tried in this many blocks.
    Trying {
        candidates: Vec<Candidate>,
        blocks: usize,
        /// The expected time, if the time of a run is known.
        about: Option<Duration>,
    },
    /// The requested number of blocks is too small for a verdict, so more are run.
    MoreBlocks { asked: usize, candidates: usize, blocks: usize },
    /// The budget is too short for one candidate.
    NoTime {
        trial: Duration,
        /// The number of trials that one candidate needs.
        trials: usize,
    },
    /// Fewer candidates or blocks than requested are run, to stay within the budget.
    Less {
        candidates: usize,
        /// The number of candidates requested.
        of: usize,
        blocks: usize,
        trial: Duration,
    },
    /// No candidate was tried, so nothing is kept in this directory.
    NothingKept(PathBuf),
    /// The program's output differs between runs.
    OutputDiffers,
}

impl Remark {
    /// Returns a remark on the files that the program maps; `None` if it maps none.
    pub(super) fn of_files(files: &FilesSeen) -> Option<Self> {
        let bytes = |nodes: &BTreeMap<NodeId, u64>| nodes.values().sum::<u64>();
        let (most, _) = files.iter().max_by_key(|(_, nodes)| bytes(nodes))?;
        let all: u64 = files.values().map(bytes).sum();
        let nodes = files.values().flatten().filter(|(_, bytes)| **bytes > 0);
        let nodes = nodes.map(|(node, _)| *node).collect();
        let name = most.display().to_string();
        (all > 0).then_some(Self::FilesMapped { name, bytes: all, nodes })
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFollowed(why) => write!(
                f,
                "the program cannot be followed under emulation, so candidates are tried without \
                 predictions: {why}"
            ),
            Self::Seen(what) => f.write_str(what),
            Self::FilesMapped { name, bytes, nodes } => {
                f.write_str(&files_mapped(name, *bytes, nodes))
            }
            Self::SharedFiles { name, bytes } => f.write_str(&shared_files(name, *bytes)),
            Self::FilesRenewed(bytes) => f.write_str(&files_renewed(*bytes)),
            Self::Trying { candidates, blocks, about } => {
                f.write_str(&trying(candidates, *blocks, *about))
            }
            Self::TooLong { least } => write!(
                f,
                "following the program under emulation would take {:.1} hours or more, so \
                 candidates are tried without predictions (as with --trials-only)",
                least.as_secs_f64() / 3600.0
            ),
            Self::Following { least, most } => write!(
                f,
                "following the program under emulation takes {:.0} to {:.0} s",
                least.as_secs_f64(),
                most.as_secs_f64().ceil()
            ),
            Self::StillFollowing { after, most } => f.write_str(&still_following(*after, *most)),
            Self::Short { program, took } => write!(
                f,
                "{program} ends after {} us, so the results mainly describe its start",
                took.as_micros()
            ),
            Self::MoreBlocks { asked, candidates, blocks } => write!(
                f,
                "{asked} blocks are too few for a verdict on {candidates} candidates: running {blocks}"
            ),
            Self::NoTime { trial, trials } => write!(
                f,
                "the budget is too short for trials: a trial takes {:.1} s, and one candidate needs \
                 {trials}: nothing is tried",
                trial.as_secs_f64()
            ),
            Self::Less { candidates, of, blocks, trial } => write!(
                f,
                "to meet the budget, {candidates} of {of} candidates run in {blocks} blocks: a trial \
                 takes {:.1} s",
                trial.as_secs_f64()
            ),
            Self::NothingKept(directory) => write!(
                f,
                "--keep {}: no candidate was tried, so there is nothing to keep",
                directory.display()
            ),
            Self::OutputDiffers => f.write_str("the program's output is not the same in every run"),
        }
    }
}

fn files_renewed(bytes: u64) -> String {
    format!(
        "before each trial, {} of files were dropped from the page cache and read again under its \
         placement",
        format_rounded(bytes)
    )
}

fn still_following(after: Duration, most: u32) -> String {
    format!(
        "following the program under emulation has taken {:.0} s so far, and can take {most} times \
         the program's own CPU time: a smaller problem takes less",
        after.as_secs_f64()
    )
}

fn files_mapped(name: &str, bytes: u64, nodes: &NodeSet) -> String {
    let of = if nodes.len() == 1 { "node" } else { "nodes" };
    format!(
        "{} of files that the program maps, such as {name}, are on {of} {nodes}, where they were first \
         read: no placement moves them while they are in the page cache; each trial drops them, and an \
         additional run reads them again",
        format_rounded(bytes)
    )
}

fn shared_files(name: &str, bytes: u64) -> String {
    format!(
        "{} of files, such as {name}, could not be dropped from the page cache: they stay on the \
         node that first read them, all trials share them, and verdicts hold only for that placement",
        format_rounded(bytes)
    )
}

fn trying(candidates: &[Candidate], blocks: usize, about: Option<Duration>) -> String {
    let names = candidates.iter().map(what).collect::<Vec<_>>().join(", ");
    let about = about.map(|time| match time {
        time if time < LONG => format!(", about {:.0} s", time.as_secs_f64()),
        time => {
            let minutes = time.as_secs_f64() / 60.0;
            let budget = (minutes / 2.0).min(MOST_BUDGET);
            format!(", about {minutes:.0} min (--budget {budget:.0}m tries what that time allows)")
        }
    });
    format!("trying in {blocks} blocks{}: {names}", about.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_run_under_emulation_is_announced_with_its_time() {
        let said = |remark: Remark| remark.to_string();
        let most = Duration::from_millis(7_100);
        assert_eq!(
            said(Remark::Following { least: SECOND, most }),
            "following the program under emulation takes 1 to 8 s",
            "the longest time is rounded up"
        );
        assert_eq!(
            said(Remark::StillFollowing { after: 20 * SECOND, most: 350 }),
            "following the program under emulation has taken 20 s so far, and can take 350 times the \
             program's own CPU time: a smaller problem takes less"
        );
        assert_eq!(
            said(Remark::TooLong { least: 5_400 * SECOND }),
            "following the program under emulation would take 1.5 hours or more, so candidates are \
             tried without predictions (as with --trials-only)"
        );
        assert_eq!(
            said(Remark::NotFollowed("it is static".to_owned())),
            "the program cannot be followed under emulation, so candidates are tried without \
             predictions: it is static"
        );
        let took = Duration::from_micros(812);
        assert_eq!(
            said(Remark::Short { program: "true".to_owned(), took }),
            "true ends after 812 us, so the results mainly describe its start"
        );
    }

    #[test]
    fn trials_are_announced_with_their_candidates_and_their_time_if_it_is_known() {
        let candidates = vec![Candidate::Bind { node: 1 }, Candidate::HugePages];
        let names = format!("{}, {}", what(&candidates[0]), what(&candidates[1]));
        let trying =
            |about| Remark::Trying { candidates: candidates.clone(), blocks: 8, about }.to_string();
        assert_eq!(trying(None), format!("trying in 8 blocks: {names}"));
        assert_eq!(trying(Some(64 * SECOND)), format!("trying in 8 blocks, about 64 s: {names}"));
    }

    #[test]
    fn trials_of_another_extent_than_requested_say_what_was_changed() {
        let trial = Duration::from_millis(1_500);
        for (remark, expected) in [
            (
                Remark::MoreBlocks { asked: 6, candidates: 4, blocks: 8 },
                "6 blocks are too few for a verdict on 4 candidates: running 8",
            ),
            (
                Remark::NoTime { trial, trials: 21 },
                "the budget is too short for trials: a trial takes 1.5 s, and one candidate needs 21: \
                 nothing is tried",
            ),
            (
                Remark::Less { candidates: 1, of: 3, blocks: 7, trial },
                "to meet the budget, 1 of 3 candidates run in 7 blocks: a trial takes 1.5 s",
            ),
            (
                Remark::NothingKept("kept".into()),
                "--keep kept: no candidate was tried, so there is nothing to keep",
            ),
        ] {
            assert_eq!(remark.to_string(), expected);
        }
    }

    #[test]
    fn mapped_files_are_named_with_the_nodes_of_their_pages() {
        let seen = |files: &[(&str, &[(u32, u64)])]| -> FilesSeen {
            let nodes =
                |nodes: &[(u32, u64)]| nodes.iter().map(|of| (NodeId(of.0), of.1)).collect();
            files.iter().map(|(name, of)| (name.into(), nodes(of))).collect()
        };
        let model: (&str, &[_]) = ("/data/model", &[(0, 3 << 20)]);
        let remark = Remark::of_files(&seen(&[("/data/index", &[(1, 1 << 20)]), model]));
        assert_eq!(
            remark.expect("mapped files").to_string(),
            "4 MiB of files that the program maps, such as /data/model, are on nodes 0,1, where they \
             were first read: no placement moves them while they are in the page cache; each trial \
             drops them, and an additional run reads them again"
        );
        assert_eq!(Remark::of_files(&seen(&[("/data/index", &[])])), None, "only read");
    }

    #[test]
    fn file_pages_that_trials_share_are_named_with_their_size() {
        let name = "/data/grid".to_owned();
        assert_eq!(
            Remark::SharedFiles { name, bytes: 3 << 20 }.to_string(),
            "3 MiB of files, such as /data/grid, could not be dropped from the page cache: they stay on \
             the node that first read them, all trials share them, and verdicts hold only for that \
             placement"
        );
        assert_eq!(
            Remark::FilesRenewed((7 << 19) + 17).to_string(),
            "before each trial, 3.5 MiB of files were dropped from the page cache and read again under \
             its placement"
        );
    }

    #[test]
    fn trials_that_take_long_are_announced_with_the_way_to_shorten_them() {
        let said = |seconds| {
            let about = Some(Duration::from_secs(seconds));
            Remark::Trying { candidates: Vec::new(), blocks: 8, about }.to_string()
        };
        assert_eq!(said(96), "trying in 8 blocks, about 96 s: ");
        let long = "trying in 8 blocks, about 24 min (--budget 5m tries what that time allows): ";
        assert_eq!(said(1458), long);
        let half = "trying in 8 blocks, about 6 min (--budget 3m tries what that time allows): ";
        assert_eq!(said(360), half, "the budget is shorter than the trials");
    }
}
