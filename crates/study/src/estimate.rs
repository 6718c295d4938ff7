//! Estimates the time of a study, and the differences that it can detect.

use numalab_record::study::{Decision, Decisions, FactorKind, StudyTime};
use numalab_stats::{Confidence, least_effect, percent_change};
use numalab_workload::Workload;

use crate::plan::Plan;

/// Numbers of blocks for which a plan lists detectable differences.
const BLOCKS: [usize; 6] = [6, 8, 12, 20, 40, 80];
/// Spreads of a block's change, in percent.
const SPREADS_PERCENT: [f64; 3] = [1.0, 3.0, 10.0];

/// Returns the time for all blocks as the author states it, else the longest possible time without
/// disturbances: that in which every workload uses up its limit.
pub fn stated_time(plan: &Plan) -> StudyTime {
    let rules = &plan.study().rules;
    let about = rules.about_block_s.map(|block_s| block_s * plan.blocks() as f64);
    match (rules.budget_s, about) {
        (Some(seconds), about) if about.is_none_or(|about| seconds < about) => {
            StudyTime::Budget { seconds }
        }
        (_, Some(seconds)) => StudyTime::About { seconds },
        (_, None) => {
            let allowed_s: u64 = plan.workloads().iter().map(|workload| workload.timeout_s).sum();
            // Every block has the same number of visits, in another order.
            let visits = plan.visits(0).len() * plan.blocks();
            StudyTime::AtMost { seconds: allowed_s as f64 * visits as f64 }
        }
    }
}

/// Returns the detectable differences for each number of blocks and spread of changes.
pub fn decisions(plan: &Plan, own_metrics: usize) -> Decisions {
    let level = level(plan, own_metrics, 1);
    let planned = plan.study().rules.blocks;
    let mut numbers = BLOCKS.to_vec();
    numbers.push(planned);
    numbers.sort_unstable();
    // The planned number may be one of those listed.
    numbers.dedup();
    let row = |blocks| Decision {
        blocks,
        is_planned: blocks == planned,
        least_percent: SPREADS_PERCENT
            .map(|spread| least_effect(blocks, level, spread / 100.0).map(percent_change))
            .to_vec(),
    };
    Decisions {
        primary: plan.study().rules.primary.clone(),
        spreads_percent: SPREADS_PERCENT.to_vec(),
        rows: numbers.into_iter().map(row).collect(),
    }
}

/// Returns the smallest number of blocks with which a difference can be shown at a look, counted from
/// 1: in the primary metric if the study names one, else in any answer, corrected for all answers. These
/// are every metric of every workload except facts, and the backend's own
/// ([`own_metrics`](crate::Backend::own_metrics)), for every main effect
/// and interaction. Values that do not vary need fewer blocks.
pub fn fewest_blocks(plan: &Plan, own_metrics: usize, look: usize) -> usize {
    numalab_stats::least_pairs(level(plan, own_metrics, look).alpha())
}

/// Returns the fewest blocks that can show a difference, if the plan has fewer: from the start, and
/// with blocks that are added to those planned.
pub fn too_few(plan: &Plan, own_metrics: usize) -> Option<[usize; 2]> {
    let [at_once, with_added] = [1, 2].map(|look| fewest_blocks(plan, own_metrics, look));
    (plan.study().rules.blocks < at_once).then_some([at_once, with_added])
}

/// Returns the confidence required of the most significant answer at a look, counted from 1.
fn level(plan: &Plan, own_metrics: usize, look: usize) -> Confidence {
    let rules = &plan.study().rules;
    // A tool with metrics that depend on its findings has at least one.
    let known = |workload: &Workload| workload.metrics().map_or(1, |m| m.len().max(1));
    let metrics: usize =
        plan.workloads().iter().map(|workload| own_metrics + known(workload)).sum();
    let metrics = match rules.primary {
        Some(_) => 1,
        // Without a primary metric all answers form one family.
        None => metrics.saturating_sub(rules.facts.len()).max(1),
    };
    let answers = metrics * answers_of_one_metric(plan);
    // A study that is resumed is looked at again, so each look gets only a part of the permitted
    // error.
    let all = Confidence::P95.at_look(look);
    Confidence::new(1.0 - all.alpha() / answers as f64).unwrap_or(all)
}

