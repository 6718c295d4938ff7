//! How long a study takes, in words.

use std::time::Duration;

use numalab_study::{Plan, fewest_blocks, longest_time, stated_time};
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

/// That the blocks are too few to show any difference, if they are.
pub(super) fn too_few(plan: &Plan, workloads: &[Workload], own_metrics: usize) -> Option<String> {
    let (blocks, fewest) = (plan.study().rules.blocks, fewest_blocks(plan, workloads, own_metrics));
    (blocks < fewest).then(|| {
        format!(
            "too few blocks to show a difference, unless values do not vary: {fewest} are the \
             least for so many metrics and changes"
        )
    })
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
    fn without_a_word_of_the_author_the_time_limits_are_the_most() {
        // 12 blocks of the baseline twice and the other level, 10 s each.
        assert!(stated_of("").starts_with("at most 6 min by the time limits"), "{}", stated_of(""));
        assert_eq!(stated_of("budget-s = 60.0"), "60 s, its budget");
    }
}
