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

fn check(settings: &[(&str, &str)], workload: Workload) -> Result<Vec<Notice>, BackendError> {
    let (treatments, workloads) = (treatments(settings), [workload]);
    let scope = Scope { treatments: &treatments, workloads: &workloads };
    let is_knob = |name: &str| name == "a_knob" || find("", name).is_some();
    check_names(&scope, BACKENDS.kind("host").unwrap(), is_knob)
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

/// Returns a user's own program with these arguments.
fn own(arguments: &str) -> Workload {
    let spec = format!(
        "name = \"w\"\ncommand = [\"prog\"{arguments}]\n[[metric]]\nname = \"t\"\nbetter = \"lower\"\n\
         exit-time = true\n"
    );
    toml::from_str::<WorkloadSpec>(&spec).unwrap().resolve().unwrap()
}

#[test]
fn a_custom_program_may_read_its_environment_and_a_notice_names_the_variable() {
    let (setting, variable) = ("the-colour".to_owned(), "NUMALAB_THE_COLOUR".to_owned());
    let notices = check(&[("the-colour", "0"), ("the-colour", "1")], own("")).unwrap();
    assert_eq!(notices, [Notice::OnlyInEnvironment { setting, variable }]);
    let mentioned = check(&[("the-colour", "0")], own(", \"echo $NUMALAB_THE_COLOUR\"")).unwrap();
    assert_eq!(mentioned, []);
}

#[test]
fn a_misspelt_knob_or_placement_is_refused_for_custom_programs_too() {
    for (name, meant) in [
        ("swapiness", "swappiness"),
        ("numa_balancng", "numa_balancing"),
        ("node", "nodes"),
        ("enviroment", "environment"),
    ] {
        let error = check(&[(name, "0")], own("")).unwrap_err().to_string();
        assert!(error.ends_with(&format!("did you mean `{meant}`?")), "{error}");
        check(&[(name, "0")], own(&format!(", \"{{{name}}}\""))).unwrap();
    }
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
