//! Figures as rows for other programs.

use insta::assert_snapshot;
use numalab_page::rows::{Field, Holds, Rows};

fn row<const N: usize>(labels: [&str; 4], values: [Field; N], text: &str) -> Vec<Field> {
    let labels = labels.map(Field::from).into_iter();
    labels.chain(values).chain([text.into()]).collect()
}

fn cells() -> Rows {
    Rows::new("run cell")
        .labels(["cell", "node"])
        .with(Holds::Metric, ["metric"])
        .with(Holds::Unit, ["unit"])
        .values("", [("median", "the median")])
        .values("%", [("half_width_percent", "half of the interval")])
        .values("bytes", [("size_bytes", "the size")])
        .texts(["state"])
        .rows([
            row(
                ["latency/1M", "0", "latency", "ns"],
                [92.5.into(), 0.8.into(), Field::Count(1_048_576)],
                "precise",
            ),
            row(
                ["copy \"a\"\n\\b", "", "bandwidth", "GB/s"],
                [12.5.into(), Field::Empty, Field::Count(4096)],
                "=1+1, \"so\"",
            ),
            row(
                ["core", "1", "frequency", "GHz"],
                [f64::NAN.into(), f64::INFINITY.into(), Field::Count(0)],
                "-",
            ),
        ])
}

#[test]
fn csv_quotes_what_must_be_quoted_and_no_text_is_a_formula() {
    assert_snapshot!(cells().csv());
}

#[test]
fn openmetrics_are_in_base_units_with_one_family_for_each_metric() {
    assert_snapshot!(cells().openmetrics().expect("it has values"));
}

#[test]
fn rows_without_values_are_no_metrics() {
    let texts = Rows::new("knob").labels(["name"]).texts(["state"]).rows([vec!["thp", "always"]]);
    assert_eq!(texts.openmetrics(), None);
    assert_eq!(texts.csv(), "name,state\nthp,always\n");
}

#[test]
fn units_are_converted_and_named_and_counts_have_none() {
    let metrics = |unit: &'static str, name: &'static str| {
        Rows::new("row")
            .values(unit, [(name, "it")])
            .rows([vec![Field::Count(250)]])
            .openmetrics()
            .expect("a value")
    };
    for (unit, name, line) in [
        ("ns", "wait_ns", "numalab_row_wait_seconds{} 0.00000025"),
        ("us", "wait", "numalab_row_wait_seconds{} 0.00025"),
        ("ms", "wait", "numalab_row_wait_seconds{} 0.25"),
        ("s", "wait_s", "numalab_row_wait_seconds{} 250"),
        ("min", "wait", "numalab_row_wait_seconds{} 15000"),
        ("MB/s", "rate", "numalab_row_rate_bytes_per_second{} 250000000"),
        ("KiB", "size", "numalab_row_size_bytes{} 256000"),
        ("GB/s", "rate", "numalab_row_rate_bytes_per_second{} 250000000000"),
        ("GHz", "clock", "numalab_row_clock_hertz{} 250000000000"),
        ("%", "share_percent", "numalab_row_share_ratio{} 2.5"),
        ("x", "gain", "numalab_row_gain_ratio{} 250"),
        ("bytes", "size_bytes", "numalab_row_size_bytes{} 250"),
        ("pages/s", "moved_pages", "numalab_row_moved_pages_per_second{} 250"),
        ("hosts", "size_pages", "numalab_row_size_pages{} 250"),
    ] {
        let text = metrics(unit, name);
        assert!(text.lines().any(|of| of == line), "{unit}: no `{line}` in {text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
    }
}

#[test]
fn a_missing_value_is_an_empty_field_and_a_tiny_one_keeps_its_digits() {
    let fields = [Some(1.5), None, Some(3.2e-9), Some(0.0)].map(Field::from);
    assert_eq!(fields.map(|field| field.to_string()), ["1.5", "", "3.2e-9", "0"]);
    assert_eq!(Field::rounded(1.234_56, 3), Field::Number(1.235));
}
