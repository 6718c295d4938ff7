use numalab_record::study::{Quantity, Setting};

use super::*;

fn gave(value: f64) -> Observation {
    let readings = vec![Quantity::lower("time", "s").at(value)];
    Observation { readings, ..Observation::default() }
}

fn treatment(name: &str, settings: &[(&str, &str)]) -> Treatment {
    let text =
        |(name, value): &(&str, &str)| ((*name).to_owned(), Setting::Text((*value).to_owned()));
    let settings = settings.iter().map(text).collect();
    Treatment { name: name.to_owned(), levels: Vec::new(), settings }
}

fn workload() -> Workload {
    numalab_workload::WorkloadSpec::of_tool("sysbench-cpu").resolve().unwrap()
}

/// Returns a machine of two nodes with two cpus each, with runs that are already known.
fn emulation(ran: &[(&str, &[f64])]) -> Emulation {
    let settings = serde_json::json!({ "emulate": "2", "cpus": 4 });
    let settings = settings.as_object().unwrap().clone();
    let spec = BackendSpec { kind: KIND.name.to_owned(), settings };
    let mut of = Emulation::open(&spec, &Interrupt::never()).unwrap();
    let runs = |values: &[f64]| values.iter().copied().map(gave).collect();
    let named = |name: &str| (name.to_owned(), workload().name);
    of.ran = ran.iter().map(|(name, values)| (named(name), runs(values))).collect();
    of.baseline = "first".to_owned();
    of
}

fn repeated(ran: &[(&str, &[f64])], name: &str) -> Option<Observation> {
    emulation(ran).repeated(&(name.to_owned(), workload().name))
}

#[test]
fn runs_that_show_whether_results_repeat_are_made_at_once() {
    let upcoming = ["first", "1", "2", "1", "first"].map(|name| treatment(name, &[]));
    let first = treatment("first", &[]);
    let needed = |of: &Treatment| if of.name == "first" { 2 } else { 1 };
    let names = |first, at_once, lacks: &dyn Fn(&Treatment) -> usize| -> Vec<String> {
        let chosen = together(first, &upcoming, at_once, lacks);
        chosen.into_iter().map(|of| of.name.clone()).collect()
    };
    assert_eq!(names(&first, 1, &needed), ["first"]);
    assert_eq!(names(&first, 2, &needed), ["first", "first"]);
    assert_eq!(names(&first, 9, &needed), ["first", "first", "1", "2"]);
    let second = treatment("2", &[]);
    let lacks = |of: &Treatment| usize::from(of.name != "first");
    assert_eq!(names(&second, 2, &lacks), ["2", "1"]);
    assert_eq!(names(&second, 9, &|_| 0), ["2"]);
}

#[test]
fn a_run_that_ended_ahead_is_the_sample_of_its_own_treatment() {
    let mut of = emulation(&[]);
    let run = ("1".to_owned(), workload().name);
    of.ahead = [(run, vec![Ok(gave(1.0)), Ok(gave(2.0))])].into();
    let (treatment, workload) = (treatment("1", &[("nodes", "7")]), workload());
    let request = SampleRequest { treatment: &treatment, workload: &workload, seed: 0 };
    for expected in [1.0, 2.0] {
        assert_eq!(of.sample(&request).unwrap().readings, gave(expected).readings);
    }
    assert!(of.sample(&request).is_err(), "it has to be run, on a node that is not there");
}

#[test]
fn runs_that_were_made_before_are_the_first_samples_of_the_unchanged_program() {
    let mut of = emulation(&[]);
    let text = "total number of events: 7\n".to_owned();
    let ran = |took| Ran {
        command: "solver".to_owned(),
        status: std::process::ExitStatus::default(),
        stdout: text.clone(),
        stderr: String::new(),
        dropped_bytes: 0,
        took,
        left: Vec::new(),
    };
    of.earlier = [3, 5].map(|seconds| ran(Duration::from_secs(seconds))).into();
    let spec = numalab_workload::WorkloadSpec {
        command: Some(vec!["solver".to_owned()]),
        metric: vec![numalab_workload::MetricSpec::of_time()],
        ..Default::default()
    };
    let workload = spec.resolve().unwrap();
    let other = treatment("1", &[("nodes", "7")]);
    let request = SampleRequest { treatment: &other, workload: &workload, seed: 0 };
    assert!(of.sample(&request).is_err(), "another one has to be run, on a node that is not there");
    let first = treatment("first", &[("nodes", "7")]);
    let request = SampleRequest { treatment: &first, ..request };
    for seconds in [3.0, 5.0] {
        let readings = of.sample(&request).unwrap().readings;
        assert_eq!(readings[0].value, seconds);
    }
    assert!(of.sample(&request).is_err());
}

#[test]
fn a_treatment_runs_once_if_the_program_is_deterministic() {
    let once: &[(&str, &[f64])] = &[("first", &[2.0]), ("1", &[1.0])];
    assert_eq!(repeated(once, "1"), None, "nothing is known of repeats yet");
    let twice: &[(&str, &[f64])] = &[("first", &[2.0, 2.0]), ("1", &[1.0])];
    let known = repeated(twice, "1").expect("known");
    assert_eq!(known.readings, gave(1.0).readings);
    assert_eq!(known.evidence[0].what, REPEATED);
    assert_eq!(repeated(twice, "2"), None, "it never ran");
    let differs: &[(&str, &[f64])] = &[("first", &[2.0, 2.000_000_1]), ("1", &[1.0])];
    assert_eq!(repeated(differs, "1"), None);
}

#[test]
fn placements_are_the_emulators_threads_and_policy() {
    let placed = |settings: &[(&str, &str)]| {
        let placed = emulation(&[]).imitated.placed(&treatment("t", settings).settings);
        placed.map_err(|error| error.to_string()).map(|of| {
            let policy = of.policy.map(|policy| policy.to_string()).unwrap_or_default();
            (of.threads, policy, of.huge_always)
        })
    };
    let of = |settings| placed(settings).unwrap();
    assert_eq!(of(&[]), (vec![0, 2, 1, 3], String::new(), false));
    let bound = [("nodes", "1"), ("policy", "bind:1")];
    assert_eq!(of(&bound), (vec![2, 3], "bind.1".to_owned(), false));
    assert_eq!(of(&[("thread-order", "pack")]).0, [0, 1, 2, 3]);
    assert_eq!(of(&[("thread-order", "3,0-1")]).0, [3, 0, 1]);
    assert_eq!(of(&[("policy", "users")]).1, "users");
    let weighted = [("policy", "weighted"), ("interleave_weight_node1", "2")];
    assert_eq!(of(&weighted).1, "interleave.0.1.1");
    assert!(of(&[("thp_enabled", "always")]).2);
    for (setting, words) in [
        (("nodes", "7"), "setting nodes: 7: expected some of 0,1"),
        (("policy", "bind:7"), "setting policy: 7: expected some of 0,1"),
        (("thread-order", "9"), "setting thread-order: 9: expected"),
        (("thp_enabled", "never"), "setting thp_enabled: never: expected always or madvise"),
    ] {
        let error = placed(&[setting]).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_model_is_the_machine_that_it_describes() {
    let of = emulation(&[]).imitated;
    let spec = emulation_of(&of.model).unwrap();
    let read = Emulation::open(&spec, &Interrupt::never()).unwrap().imitated;
    assert_eq!(read.model, of.model);
}
