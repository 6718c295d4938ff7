use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use numalab_record::study::Treatment;
use numalab_workload::WorkloadSpec;

use super::*;

const WORKLOAD: &str = "name = \"w\"\ncommand = [\"prog\", \"--n={n}\", \"{mode}\", \"{other}\"]\n\
    [[metric]]\nname = \"rate\"\nbetter = \"higher\"\npattern = \"rate {x/s}\"\n";

fn workload() -> Workload {
    let spec: WorkloadSpec = toml::from_str(WORKLOAD).unwrap();
    spec.resolve().unwrap()
}

fn settings() -> BTreeMap<String, Setting> {
    let text = |text: &str| Setting::Text(text.to_owned());
    BTreeMap::from([
        ("n".to_owned(), Setting::Integer(4)),
        ("mode".to_owned(), text("near")),
        ("thp.enabled-2".to_owned(), Setting::Bool(true)),
    ])
}

fn ran(status: i32, stdout: &str) -> Ran {
    Ran {
        command: "prog".to_owned(),
        status: ExitStatus::from_raw(status),
        stdout: stdout.to_owned(),
        stderr: "no room".to_owned(),
        dropped_bytes: 0,
        took: Duration::from_millis(1500),
        left: Vec::new(),
    }
}

#[test]
fn settings_are_filled_in_everywhere_and_other_braces_stay() {
    let settings = settings();
    for (word, expected) in [
        ("{n}", "4"),
        ("--n={n},{n}", "--n=4,4"),
        ("{mode}{n}", "near4"),
        ("{other}", "{other}"),
        ("{ n }", "{ n }"),
        ("n", "n"),
        ("", ""),
    ] {
        assert_eq!(filled(word, &settings), expected);
    }
}

#[test]
fn a_command_gets_settings_in_its_words_and_all_of_them_in_its_environment() {
    let workload = workload();
    let treatment = Treatment { name: "t".to_owned(), levels: vec![0], settings: settings() };
    let request = SampleRequest { treatment: &treatment, workload: &workload, seed: 77 };
    let command = command(&request, &Scratch::default(), Counting::Off);
    assert_eq!(command.get_program(), "prog");
    let words: Vec<_> = command.get_args().collect();
    assert_eq!(words, ["--n=4", "near", "{other}"]);
    let variables: BTreeMap<String, String> = command
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value?.to_str()?.to_owned())))
        // Root's PATH is without what others may write to.
        .filter(|(name, _)| name != "PATH")
        .collect();
    let expected = [
        ("NUMALAB_SEED", "77"),
        ("NUMALAB_N", "4"),
        ("NUMALAB_MODE", "near"),
        ("NUMALAB_THP_ENABLED_2", "true"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(variables, BTreeMap::from(expected));
}

#[test]
fn a_program_that_a_level_names_is_needed_under_each_treatment() {
    let spec = WORKLOAD.replace("\"prog\"", "\"{mode}\"");
    let spec: WorkloadSpec = toml::from_str(&spec).unwrap();
    let workloads = [spec.resolve().unwrap()];
    let treatment = |mode: &str| Treatment {
        name: mode.to_owned(),
        levels: vec![0],
        settings: BTreeMap::from([("mode".to_owned(), Setting::Text(mode.to_owned()))]),
    };
    let treatments = ["./a", "./b", "./a"].map(treatment);
    let scope = Scope { treatments: &treatments, workloads: &workloads };
    let [workload] = &super::workloads(&scope)[..] else { panic!("one workload") };
    let programs: Vec<&str> = workload.tools.iter().map(|tool| tool.program.as_str()).collect();
    assert_eq!(programs, ["./a", "./b"]);
}

#[test]
fn perf_counts_around_the_command_on_request() {
    let workload = workload();
    let treatment = Treatment { name: "t".to_owned(), levels: vec![0], settings: settings() };
    let request = SampleRequest { treatment: &treatment, workload: &workload, seed: 1 };
    let scratch = Scratch::make(&workload, true).unwrap();
    let command = command(&request, &scratch, Counting::Scheduler);
    assert_eq!(command.get_program(), "perf");
    let words: Vec<String> =
        command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    assert_eq!(words[..4], ["stat", "-x", ",", "-o"]);
    assert_eq!(words[4], scratch.file("perf-stat.csv"));
    let expected = ["-e", "cpu-migrations,context-switches", "--", "prog", "--n=4"];
    assert_eq!(words[5..10], expected);
}

#[test]
fn metrics_are_read_from_a_workloads_output() {
    let readings = read(&workload(), &ran(0, "rate 12.5 x/s\n")).unwrap();
    let [reading] = &readings[..] else { panic!("{readings:?}") };
    assert_eq!((reading.quantity.metric.as_str(), reading.value), ("rate", 12.5));
}

#[test]
fn a_workload_that_failed_or_printed_nothing_is_refused_by_name() {
    let refused = |ran: &Ran| read(&workload(), ran).unwrap_err().to_string();
    let exited = refused(&ran(3 << 8, "rate 12.5 x/s\n"));
    assert!(exited.starts_with("workload w: ") && exited.contains("no room"), "{exited}");
    let killed = refused(&ran(9, "rate 12.5 x/s\n"));
    assert!(killed.starts_with("workload w: ") && killed.contains('9'), "{killed}");
    let silent = refused(&ran(0, "nothing\n"));
    assert!(silent.starts_with("workload w: ") && silent.contains("rate"), "{silent}");
}

#[test]
fn a_workload_that_leaves_work_behind_has_not_ended() {
    let left = vec!["sleep (12)".to_owned(), "sh (13)".to_owned()];
    let error = read(&workload(), &Ran { left, ..ran(0, "rate 1 x/s\n") }).unwrap_err();
    assert_eq!(
        error.to_string(),
        "workload w: `prog` left sleep (12) running, now terminated: expected a program that \
         completes its work before it exits"
    );
}

#[test]
fn a_program_ends_with_a_code_or_a_signal() {
    let of = |raw| ending(ExitStatus::from_raw(raw));
    assert_eq!(of(0), Ending::Exited(0));
    assert_eq!(of(7 << 8), Ending::Exited(7));
    assert_eq!(of(15), Ending::Signalled(15));
}

#[test]
fn a_command_that_did_not_run_is_lacking_interrupted_or_failed() {
    let workload = workload();
    let program = "prog".to_owned();
    let absent = failed(&workload, &CommandError::NotFound { program: program.clone() });
    assert_eq!(absent, BackendError::missing(&workload, "prog"));
    let stopped = failed(&workload, &CommandError::Interrupted { program });
    assert_eq!(stopped, BackendError::Interrupted);
    let late = CommandError::TimedOut {
        command: "prog --n=4".to_owned(),
        limit: Duration::from_secs(5),
        left: Vec::new(),
    };
    let error = failed(&workload, &late).to_string();
    assert_eq!(error, "workload w: `prog --n=4` did not end within 5 s");
}

#[test]
fn without_counts_there_are_no_counters() {
    let scratch = Scratch::make(&workload(), true).unwrap();
    assert_eq!(scheduler_counters(&scratch), BTreeMap::new());
    let line = "5,,cpu-migrations,100,100.00,,\n<not counted>,,context-switches,0,0.00,,\n";
    std::fs::write(scratch.file(COUNTS), line).unwrap();
    assert_eq!(scheduler_counters(&scratch), BTreeMap::from([("cpu-migrations".to_owned(), 5.0)]));
}
