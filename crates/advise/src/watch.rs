//! The observer of advice in progress.

use std::fmt;
use std::time::Duration;

use numalab_formats::size::format_bytes;
use numalab_results::advice::Candidate;
use numalab_study::Observer;

/// Receives the progress of trials, and remarks for the user.
pub trait Watch: Observer {
    /// Receives a remark for the user.
    fn remark(&mut self, remark: &Remark);

    /// Receives the end of the trials.
    fn tried(&mut self) {}
}

/// A remark for the user before the advice is ready.
#[derive(Clone, Debug, PartialEq)]
pub enum Remark {
    /// The program cannot be followed, for this reason; candidates are tried without predictions.
    NotFollowed(String),
    /// A limit of what the emulator can see of the program.
    Seen(String),
    /// Trials on this machine share file pages in the page cache.
    SharedFiles {
        /// The file with the most pages.
        name: String,
        /// The size of all such pages, in bytes.
        bytes: u64,
    },
    /// A run takes so long that following it would take more than an hour.
    TooLong(Duration),
    /// The program ends so soon that it does little more than start.
    Short {
        program: String,
        /// Its run time.
        took: Duration,
    },
    /// These candidates are tried in this many blocks.
    Trying { candidates: Vec<Candidate>, blocks: usize },
    /// The requested number of blocks is too small for a verdict, so more are run.
    MoreBlocks {
        /// The number requested.
        asked: usize,
        /// The number of candidates.
        candidates: usize,
        /// The number run.
        blocks: usize,
    },
    /// The budget is too short for one candidate.
    NoTime {
        /// The time of a run.
        run: Duration,
        /// The number of runs that one candidate needs.
        runs: usize,
    },
    /// Fewer candidates or blocks than requested are run, to stay within the budget.
    Less {
        /// The number of candidates that are run.
        candidates: usize,
        /// The number of candidates requested.
        of: usize,
        /// The number of blocks that are run.
        blocks: usize,
        /// The time of a run.
        run: Duration,
    },
    /// The program's output differs between runs.
    OutputDiffers,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFollowed(why) => write!(
                f,
                "it cannot be followed under emulation, and candidates are tried without \
                 predictions: {why}"
            ),
            Self::Seen(what) => f.write_str(what),
            Self::SharedFiles { name, bytes } => write!(
                f,
                "{} of the memory that it accesses are file pages, such as those of {name}: they \
                 stay in the page cache on the node that first read them, all trials share them, \
                 and verdicts hold only for that placement",
                format_bytes(*bytes)
            ),
            Self::TooLong(run) => write!(
                f,
                "a run takes {:.0} s: following it under emulation would take more than an hour, so \
                 candidates are tried without predictions (as by --trials-only)",
                run.as_secs_f64()
            ),
            Self::Short { program, took } => {
                let micros = took.as_micros();
                write!(
                    f,
                    "{program} ends after {micros} us, so the results mainly describe its \
                           start"
                )
            }
            Self::Trying { candidates, blocks } => {
                let names = candidates.iter().map(crate::level::id).collect::<Vec<_>>();
                write!(f, "trying in {blocks} blocks: {}", names.join(", "))
            }
            Self::MoreBlocks { asked, candidates, blocks } => write!(
                f,
                "{asked} blocks are too few for a verdict on {candidates} candidates: running {blocks}"
            ),
            Self::NoTime { run, runs } => write!(
                f,
                "the budget is too short for trials: a run takes {:.1} s, and one candidate needs \
                 {runs} runs; the results are predictions only",
                run.as_secs_f64()
            ),
            Self::Less { candidates, of, blocks, run } => write!(
                f,
                "to meet the budget, {candidates} of {of} candidates run in {blocks} blocks: a run \
                 takes {:.1} s",
                run.as_secs_f64()
            ),
            Self::OutputDiffers => f.write_str("the program's output is not the same in every run"),
        }
    }
}
