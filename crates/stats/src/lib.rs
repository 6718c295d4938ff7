#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod attainable;
mod bisection;
mod bootstrap;
mod both;
mod compare;
mod comparison;
mod confidence;
mod contrast;
mod distribution;
mod equivalence;
mod error;
mod evidence;
mod extremes;
mod groups;
mod hodges_lehmann;
mod hypothesis;
mod interval;
mod isotonic;
mod knee;
mod median;
mod midrank;
mod modes;
mod multiplicity;
mod order;
mod pairwise;
mod peers;
mod permutation;
mod planning;
mod plateau;
mod precision;
mod quantile;
mod race;
mod random;
mod rank_sum;
mod ratio;
mod runs;
mod sample;
mod serial;
mod signed_rank;
mod spread;
mod threshold;
mod verdict;
mod whole;

pub use attainable::{least_p_paired, least_p_unpaired, least_pairs};
pub use bisection::{Bisection, score};
pub use bootstrap::{Resampling, bootstrap_bca};
pub use both::both;
pub use compare::{compare, compare_in_order, compare_paired};
pub use comparison::{
    Comparison, Criteria, Design, Scale, adjust_verdicts, adjust_verdicts_in_order,
};
pub use confidence::Confidence;
pub use contrast::{Contrast, Layout};
pub use equivalence::{Equivalence, Margin, equivalence_paired, equivalence_unpaired};
pub use error::Error;
pub use evidence::Ground;
pub use extremes::{Extreme, extremes};
pub use groups::groups;
pub use hodges_lehmann::{
    hodges_lehmann, hodges_lehmann_interval, paired_differences, percent_change, shift,
    shift_interval,
};
pub use hypothesis::{Alternative, Method, Test};
pub use interval::{Estimate, Interval};
pub use knee::{KNEE_FACTOR, Knee, LoadPoint, knee};
pub use median::{median, median_interval};
pub use modes::{Modes, two_modes};
pub use multiplicity::{benjamini_hochberg, holm};
pub use order::{Order, Trend};
pub use peers::{Population, Tails};
pub use permutation::{Draws, paired_permutation};
pub use planning::least_effect;
pub use plateau::{LatencyCurve, Level, SizePoint, plateaus};
pub use precision::{Precision, Progress, stopped_interval};
pub use race::{Out, Race};
pub use random::Rng;
pub use rank_sum::rank_sum;
pub use ratio::{ratio_of_means, ratio_of_means_paired};
pub use runs::{RunShift, moderate};
pub use sample::Sample;
pub use serial::{SerialEstimate, median_interval_serial};
pub use signed_rank::signed_rank;
pub use threshold::{Look, Side, ThresholdTest};
pub use verdict::{Direction, Verdict};
