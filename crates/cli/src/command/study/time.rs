//! How long a study takes, in words.

use std::time::Duration;

use numalab_stats::{least_effect, percent_change};
use numalab_study::{Plan, fewest_blocks, first_level, longest_time, stated_time};
use numalab_workload::Workload;

/// `about 12 min`; where nobody said how long a block takes, the most that it can be.
pub(super) fn stated(plan: &Plan, workloads: &[Workload]) -> String {
    let budget = plan.study().rules.budget_s.map(Duration::from_secs_f64);
    let about = stated_time(plan);
    if let Some(budget) = budget.filter(|budget| about.is_none_or(|about| *budget < about)) {
        return format!("{}, its budget", words(budget));
    }
    match about {
        Some(about) => format!("about {}", words(about)),
        None => format!(
            "at most {} by the time limits of its workloads; the first block tells more, and \
             so does `numalab study plan --pilot`",
            words(longest_time(plan, workloads))
        ),
    }
}

/// The fewest blocks that can show a difference, where the plan has fewer.
pub(super) fn too_few(plan: &Plan, workloads: &[Workload], own_metrics: usize) -> Option<usize> {
    let fewest = fewest_blocks(plan, workloads, own_metrics);
    (plan.study().rules.blocks < fewest).then_some(fewest)
}

/// Numbers of blocks of which a plan says what they can decide.
const BLOCKS: [usize; 6] = [6, 8, 12, 20, 40, 80];
/// By how much a block's change may spread, in percent.
const SPREADS: [f64; 3] = [1.0, 3.0, 10.0];

/// What each number of blocks can decide, by how far the changes of blocks lie apart.
pub(super) fn decisions(plan: &Plan, workloads: &[Workload], own_metrics: usize) -> String {
    let level = first_level(plan, workloads, own_metrics);
    let planned = plan.study().rules.blocks;
    let mut numbers = BLOCKS.to_vec();
    numbers.push(planned);
    numbers.sort_unstable();
    numbers.dedup();
    let what = match &plan.study().rules.primary {
        Some(primary) => format!("in {primary}"),
        None => "in any metric".to_owned(),
    };
    let mut text = format!(
        "The least change {what} that is found in four of five studies,\n\
         where the changes of single blocks have a standard deviation of\n"
    );
    let spreads: String =
        SPREADS.iter().map(|spread| format!("{:>10}", format!("{spread} %"))).collect();
    text.push_str(&format!("{:>8}{spreads}\n", "blocks"));
    for blocks in numbers {
        let least = |spread: &f64| match least_effect(blocks, level, spread / 100.0) {
            Some(effect) => format!("{:.1} %", percent_change(effect)),
            None => "nothing".to_owned(),
        };
        let cells: String = SPREADS.iter().map(|spread| format!("{:>10}", least(spread))).collect();
        let mark = if blocks == planned { "  as planned" } else { "" };
        text.push_str(&format!("{blocks:>8}{cells}{mark}\n"));
    }
    text
}

/// `40 s`, `12 min`, `3.5 h`.
pub(super) fn words(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 120.0 {
        format!("{seconds:.0} s")
    } else if seconds < 7_200.0 {
        format!("{:.0} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3_600.0)
    }
}

#[cfg(test)]
mod tests {
    use numalab_study::parse;

    use super::*;

    fn stated_of(rules: &str) -> String {
        let study = format!(
            "name = \"s\"\nquestion = \"q?\"\n[rules]\nblocks = 11\n{rules}\n[[factor]]\nname = \"v\"\n\
             levels = [1, 2]\n[[workload]]\nname = \"w\"\ncommand = [\"true\"]\ntimeout-s = 10\n\
             metric = [{{ name = \"t\", better = \"lower\", exit-time = true }}]\n"
        );
        let study = parse(&study, "s.toml").unwrap();
        let workloads = study.resolved().unwrap();
        stated(&Plan::new(study, 1), &workloads)
    }

    #[test]
    fn what_the_author_said_is_scaled_to_all_blocks_and_cut_by_the_budget() {
        assert_eq!(stated_of("about-block-s = 15.0"), "about 3 min");
        assert_eq!(stated_of("about-block-s = 15.0\nbudget-s = 60.0"), "60 s, its budget");
        assert_eq!(stated_of("about-block-s = 5.0\nbudget-s = 600.0"), "about 60 s");
    }

    #[test]
    fn more_blocks_decide_smaller_changes_and_too_few_decide_none() {
        let study = "name = \"s\"\nquestion = \"q?\"\n[rules]\nblocks = 5\n[[factor]]\nname = \"v\"\n\
                     levels = [1, 2]\n[[workload]]\nname = \"w\"\ncommand = [\"true\"]\n\
                     metric = [{ name = \"t\", better = \"lower\", exit-time = true }]\n";
        let study = parse(study, "s.toml").unwrap();
        let workloads = study.resolved().unwrap();
        let text = decisions(&Plan::new(study, 1), &workloads, 0);
        assert!(text.contains("       5   nothing   nothing   nothing  as planned\n"), "{text}");
        assert!(text.contains("\n       6     1."), "{text}");
    }

    #[test]
    fn without_a_word_of_the_author_the_time_limits_are_the_most() {
        // 12 blocks of the baseline twice and the other level, 10 s each.
        assert!(stated_of("").starts_with("at most 6 min by the time limits"), "{}", stated_of(""));
        assert_eq!(stated_of("budget-s = 60.0"), "60 s, its budget");
    }
}
