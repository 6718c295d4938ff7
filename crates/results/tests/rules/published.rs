//! Figures that somebody published: how they are read, and whether gains follow from them.

use numalab_results::samples::{Published, PublishedError};
use numalab_stats::Direction;

fn read(text: &str) -> Result<Published, PublishedError> {
    Published::parse(text, Direction::LowerIsBetter)
}

/// Whether the one row's gain follows.
fn follows(direction: Direction, row: &str) -> bool {
    let published = Published::parse(row, direction).unwrap();
    published.follows(&published.rows[0])
}

#[test]
fn a_row_has_its_figures_the_last_digit_and_the_gain_with_its_decimals() {
    let text =
        "What, Baseline ,CANDIDATE,gain\n\n# dbench\nops, 4.20 ,3.9,+7.69 %\nboot,38500,36000\n";
    let rows = read(text).unwrap().rows;
    let [ops, boot] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((ops.what.as_str(), ops.baseline, ops.candidate), ("ops", 4.2, 3.9));
    assert_eq!((ops.half_digit, ops.gain), (0.005, Some((7.69, 2))));
    assert_eq!((boot.half_digit, boot.gain), (50.0, None), "zeros at the end do not count");
}

#[test]
fn the_finest_place_of_both_figures_is_that_of_the_row() {
    let half = |row: &str| read(row).unwrap().rows[0].half_digit;
    assert_eq!(half("a,12,12.5"), 0.05);
    assert_eq!(half("a,100,9"), 0.5);
    assert!((half("a,1.5e3,2e3") - 50.0).abs() < 1e-9, "a tenth of a thousand");
    assert!((half("a,1.50E-3,2") - 5e-6).abs() < 1e-15);
    assert_eq!(half("a,1,1e1"), 0.5);
}

#[test]
fn names_of_columns_are_left_out_at_the_top_only() {
    assert_eq!(read("what,baseline,candidate\na,1,2\n").unwrap().rows.len(), 1);
    let error = read("a,1,2\nwhat,baseline,candidate\n").unwrap_err();
    assert_eq!(error, PublishedError::Number { line: 2, text: "baseline".to_owned() });
    let short = read("what,baseline\n").unwrap_err();
    assert_eq!(short, PublishedError::Columns { line: 1, text: "what,baseline".to_owned() });
}

#[test]
fn damaged_rows_are_refused_with_their_line_and_the_expected_form() {
    let said = |text: &str| read(text).unwrap_err().to_string();
    let columns =
        "expected `what,baseline,candidate` or `what,baseline,candidate,gain`, the gain in percent";
    assert_eq!(said("a,1,2\nb,1\n"), format!("line 2: `b,1`: {columns}"));
    assert_eq!(said("a,1,2,3,4"), format!("line 1: `a,1,2,3,4`: {columns}"));
    let number = "expected a number above 0, or a gain such as +7.8";
    for wrong in ["0", "-1", "inf", "NaN", "", "1,2x"] {
        let text = format!("# first\na,{wrong},2\n");
        let shown = wrong.split(',').next().unwrap();
        let shown = if shown == "1" { "2x" } else { shown };
        assert_eq!(said(&text), format!("line 2: `{shown}`: {number}"), "{text}");
    }
    assert_eq!(said("a,1,2,much"), format!("line 1: `much`: {number}"));
    assert_eq!(said("a,1,2,inf%"), format!("line 1: `inf%`: {number}"));
    let empty = format!("no rows: {}", columns.replacen("`what", "lines `what", 1));
    assert_eq!(said("# nothing\n\n"), empty);
    assert_eq!(said("what,baseline,candidate\n"), empty);
}

#[test]
fn a_gain_of_times_is_the_inverse_of_that_of_rates() {
    let published = |direction| Published::parse("a,100,80", direction).unwrap();
    let times = published(Direction::LowerIsBetter);
    assert!((times.gain(&times.rows[0]) - 25.0).abs() < 1e-9);
    let rates = published(Direction::HigherIsBetter);
    assert!((rates.gain(&rates.rows[0]) + 20.0).abs() < 1e-9);
}

#[test]
fn the_range_of_a_gain_is_that_of_all_figures_that_round_to_the_published_ones() {
    let published = Published::parse("a,4.0,5.0", Direction::HigherIsBetter).unwrap();
    let range = published.gain_range(&published.rows[0]);
    assert!((range.lo - 100.0 * (4.95 / 4.05 - 1.0)).abs() < 1e-9, "{range:?}");
    assert!((range.hi - 100.0 * (5.05 / 3.95 - 1.0)).abs() < 1e-9, "{range:?}");
    let times = Published::parse("a,4.0,5.0", Direction::LowerIsBetter).unwrap();
    let range = times.gain_range(&times.rows[0]);
    assert!((range.lo - 100.0 * (3.95 / 5.05 - 1.0)).abs() < 1e-9, "{range:?}");
    assert!(range.lo < range.hi);
}

#[test]
fn a_gain_follows_where_some_figures_round_to_all_three() {
    let rates = Direction::HigherIsBetter;
    assert!(follows(rates, "a,4.0,5.0,25"));
    assert!(follows(rates, "a,4.0,5.0"), "without a gain nothing is claimed");
    // 22.2 to 27.8: one that is written to a whole percent reaches from 27.5 to 28.5.
    assert!(follows(rates, "a,4.0,5.0,28"));
    assert!(!follows(rates, "a,4.0,5.0,28.0"), "28.0 begins at 27.95");
    assert!(follows(rates, "a,4.0,5.0,22"));
    assert!(!follows(rates, "a,4.0,5.0,21"));
    assert!(!follows(Direction::LowerIsBetter, "a,4.0,5.0,25"), "it is a loss");
    assert!(follows(Direction::LowerIsBetter, "a,4.0,5.0,-20.0%"));
}
