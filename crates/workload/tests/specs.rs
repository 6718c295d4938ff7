//! Workloads as users write them: the accepted ones, and the errors for the rest.

use numalab_workload::{Ending, Finished, KernelNeed, Workload, WorkloadSpec, catalogue};
use proptest::prelude::*;

fn resolve(toml: &str) -> Result<Workload, String> {
    let spec: WorkloadSpec = toml::from_str(toml).map_err(|error| error.to_string())?;
    spec.resolve().map_err(|error| error.to_string())
}

#[track_caller]
fn refused(toml: &str, words: &[&str]) {
    let message = resolve(toml).expect_err(toml);
    for word in words {
        assert!(message.contains(word), "{toml}: no {word:?} in: {message}");
    }
}

#[test]
fn invalid_descriptions_are_refused_with_the_expected_form() {
    refused("tool = 'perf-sched-pip'", &["perf-sched-pip", "expected one of", "sysbench-mutex"]);
    refused("name = 'a'", &["\"a\"", "either `tool` or `command`", "neither"]);
    refused("tool = 'dbench'\ncommand = ['x']", &["found both"]);
    refused("command = []", &["a command without a program"]);
    refused("command = ['x']", &["\"x\"", "[[workload.metric]]"]);
    refused("tool = 'dbench'\narguements = []", &["unknown field `arguements`", "arguments"]);
    refused("tool = 'dbench'\npackage = 'x'", &["`package` is only valid with `command`"]);
    refused("tool = 'dbench'\ntimeout-s = 0", &["timeout-s is 0"]);
    refused("tool = 'dbench'\nmetrics = ['speed']", &["\"dbench\"", "no metric \"speed\""]);
    refused("command = ['x']\narguments = []", &["`arguments` is only valid with `tool`"]);
    let metric = |rest: &str| format!("command = ['x']\nmetric = [{{ name = 'm', {rest} }}]");
    refused(&metric("better = 'lower'"), &["\"m\"", "`pattern`, `regex`, `json` and `exit-time`"]);
    refused(&metric("better = 'smaller', exit-time = true"), &["smaller", "lower"]);
    refused(&metric("better = 'lower', pattern = 'no place'"), &["0 places", "{seconds}"]);
    refused(&metric("better = 'lower', regex = 'no group'"), &["0 groups", "([0-9.]+)"]);
    refused(&metric("better = 'lower', regex = '(a)', exit-time = true"), &["one of `pattern`"]);
    refused("tool = 'sysbench-cpu'\nstdin = 'x'", &["`stdin` is only valid with `command`"]);
    refused(&metric("better = 'lower', json = 'a/b'"), &["\"a/b\"", "/results/0/rate"]);
    let twice = "command = ['x']\nmetric = [{ name = 'm', better = 'lower', exit-time = true }, \
                 { name = 'm', better = 'lower', exit-time = true }]";
    refused(twice, &["\"m\" is given twice"]);
}

#[test]
fn every_tool_of_the_catalogue_is_a_workload_with_packages() {
    for entry in catalogue::all() {
        let workload = WorkloadSpec::of_tool(entry.name).resolve().unwrap();
        assert_eq!(workload.name, entry.name);
        assert!(workload.timeout_s > 0, "{}", entry.name);
        let own = workload.command[0] == "numalab";
        assert_eq!(own, workload.tools.is_empty(), "{}: {:?}", entry.name, workload.tools);
        for tool in &workload.tools {
            assert!(tool.remedy().starts_with("install it: apt-get install "), "{tool:?}");
        }
    }
}

#[test]
fn the_default_commands_are_those_of_the_numa_balancing_study() {
    let commands = [
        ("perf-sched-pipe", "perf bench -f simple sched pipe"),
        ("perf-sched-messaging", "perf bench -f simple sched messaging -l 10000"),
        ("perf-mem-memset", "perf bench -f simple mem memset -s 4GB -l 5 -f default"),
        ("perf-futex-wake", "perf bench -f simple futex wake -s -t 1024 -w 1"),
        ("sysbench-cpu", "sysbench cpu --time=10 --threads=4 --cpu-max-prime=10000 run"),
        ("sysbench-memory", "sysbench memory --memory-access-mode=rnd --threads=4 run"),
        ("sysbench-threads", "sysbench threads --threads=4 run"),
        ("sysbench-mutex", "sysbench mutex --mutex-num=1 --threads=32 run"),
    ];
    for (tool, command) in commands {
        let workload = WorkloadSpec::of_tool(tool).resolve().unwrap();
        assert_eq!(workload.command.join(" "), command);
    }
}

#[test]
fn a_workload_on_huge_pages_has_the_number_it_needs() {
    let toml = "tool = 'sysbench-memory'\n\
                arguments = ['--memory-hugetlb=on', '--memory-block-size=2M']";
    let need = KernelNeed::HugePages { page_kib: 2048, pages: 3 };
    assert_eq!(resolve(toml).unwrap().kernel_needs, [need]);
}

#[test]
fn placeholders_in_a_command_line_are_replaced() {
    let words = ["numalab", "-D", "{scratch}/x", "numalab"].map(str::to_owned);
    let filled = Workload::filled_in(&words, "/run/s", "/usr/bin/numalab");
    assert_eq!(filled, ["/usr/bin/numalab", "-D", "/run/s/x", "numalab"]);
    let redis = WorkloadSpec::of_tool("redis").resolve().unwrap();
    assert!(redis.needs_scratch());
    assert!(!WorkloadSpec::of_tool("sysbench-cpu").resolve().unwrap().needs_scratch());
}

