use super::*;
use crate::{Backends, parse};

#[test]
fn upcoming_treatments_are_announced_in_the_order_of_the_visits() {
    let text = r#"
        name = "s"
        question = "q?"
        [rules]
        blocks = 3
        [[factor]]
        name = "cpus"
        levels = [1, 2, 4]
        [[workload]]
        name = "w"
        command = ["true"]
        metric = [{ name = "t", better = "lower", exit-time = true }]
    "#;
    let plan = Plan::new(parse(text, "s.toml", Backends::NONE).unwrap(), 5).unwrap();
    let names = |from, is_done: fn(Cell) -> bool| {
        let visits = upcoming(&plan, from, is_done).into_iter();
        let treatments = visits.map(|(_, visit)| &plan.treatments()[visit.treatment]);
        treatments.map(|treatment| treatment.name.clone()).collect::<Vec<_>>()
    };
    let of_block = |block| {
        let visits = plan.visits(block).into_iter();
        visits.map(|visit| plan.treatments()[visit.treatment].name.clone()).collect::<Vec<_>>()
    };
    let all: Vec<String> = (1..plan.blocks()).flat_map(of_block).collect();
    assert_eq!(names(1, |_| false), all);
    let left: Vec<String> = [0, 2, 3].into_iter().flat_map(of_block).collect();
    assert_eq!(names(0, |cell| cell.0 == 1), left);
    assert_eq!(names(0, |_| true), Vec::<String>::new());
}
