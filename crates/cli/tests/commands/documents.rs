//! Every kind of document is read by the commands that accept it, and by no others.

use std::fs;
use std::path::{Path, PathBuf};

use numalab_launch::scale::Manifest;
use numalab_record::bisect::BisectDocument;
use numalab_record::profile::Profile;
use numalab_record::self_test::SelfTest;
use numalab_record::study::{PlannedStudy, SettingList, ShownStudy, StudyList};
use numalab_record::system::{AcpiShown, BalancingProbed, Described, KnobList, MachineList};
use numalab_record::{Kind, Taken};
use numalab_results::advice::Advice;
use numalab_results::compare::document::RunComparison;
use numalab_results::explore::document::ExploreDocument;
use numalab_results::fleet::Analysis;
use numalab_results::health::Health;
use numalab_results::machine::document::ComparedMachine;
use numalab_results::program::document::EmulationDocument;
use numalab_results::run::document::RunDocument;
use numalab_results::samples::document::ComparedSamples;
use numalab_results::scaling::ScalingSummary;
use numalab_results::study::document::{StudyComparison, StudyResults};
use numalab_results::tiering::document::TieringDocument;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::command::{prints, run, stderr, stdout};
use crate::schemas;

/// Returns a result of numalab 0.1.0, when all documents had the schema `numalab/1`.
fn written_before(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/written-before").join(kind)
}

/// Makes a copy that a command may write to.
fn copied(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("there").map(|entry| entry.expect("readable").path()) {
        fs::copy(&entry, to.join(entry.file_name().expect("a name"))).expect("copied");
    }
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn results_written_before_each_kind_had_its_schema_are_read() {
    let place = tempfile::tempdir().expect("made");
    let [old_run, old_study] = ["run", "study"].map(written_before);
    let (old_run, old_study) = (path(&old_run), path(&old_study));
    let json = schemas::document(&prints(&["report", old_run, "--format", "json"]));
    assert_eq!(json["schema"], Kind::Run.schema());
    assert_eq!(json["cells"].as_array().expect("cells").len(), 2);
    let json = schemas::document(&prints(&["report", old_study, "--format", "json"]));
    assert_eq!(json["schema"], Kind::Study.schema());
    prints(&["compare", old_run, old_run]);
    prints(&["compare", old_study, old_study]);
    prints(&["report", path(&written_before("ranks"))]);
    fs::remove_file(written_before("ranks").join("report.md")).expect("just written");
    fs::remove_file(written_before("ranks").join("report.html")).expect("just written");
    let fleet = place.path().join("fleet");
    copied(&written_before("run"), &fleet.join("host1/latency-1"));
    assert!(prints(&["fleet", "collect", path(&fleet)]).contains("1 run"));
}

/// A directory of another kind is refused with its kind, and with the command that accepts it.
#[test]
fn a_directory_of_another_kind_names_the_command_that_takes_it() {
    let place = tempfile::tempdir().expect("made");
    let [a_run, a_study, a_scale] = ["run", "study", "scale"].map(|kind| place.path().join(kind));
    copied(&written_before("run"), &a_run);
    copied(&written_before("study"), &a_study);
    fs::create_dir(&a_scale).expect("made");
    fs::write(a_scale.join("scale.json"), "{\"schema\":\"numalab/scale-2\"}").expect("written");
    let (a_run, a_study, a_scale) = (path(&a_run), path(&a_study), path(&a_scale));
    for (arguments, held, reader) in [
        (&["study", "resume", a_run][..], "a run", "`numalab report DIR`"),
        (&["compare", a_run, a_scale], "a scaling run", "`numalab report DIR`"),
        (&["compare", a_run, a_study], "a study", "`numalab report"),
        (&["measure", "--resume", a_study], "a study", "`numalab report DIR`"),
        (&["measure", "--baseline", a_study, "--dry-run"], "a study", "`numalab report DIR`"),
        (&["fleet", "collect", a_run], "a run", "HOST/RUN/run.json"),
        (&["fleet", "collect", a_study], "a study", "HOST/RUN/run.json"),
    ] {
        let output = run(arguments);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(&format!("holds {held}")), "{arguments:?}: {message}");
        assert!(message.contains(reader), "{arguments:?}: {message}");
    }
}

/// A study among the runs of a fleet is reported by its kind; the others count.
/// Regression: the name that the documentation gives the JSON of a run is that of a part of a result.
#[test]
fn a_document_is_known_by_its_content_and_not_by_its_name() {
    let place = tempfile::tempdir().expect("made");
    let directory = place.path().join("result");
    copied(&written_before("run"), &directory);
    let text = prints(&["report", path(&directory), "--format", "json"]);
    let document = place.path().join("run.json");
    fs::write(&document, text).expect("written");
    assert!(prints(&["report", path(&document)]).contains("Caches: "));
    let part = run(&["report", path(&directory.join("run.json"))]);
    assert_eq!(part.status.code(), Some(2));
    assert!(stderr(&part).contains("is a part of the result in "), "{}", stderr(&part));
}