#[test]
fn a_users_command_is_timed_and_read_by_pattern_expression_and_pointer() {
    let toml = "name = 'mine'\ncommand = ['./x']\nstdin = 'in'\nmetric = [\n\
        { name = 'last', better = 'lower', regex = '^rate ([0-9])$', from = 'stderr' },\n\
        { name = 'rate', better = 'higher', pattern = 'rate {steps/s}', from = 'stderr' },\n\
        { name = 'wall', better = 'lower', exit-time = true },\n\
        { name = 'deep', unit = 'J', better = 'lower', json = '/a/0' }]";
    let workload = resolve(toml).unwrap();
    let finished = Finished {
        ending: Ending::Exited(0),
        stdout: "{\"a\": [\"7.5\"]}",
        stderr: "rate 1\nrate 2\n",
        elapsed_s: 3.25,
    };
    let readings = workload.read(&finished).unwrap();
    let found: Vec<(&str, &str, f64)> = readings
        .iter()
        .map(|reading| {
            (reading.quantity.metric.as_str(), reading.quantity.unit.as_str(), reading.value)
        })
        .collect();
    assert_eq!(
        found,
        [("last", "", 2.0), ("rate", "steps/s", 2.0), ("wall", "s", 3.25), ("deep", "J", 7.5)]
    );
    let declared = workload.metrics().unwrap();
    let declared: Vec<String> = declared.into_iter().map(|metric| metric.metric).collect();
    assert_eq!(declared, ["last", "rate", "wall", "deep"]);
    assert_eq!(workload.stdin, Some("in".into()));
    let killed = Finished { ending: Ending::Signalled(9), ..finished };
    let error = workload.read(&killed).unwrap_err().to_string();
    assert_eq!(error, "`./x`: ended by signal 9: rate 2");
}

#[test]
fn a_workload_survives_being_sent_as_json() {
    for entry in catalogue::all() {
        let workload = WorkloadSpec::of_tool(entry.name).resolve().unwrap();
        let json = serde_json::to_string(&workload).unwrap();
        assert_eq!(serde_json::from_str::<Workload>(&json).unwrap(), workload);
    }
}

fn any_output() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "# function '",
        "default'",
        "GB/sec",
        "Total time:",
        "\n",
        " ",
        "nan",
        "inf",
        "1.5",
        "-3",
        "Wokeup ",
        " in ",
        "ms",
        "Averaged ",
        "main,",
        ",",
        "secs",
        "total-speed",
        "Throughput ",
        "MB/sec",
        "max_latency=",
        "\"test\",\"rps\"",
        "\"GET\",\"",
        "\"",
        "stress-ng: metrc: [1] vm",
        "Latency (ms):",
        "95th percentile:",
        "total time:",
        "total number of events:",
        "(",
        "{",
        "\"schema\":\"numalab/run-2\"",
        "}",
        "[",
        "]",
        "\"readings\":",
        "1e400",
    ]);
    prop::collection::vec(words, 0..30).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn any_output_gives_finite_values_or_an_error(text in any_output()) {
        for entry in catalogue::all() {
            let workload = WorkloadSpec::of_tool(entry.name).resolve().unwrap();
            let workload = Workload { wanted: Vec::new(), ..workload };
            let ending = Ending::Exited(0);
            let finished = Finished { ending, stdout: &text, stderr: &text, elapsed_s: 1.0 };
            if let Ok(readings) = workload.read(&finished) {
                prop_assert!(readings.iter().all(|reading| reading.value.is_finite()));
            }
        }
    }
}

/// Errors in the words are reported before the server is used.
#[test]
fn unknown_words_for_redis_hot_are_refused() {
    let usual = ["keys=10", "bytes=8", "hot=2", "share=90", "requests=5"];
    let refused = |at: usize, word: &str| {
        let mut arguments = usual.map(str::to_owned).to_vec();
        arguments[at] = word.to_owned();
        let spec =
            WorkloadSpec { arguments: Some(arguments), ..WorkloadSpec::of_tool("redis-hot") };
        let command = spec.resolve().unwrap().command;
        let run = std::process::Command::new(&command[0]).args(&command[1..]).output().unwrap();
        assert_eq!(run.status.code(), Some(2), "{word}");
        String::from_utf8(run.stderr).unwrap()
    };
    for (at, word, expected) in [
        (0, "keys=ten", "redis-hot: keys=ten: expected keys=, bytes=, hot=, share= or requests=N"),
        (0, "keys=1;reboot", "redis-hot: keys=1;reboot: expected"),
        (0, "keys=0", "redis-hot: keys=0: expected"),
        (0, "size=10", "redis-hot: size=10: expected"),
        (0, "hot=1", "redis-hot: expected keys=N"),
        (2, "hot=11", "redis-hot: hot=11, share=90: expected at most keys=10, and 100"),
        (3, "share=101", "redis-hot: hot=2, share=101: expected at most keys=10, and 100"),
    ] {
        let message = refused(at, word);
        assert!(message.starts_with(expected), "{word}: {message}");
    }
}
