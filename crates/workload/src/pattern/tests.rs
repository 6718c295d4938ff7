use super::*;
use proptest::prelude::*;

fn values(pattern: &str, text: &str) -> Vec<f64> {
    let found = Pattern::parse(pattern).unwrap().values_with_units("x", text).unwrap();
    found.into_iter().map(|(value, _)| value).collect()
}

#[test]
fn the_number_is_between_the_texts() {
    let log = "run 1\nTime elapsed: 12.5 s\nrun 2\nTime   elapsed:\t13 s\n";
    assert_eq!(values("Time elapsed: {seconds} s", log), [12.5, 13.0]);
    assert_eq!(values("{rps} requests per second", "\rGET: 1.5 requests per second,"), [1.5]);
    assert_eq!(values("x={}", "x=1 x=2\rx=3"), [1.0, 2.0, 3.0]);
    assert_eq!(values("({rate} MiB/sec)", "1024.00 MiB transferred (7896.54 MiB/sec)"), [7896.54]);
}

#[test]
fn texts_without_a_number_or_the_rest_of_the_pattern_do_not_match() {
    assert!(values("rps={}", "rps=-nan").is_empty());
    assert!(values("t: {} s", "t: 12 ms").is_empty());
    assert!(values("t: {}", "t:12").is_empty());
    assert!(values("{} s", "x12.5 s").is_empty());
}

#[test]
fn times_of_shells_and_of_gnu_time_are_in_the_unit_of_the_label() {
    assert_eq!(values("real {s}", "real\t0m1.004s\nreal\t1m2.5s\n"), [1.004, 62.5]);
    assert_eq!(values("real {ms}", "real\t0m1.004s"), [1004.0]);
    assert_eq!(values("{s}elapsed", "0.00user 0.01system 0:01.05elapsed 9%CPU"), [1.05]);
    assert_eq!(values("(h:mm:ss or m:ss): {s}", "time (h:mm:ss or m:ss): 1:00:01"), [3601.0]);
    let pattern = Pattern::parse("real {time}").unwrap();
    assert_eq!(pattern.values_with_units("x", "real 0m2s").unwrap(), [(2.0, "s")]);
    let error = Pattern::parse("at {MB}").unwrap().last("x", "at 0m2s").unwrap_err();
    assert_eq!(error.to_string(), "x is in `s`, expected `MB`");
}

/// Regression: a `nan` at the end gave the number of an earlier line, and those of a log were left out in
/// silence.
#[test]
fn a_place_without_a_number_is_counted_and_is_no_result() {
    let pattern = Pattern::parse("rps={}").unwrap();
    let progress = "rps=nan (overall: -nan)\nrps=7\nrps=-NaN\nrps=inf\nrps=nano\n";
    assert_eq!((values("rps={}", progress), pattern.undefined(progress)), (vec![7.0], 3));
    let error = pattern.last("x", progress).unwrap_err().to_string();
    assert_eq!(error, "x is \"inf\", expected a finite number");
    assert_eq!(pattern.last("x", "rps=nan\nrps=7\n").unwrap(), 7.0);
}

/// Regression: `IOPS=980` was better than `IOPS=12.3k`.
#[test]
fn prefixes_without_a_unit_multiply_the_number() {
    let log = "IOPS=12.3k, BW=48MiB/s\nIOPS=980\nIOPS=1.5M\nIOPS=2Ki\nIOPS=3 M\nIOPS=4Mx\n";
    assert_eq!(values("IOPS={}", log), [12_300.0, 980.0, 1.5e6, 2048.0, 3.0, 4.0]);
    assert_eq!(values("IOPS={k}", "IOPS=12.3k"), [12.3]);
    assert_eq!(values("IOPS={}k", "IOPS=12.3k"), [12.3]);
}

/// Regression: 12.5 usec and 1.2 msec were 12.5 and 1.2.
#[test]
fn numbers_of_a_row_have_the_unit_of_its_heading() {
    let log = "  lat (usec): min=1, avg=12.5, max=3\n  lat (msec): min=1, avg=1.2\n";
    assert_eq!(values("avg={us}", log), [12.5, 1200.0]);
    let pattern = Pattern::parse("avg={}").unwrap();
    let found = pattern.values_with_units("x", log).unwrap();
    assert_eq!(found, [(12.5, "usec"), (1.2, "msec")]);
    let other = pattern.values_with_units("x", "run (fast): avg=3\nrun (ms) avg=4\n");
    assert_eq!(other.unwrap(), [(3.0, ""), (4.0, "")]);
}

#[test]
fn a_unit_alone_matches_lines_that_are_a_number_and_a_unit() {
    let log = "# run 3 of 5\n12.5 us\n 0.013 ms \n11\nrun 7: 12 us\n";
    assert_eq!(values("{us}", log), [12.5, 13.0, 11.0]);
    assert_eq!(values("{s}", "0m1.5s\n1:01\n"), [1.5, 61.0]);
}

#[test]
fn a_pattern_has_one_place_and_some_text() {
    let places = |text| match Pattern::parse(text) {
        Err(PatternError::Places { count, .. }) => count,
        other => panic!("{other:?}"),
    };
    assert_eq!(places("Time: s"), 0);
    assert_eq!(places("{a} of {b}"), 2);
    assert_eq!(places("{a"), 0);
    assert_eq!(places("}a{"), 0);
    assert!(matches!(Pattern::parse(" { } "), Err(PatternError::NoText { .. })));
    let minutes = Pattern::parse("real 0m{s}s").unwrap_err().to_string();
    assert!(minutes.ends_with("for the whole time, such as 'real {s}'"), "{minutes}");
}

