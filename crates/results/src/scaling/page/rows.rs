//! One row per step and size.

use numalab_page::rows::{Field, Holds, Rows};

use crate::scaling::StepFigures;

pub(super) fn rows(figures: &[StepFigures]) -> Rows {
    let row = |of: &StepFigures| {
        let domains: Vec<String> = of.domains.iter().map(u32::to_string).collect();
        let values = [of.mean, of.median, of.deviation, of.min, of.max, of.p90, of.p99, of.range];
        let mut row = vec![
            Field::from(of.file.as_str()),
            of.mode.name().into(),
            domains.join(" ").into(),
            of.serial.to_string().into(),
            of.metric.name().into(),
            of.metric.unit().into(),
            of.ranks.to_string().into(),
            of.size_bytes.to_string().into(),
        ];
        let rounded = |value| Field::rounded(value, 4);
        row.extend(values.map(rounded));
        row.push(of.efficiency.map(rounded).into());
        row.push(of.baseline_ranks.into());
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
