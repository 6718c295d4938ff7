//! One row per step and size.

use numalab_page::rows::{Holds, Rows, optional};

use crate::scaling::StepFigures;

pub(super) fn rows(figures: &[StepFigures]) -> Rows {
    let row = |of: &StepFigures| {
        let domains: Vec<String> = of.domains.iter().map(u32::to_string).collect();
        let values = [of.mean, of.median, of.deviation, of.min, of.max, of.p90, of.p99, of.range];
        let mut row = vec![
            of.file.clone(),
            of.mode.name().to_owned(),
            domains.join(" "),
            of.serial.to_string(),
            of.metric.name().to_owned(),
            of.metric.unit().to_owned(),
            of.ranks.to_string(),
            of.size_bytes.to_string(),
        ];
        row.extend(values.map(|value| format!("{value:.4}")));
        row.push(optional(of.efficiency.map(|share| format!("{share:.4}"))));
        row.push(optional(of.baseline_ranks));
        row
    };
    columns().rows(figures.iter().map(row))
}

pub(crate) fn columns() -> Rows {
    Rows::new("scaling")
        .labels(["file", "mode", "domains", "serial"])
        .with(Holds::Metric, ["metric"])
        .with(Holds::Unit, ["unit"])
        .labels(["ranks", "size_bytes"])
        .values(
            "",
            [
                ("mean", "the mean of the ranks"),
                ("median", "the median of the ranks"),
                ("deviation", "the standard deviation between the ranks"),
                ("min", "the lowest value of a rank"),
                ("max", "the highest value of a rank"),
                ("p90", "the 90th percentile of the ranks"),
                ("p99", "the 99th percentile of the ranks"),
                ("range", "the highest value less the lowest"),
            ],
        )
        .values(
            "x",
            [("efficiency", "the speed relative to that of the fewest ranks, 1 for no loss")],
        )
        .values("ranks", [("baseline_ranks", "the number of ranks that the efficiency refers to")])
}