#[test]
fn the_unit_is_the_word_behind_the_number_unless_the_pattern_continues() {
    let units = |pattern: &str, text: &'static str| -> Vec<&'static str> {
        let found = Pattern::parse(pattern).unwrap().values_with_units("x", text).unwrap();
        found.into_iter().map(|(_, unit)| unit).collect()
    };
    let log = "bw = 50 GB/s\nbw = 7.5us avg\nbw = 3 (avg)\nbw = 4\nbw = 5 %, worst\n";
    assert_eq!(units("bw = {x}", log), ["GB/s", "us", "", "", "%"]);
    assert_eq!(units("x={}", "x=1 y=2 x=3 x"), ["", "x"]);
    assert_eq!(units("t: {} s", "t: 12 s wall"), [""]);
}

/// Regression: 1.5 us and 1600 ns differed by a factor of 1000.
#[test]
fn values_are_in_the_unit_of_the_label() {
    let pattern = Pattern::parse("took {us}").unwrap();
    let found = pattern.values_with_units("x", "took 1.5 us\ntook 1600 ns\ntook 2 ms\ntook 3\n");
    assert_eq!(found.unwrap(), [(1.5, "us"), (1.6, ""), (2000.0, ""), (3.0, "")]);
    let found = pattern.values_with_units("x", "took 0 ns\ntook 1 us\n");
    assert_eq!(found.unwrap(), [(0.0, ""), (1.0, "us")], "0 ns is 0 us");
    let error = pattern.last("x", "took 5 MB/s").unwrap_err();
    assert_eq!(error.to_string(), "x is in `MB/s`, expected `us`");
}

/// Regression: `real 0m1.004s` was 0 seconds, and `1,997 MB/s` was 1.
#[test]
fn a_number_that_continues_after_the_match_is_refused() {
    for (pattern, text, word) in [
        ("Started: {}", "Started: 10:01:30", "10:01:30"),
        ("rate = {MB/s}", "rate = 1,997 MB/s", "1,997"),
        ("rate = {MB/s}", "rate = 1'997 MB/s", "1'997"),
        ("rate = {MB/s}", "rate = 1\u{202f}997 MB/s", "1\u{202f}997"),
        ("rate = {MB/s}", "rate = 1 997 MB/s", "1 997"),
        ("cycles = {}", "cycles = 12 345.5", "12 345"),
        ("cycles = {}", "cycles = 0x3e8", "0x3e8"),
        ("cycles = {}", "cycles = 0xff", "0xff"),
        ("version {}", "version 6.1.0", "6.1.0"),
        ("on {}", "on 2026-11-29", "2026-11-29"),
    ] {
        let error = Pattern::parse(pattern).unwrap().last("x", text).unwrap_err();
        let expected = OutputError::PartOfNumber { what: "x".to_owned(), word: word.to_owned() };
        assert_eq!(error, expected, "{text}");
        assert!(error.to_string().contains("without separators (LC_ALL=C)"), "{error}");
    }
    assert_eq!(values("minutes {m}m", "minutes 0m1.004s"), [0.0], "the pattern goes on");
    assert_eq!(values("row,{x},", "row,1,2"), [1.0]);
    let columns = "x: 1  300\nx: 1 30\nx: 1.5 300\nx: 1200 300\nx: 1 300MB\nx: 0 300\n";
    assert_eq!(values("x: {}", columns), [1.0, 1.0, 1.5, 1200.0, 1.0, 0.0]);
    assert_eq!(values("n = {}", "n = 12, m = 3; n = 1.5x, n = 7. n = 8:"), [12.0, 1.5, 7.0, 8.0]);
}

/// Regression: of `1,266,370,178 cycles:u`, as perf stat prints it, 178 was taken.
#[test]
fn a_number_that_begins_before_the_match_is_refused() {
    for (text, word) in [
        ("     1,266,370,178      cycles:u", "1,266,370,178"),
        ("1'997 cycles:u", "1'997"),
        ("1\u{202f}997 cycles:u", "1\u{202f}997"),
        ("at 0:34 cycles:u", "0:34"),
        ("1 266 370 178 cycles:u", "370 178"),
    ] {
        let error = Pattern::parse("{} cycles:u").unwrap().last("x", text).unwrap_err();
        let expected = OutputError::EndOfNumber { what: "x".to_owned(), word: word.to_owned() };
        assert_eq!(error, expected, "{text}");
    }
    assert_eq!(values("{} ms", "took: 5 ms, then,6 ms;7 ms =8 ms"), [5.0, 6.0, 7.0, 8.0]);
    assert_eq!(values("{} ms", "took 5  300 ms\nrun-x2 300 ms\n7 30 ms"), [300.0, 300.0, 30.0]);
    assert_eq!(values(",{} ms", "1,5 ms"), [5.0], "the pattern begins before it");
}

proptest! {
    #[test]
    fn a_number_in_its_place_is_found(value in -1e12f64..1e12, noise in "[a-z \n]{0,40}") {
        let pattern = Pattern::parse("Rate now: {x} steps/s").unwrap();
        let text = format!("{noise}Rate now:  {value} steps/s{noise}");
        prop_assert_eq!(pattern.values_with_units("x", &text), Ok(vec![(value, "")]));
    }

    #[test]
    fn any_pattern_and_text_give_an_answer(pattern in "\\PC{0,20}", text in "\\PC{0,60}") {
        if let Ok(pattern) = Pattern::parse(&pattern) {
            let _ = pattern.values_with_units("x", &text);
        }
    }
}