/// Returns the number of main effects and of interactions of two factors; without main effects the
/// number of trends.
fn answers_of_one_metric(plan: &Plan) -> usize {
    let (mut main, mut interactions, mut scales) = (0, 0, 0);
    for factor in &plan.study().factors {
        match factor.kind {
            FactorKind::Scale => scales += 1,
            FactorKind::Choice => {
                let changes = factor.levels.len() - 1;
                interactions += main * changes;
                main += changes;
            }
        }
    }
    if main == 0 { scales } else { main + interactions }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Backends, parse};

    fn with_rules(rules: &str) -> Plan {
        let study = format!(
            "name = \"s\"\nquestion = \"q?\"\n[rules]\n{rules}\n[[factor]]\nname = \"v\"\n\
             levels = [1, 2]\n[[workload]]\nname = \"w\"\ncommand = [\"true\"]\ntimeout-s = 10\n\
             metric = [{{ name = \"t\", better = \"lower\", exit-time = true }}]\n"
        );
        let study = parse(&study, "s.toml", Backends::NONE).unwrap();
        Plan::new(study, 1).unwrap()
    }

    fn stated(rules: &str) -> StudyTime {
        stated_time(&with_rules(&format!("blocks = 11\n{rules}")))
    }

    #[test]
    fn the_authors_estimate_is_scaled_to_all_blocks_and_limited_by_the_budget() {
        assert_eq!(stated("about-block-s = 15.0"), StudyTime::About { seconds: 180.0 });
        let cut = StudyTime::Budget { seconds: 60.0 };
        assert_eq!(stated("about-block-s = 15.0\nbudget-s = 60.0"), cut);
        let within = StudyTime::About { seconds: 60.0 };
        assert_eq!(stated("about-block-s = 5.0\nbudget-s = 600.0"), within);
    }

    #[test]
    fn without_an_estimate_the_time_limits_are_the_upper_bound() {
        // 12 blocks of the baseline twice and the other level, 10 s each.
        assert_eq!(stated(""), StudyTime::AtMost { seconds: 360.0 });
        assert_eq!(stated("budget-s = 60.0"), StudyTime::Budget { seconds: 60.0 });
    }

    #[test]
    fn more_blocks_decide_smaller_changes_and_too_few_decide_none() {
        let rows = decisions(&with_rules("blocks = 5"), 0).rows;
        assert_eq!((rows[0].blocks, rows[0].is_planned), (5, true));
        assert_eq!(rows[0].least_percent, [None; 3]);
        let least: Vec<f64> = rows[1..].iter().map(|row| row.least_percent[1].unwrap()).collect();
        assert!(least.windows(2).all(|pair| pair[1] < pair[0]), "{least:?}");
    }

    #[test]
    fn more_answers_need_more_blocks_and_a_primary_metric_fewer() {
        let fewest = |rules: &str, own| fewest_blocks(&with_rules(rules), own, 1);
        let one = fewest("blocks = 9", 0);
        assert!(one >= 6, "{one}");
        assert!(fewest("blocks = 9", 40) > one, "40 answers more");
        assert_eq!(fewest("blocks = 9\nprimary = \"w.t\"", 40), one);
        assert_eq!(fewest("blocks = 99", 0), one, "whatever is planned");
        assert_eq!(fewest("blocks = 9\nfacts = [\"w.t\"]", 1), one, "a fact is no answer");
    }

    #[test]
    fn an_interaction_is_an_answer_too() {
        let two = "blocks = 9\n[[factor]]\nname = \"u\"\nlevels = [1, 2]";
        let of = |rules: &str| level(&with_rules(rules), 0, 1).alpha();
        assert!((of("blocks = 9") / of(two) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn the_planned_number_of_blocks_has_one_row_among_the_standard_ones() {
        let rows = |rules: &str| -> Vec<(usize, bool)> {
            let rows = decisions(&with_rules(rules), 0).rows;
            rows.iter().map(|row| (row.blocks, row.is_planned)).collect()
        };
        let usual = [(6, false), (8, false), (12, true), (20, false), (40, false), (80, false)];
        assert_eq!(rows("blocks = 12"), usual);
        let found = rows("blocks = 100");
        assert_eq!((found.len(), found[6]), (7, (100, true)));
    }
}