#[test]
fn a_study_among_the_runs_of_a_fleet_is_named_and_the_runs_are_collected() {
    let place = tempfile::tempdir().expect("made");
    copied(&written_before("run"), &place.path().join("host1/run"));
    copied(&written_before("study"), &place.path().join("host1/study"));
    let output = run(&["fleet", "collect", path(place.path())]);
    let message = stderr(&output);
    assert!(message.contains("host1/study: holds a study, expected a run"), "{message}");
    assert!(stdout(&output).contains("1 run"), "{message}");
}

fn schema_of<T: JsonSchema>(kind: Kind) -> (Kind, Value) {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    schema["title"] = json!(format!("{}: {kind}", kind.schema()));
    schema["properties"]["schema"] = json!({ "const": kind.schema() });
    let taken = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<Taken>()
        .to_value();
    let properties = schema["properties"].as_object_mut().expect("members");
    // In the plan of a study, the name is that of a number.
    properties.entry("taken").or_insert(taken);
    (kind, schema)
}

/// Returns the schema of every kind of document, generated from its type.
fn all_schemas() -> [(Kind, Value); 26] {
    [
        schema_of::<RunDocument<'_>>(Kind::Run),
        schema_of::<StudyResults<'_>>(Kind::Study),
        schema_of::<PlannedStudy>(Kind::StudyPlan),
        schema_of::<ShownStudy>(Kind::StudyDefinition),
        schema_of::<StudyList>(Kind::StudyList),
        schema_of::<SettingList>(Kind::StudySettings),
        schema_of::<RunComparison>(Kind::Comparison),
        schema_of::<StudyComparison>(Kind::StudyComparison),
        schema_of::<ComparedSamples>(Kind::SampleComparison),
        schema_of::<ComparedMachine>(Kind::MachineComparison),
        schema_of::<Manifest>(Kind::Scale),
        schema_of::<ScalingSummary<'_>>(Kind::Scaling),
        schema_of::<ExploreDocument<'_>>(Kind::Explore),
        schema_of::<Analysis>(Kind::Fleet),
        schema_of::<Health>(Kind::Health),
        schema_of::<KnobList>(Kind::Knobs),
        schema_of::<MachineList>(Kind::MachineList),
        schema_of::<BalancingProbed>(Kind::Probe),
        schema_of::<TieringDocument<'_>>(Kind::Tiering),
        schema_of::<SelfTest>(Kind::SelfTest),
        schema_of::<BisectDocument>(Kind::Bisect),
        schema_of::<Described>(Kind::Topology),
        schema_of::<AcpiShown>(Kind::Acpi),
        schema_of::<Advice>(Kind::Advice),
        schema_of::<Profile>(Kind::Profile),
        schema_of::<EmulationDocument<'_>>(Kind::Emulation),
    ]
}

/// `NUMALAB_SCHEMAS=write cargo test -p numalab --test commands documents::` regenerates them.
#[test]
fn schemas_are_those_of_the_types() {
    let all = all_schemas();
    // Documents of ranks from earlier versions are read, but no longer written.
    let mut written = Kind::ALL.iter().filter(|kind| **kind != Kind::Ranks);
    assert!(written.all(|kind| all.iter().any(|(known, _)| known == kind)));
    for (kind, schema) in all {
        let text = serde_json::to_string_pretty(&schema).expect("JSON") + "\n";
        if std::env::var_os("NUMALAB_SCHEMAS").is_some_and(|value| value == "write") {
            fs::write(schemas::file(kind), &text).expect("written");
        }
        let kept = fs::read_to_string(schemas::file(kind)).unwrap_or_default();
        assert!(kept == text, "{kind} is no longer as its schema says: NUMALAB_SCHEMAS=write");
    }
}

#[test]
fn the_output_and_files_of_ranks_follow_their_schemas() {
    let place = tempfile::tempdir().expect("made");
    let printed = prints(&[
        "latency",
        "--ranks",
        "1",
        "--size",
        "64K",
        "--iterations",
        "100",
        "--format",
        "json",
        "-o",
        path(place.path()),
    ]);
    let printed = schemas::document(&printed);
    let kept = fs::read_dir(place.path()).expect("results").next().expect("a run").expect("read");
    let report = prints(&["report", path(&kept.path()), "--format", "json"]);
    schemas::document(&report);
    let mut damaged = printed;
    damaged["launch"]["ranks"][0]["host"] = json!(1);
    assert!(!schemas::errors(Kind::Run, &damaged).is_empty(), "a schema that refuses nothing");
}
