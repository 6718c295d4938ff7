//! Who watches while advice is made.

use std::fmt;
use std::time::Duration;

use numalab_formats::size::format_bytes;
use numalab_results::advice::Candidate;
use numalab_study::Observer;

/// Hears how far trials are, and what the user should know.
pub trait Watch: Observer {
    /// What the user should know at once.
    fn remark(&mut self, remark: &Remark);

    /// The trials have ended.
    fn tried(&mut self) {}
}

/// What the user should know before the advice is there.
#[derive(Clone, Debug, PartialEq)]
pub enum Remark {
    /// The program cannot be followed, for this reason, and candidates are tried without predictions.
    NotFollowed(String),
    /// What the emulator did not see of the program, or sees as one.
    Seen(String),
    /// Trials on this machine share pages of files in the page cache.
    SharedFiles {
        /// The file with most pages.
        name: String,
        /// All of them, in bytes.
        bytes: u64,
    },
    /// A run takes so long that following it would take more than an hour.
    TooLong(Duration),
    /// The program ends so soon that it hardly does more than start.
    Short {
        /// The program.
        program: String,
        /// How long it takes.
        took: Duration,
    },
    /// These candidates are tried in this many blocks.
    Trying {
        /// The candidates.
        candidates: Vec<Candidate>,
        /// The blocks.
        blocks: usize,
    },
    /// More blocks are run than were asked for, which are too few for a verdict.
    MoreBlocks {
        /// As many as were asked for.
        asked: usize,
        /// Candidates.
        candidates: usize,
        /// As many as are run.
        blocks: usize,
    },
    /// The budget is too short for one candidate.
    NoTime {
        /// How long a run takes.
        run: Duration,
        /// Runs that one candidate needs.
        runs: usize,
    },
    /// Fewer candidates or blocks than were asked for are run, to meet the budget.
    Less {
        /// Candidates that are run.
        candidates: usize,
        /// Candidates that were asked for.
        of: usize,
        /// Blocks that are run.
        blocks: usize,
        /// How long a run takes.
        run: Duration,
    },
    /// The program's output is not the same in every run.
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
                "{} of what it accesses are pages of files, as of {name}: they are in the page \
                 cache where they were read first, all trials share them, and verdicts hold for \
                 them as they are",
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
                write!(f, "{program} ends after {micros} us: what follows is of its start")
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
