use numalab_study::StudyPlace;
use numalab_workload::WorkloadSpec;

use super::*;
use crate::BACKENDS;

fn treatments(settings: &[(&str, &str)]) -> Vec<Treatment> {
    let one = |(name, value): &(&str, &str)| Treatment {
        name: format!("{name}={value}"),
        levels: vec![0],
        settings: BTreeMap::from([((*name).to_owned(), Setting::Text((*value).to_owned()))]),
    };
    settings.iter().map(one).collect()
}

fn tool() -> Workload {
    WorkloadSpec::of_tool("sysbench-cpu").resolve().unwrap()
}

fn check(settings: &[(&str, &str)], workload: Workload) -> Result<(), BackendError> {
    let (treatments, workloads) = (treatments(settings), [workload]);
    let scope = Scope { treatments: &treatments, workloads: &workloads };
    check_names(&scope, BACKENDS.kind("host").unwrap(), |name| name == "a_knob")
}

#[test]
fn a_level_sets_a_backend_setting_a_knob_or_a_word_of_a_command() {
    check(&[("cpus", "0")], tool()).unwrap();
    check(&[("a_knob", "1")], tool()).unwrap();
    let mut uses = tool();
    uses.command.push("--size={size}".to_owned());
    check(&[("size", "4K")], uses).unwrap();
}

#[test]
fn an_unused_setting_is_refused_with_a_similar_name() {
    let error = check(&[("cpus", "0"), ("cpu", "0")], tool()).unwrap_err();
    let BackendError::BadInput { place, found, expected } = &error else { panic!("{error}") };
    assert_eq!(*place, StudyPlace::Setting("cpu".to_owned()));
    assert_eq!(found, "no such setting");
    let end = "a knob of `numalab knobs list`, or {cpu} in a workload; did you mean `cpus`?";
    assert!(expected.ends_with(end), "{expected}");
}

#[test]
fn a_users_own_program_may_read_its_environment() {
    let spec = "name = \"w\"\ncommand = [\"prog\"]\n[[metric]]\nname = \"t\"\nbetter = \"lower\"\n\
                exit-time = true\n";
    let spec: WorkloadSpec = toml::from_str(spec).unwrap();
    check(&[("anything", "0")], spec.resolve().unwrap()).unwrap();
}

#[test]
fn a_setting_is_a_knob_only_with_its_prefix() {
    assert!(find("", "no_such_knob_at_all").is_none());
    assert!(find("host.", "thp_enabled").is_none(), "the prefix is not there");
    let knob = find("host.", "host.thp_enabled").expect("a knob by its name");
    assert_eq!(knob.name(), "thp_enabled");
}

#[test]
fn without_knobs_nothing_is_set_or_restored() {
    let mut none = KnobSettings::prepare("", &treatments(&[("cpus", "0")])).unwrap();
    assert_eq!(none.apply(&treatments(&[("cpus", "0")])[0].settings).unwrap(), []);
    assert!(none.tuning.is_none());
    none.restore().unwrap();
}
