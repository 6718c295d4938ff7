//! Bisections from outside: the commit named, and the builds before that.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use numalab_record::Kind;
use serde_json::Value;
use tempfile::TempDir;

use crate::{code, schemas};

/// Commits after the good one.
const COMMITS: usize = 24;

/// A study of a shell script with an explicit cost, which varies with the seed of the sample and
/// the commit; `{kernel}` is the file that the build printed.
const STUDY: &str = r#"
name = "cost"
question = "What does it cost?"
[rules]
primary = "w.cost"
margin-percent = 1.0
[[factor]]
name = "kernel"
levels = ["a", "b"]
[[workload]]
name = "w"
command = ["sh", "{kernel}"]
timeout-s = 60
[[workload.metric]]
name = "cost"
better = "lower"
pattern = "cost = {ns}"
"#;

/// Builds with the result that the commit's files give.
const BUILD: &str = r#"#!/bin/sh
[ -d "$NUMALAB_BUILD" ] || exit 200
how=$(cat how)
[ "$how" = good ] || { echo "it is $how" >&2; exit "$(cat code)"; }
cat > "$NUMALAB_BUILD/kernel" <<END
[ $(cat cost) != NaN ] || exit 3
seed=\$(printf %s "\$NUMALAB_SEED" | tail -c 6)
awk "BEGIN { srand(\$seed + 7919 * $(cat number)); rand()
             printf \"cost = %.6f ns\\n\", $(cat cost) * (1 + (rand() - 0.5) / 100) }"
END
echo building; echo "$NUMALAB_BUILD/kernel"
"#;

/// A repository with commits of these costs, numbered from 0, and the exit codes of their builds.
struct Lab {
    directory: TempDir,
}

impl Lab {
    fn new(commits: impl Iterator<Item = (f64, i32)>) -> Self {
        let lab = Self { directory: tempfile::tempdir().expect("a directory") };
        let tree = lab.path("tree");
        fs::create_dir(&tree).expect("made");
        lab.git(&["init", "--quiet"]);
        for (number, (cost, code)) in commits.enumerate() {
            let how = if code == 0 { "good" } else { "broken" };
            for (name, text) in [
                ("cost", cost.to_string()),
                ("how", how.to_owned()),
                ("code", code.to_string()),
                ("number", number.to_string()),
            ] {
                fs::write(tree.join(name), text).expect("written");
            }
            lab.git(&["add", "."]);
            lab.git(&["commit", "--quiet", "-m", &format!("change {number}")]);
            lab.git(&["tag", &format!("c{number}")]);
        }
        fs::write(lab.path("cost.toml"), STUDY).expect("written");
        let build = lab.path("build.sh");
        fs::write(&build, BUILD).expect("written");
        fs::set_permissions(&build, fs::Permissions::from_mode(0o755)).expect("a program");
        lab
    }

    /// Creates a repository with a cost 5 % higher from `first_bad` on.
    fn planted(first_bad: usize) -> Self {
        Self::new((0..=COMMITS).map(|n| (if n >= first_bad { 105.0 } else { 100.0 }, 0)))
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    fn git(&self, arguments: &[&str]) {
        let identity = ["user.name=A", "user.email=a@b.org", "commit.gpgsign=false"];
        let mut command = Command::new("git");
        command.current_dir(self.path("tree"));
        identity.iter().for_each(|setting| {
            command.args(["-c", setting]);
        });
        assert!(command.args(arguments).status().expect("git").success(), "{arguments:?}");
    }

    fn run(&self, more: &[&str]) -> Output {
        let (tree, build) = (self.path("tree"), self.path("build.sh"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_numalab"));
        command.args([
            "study",
            "bisect",
            "cost.toml",
            "-q",
            "--good",
            "c0",
            "--build",
            path(&build),
        ]);
        command.args(["--tree", path(&tree), "--format", "json"]).args(more);
        command.current_dir(self.directory.path()).stdin(Stdio::null());
        command.output().expect("numalab starts")
    }

    /// Returns the result of a search up to the last commit.
    fn finds(&self, code: i32) -> Value {
        self.finds_with(&[], code)
    }

    fn finds_with(&self, more: &[&str], code: i32) -> Value {
        let output = self.run(&[&["--bad", "HEAD"], more].concat());
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{out}{err}");
        let document = schemas::document(&out);
        assert_eq!(document["schema"], Kind::Bisect.schema());
        document
    }
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn a_change_is_found_wherever_it_is_in_the_builds_that_halving_needs() {
    for first_bad in [1, 12, 24] {
        let found = Lab::planted(first_bad).finds(0);
        let name = &found["answer"]["commit"]["subject"];
        assert_eq!(*name, format!("change {first_bad}"), "{found}");
        assert!(found["judged"].as_array().expect("commits").len() <= 5, "{found}");
    }
}

#[test]
fn nothing_is_named_where_nothing_changed_and_no_commit_between_is_built() {
    let lab = Lab::planted(COMMITS + 1);
    let planned = lab.run(&["--bad", "HEAD", "--samples", "5", "--dry-run"]);
    let planned = String::from_utf8_lossy(&planned.stdout).into_owned();
    assert!(planned.contains("with 3 to 5 samples each"), "{planned}");
    let found = lab.finds(4);
    assert_eq!(found["answer"]["kind"], "not-worse");
    assert_eq!(found["judged"].as_array().expect("commits").len(), 0);
}

#[test]
fn commits_that_do_not_build_or_run_are_passed_over() {
    let cost = |n: usize| if n >= 9 { 105.0 } else { 100.0 };
    let code = |n: usize| match n {
        12 => 125,
        6 => 1,
        _ => 0,
    };
    let found = Lab::new((0..=COMMITS).map(|n| (cost(n), code(n)))).finds(0);
    assert_eq!(found["answer"]["commit"]["subject"], "change 9", "{found}");
    let passed = |side: &str| {
        let all = found["judged"].as_array().expect("commits").iter();
        all.filter(|judged| judged["side"][side].is_string()).count()
    };
    assert!(passed("not-built") >= 1, "{found}");
    // The commits about the change cannot be distinguished; the result must be one of them.
    let broken = |n: usize| if (8..=10).contains(&n) { 125 } else { 0 };
    let found = Lab::new((0..=COMMITS).map(|n| (cost(n), broken(n)))).finds(0);
    let names: Vec<&str> = found["answer"]["commits"]
        .as_array()
        .expect("several")
        .iter()
        .filter_map(|commit| commit["subject"].as_str())
        .collect();
    for n in 8..=11 {
        assert!(names.contains(&format!("change {n}").as_str()), "{names:?}");
    }
    assert_eq!(names.len(), 4, "{names:?}");
}

#[test]
fn a_commit_with_a_failing_program_is_skipped_like_one_that_does_not_boot() {
    let cost = |n: usize| match n {
        12 => f64::NAN,
        n if n >= 9 => 105.0,
        _ => 100.0,
    };
    let found = Lab::new((0..=COMMITS).map(|n| (cost(n), 0))).finds(0);
    assert_eq!(found["answer"]["commit"]["subject"], "change 9", "{found}");
    let first = &found["judged"][0];
    assert!(first["side"]["not-run"].is_string(), "{first}");
}

#[test]
fn a_script_that_cannot_go_on_ends_the_search() {
    for code in [127, 200] {
        let output = Lab::new((0..=2).map(|n| (100.0, if n == 2 { code } else { 0 })))
            .run(&["--bad", "HEAD"]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(&format!("was aborted: exit {code}: it is broken")), "{error}");
    }
}

#[test]
fn the_users_tree_is_left_alone_and_the_results_have_a_mail() {
    let lab = Lab::planted(5);
    fs::write(lab.path("tree").join("cost"), "edited").expect("written");
    lab.finds(0);
    assert_eq!(fs::read_to_string(lab.path("tree/cost")).expect("there"), "edited");
    let listed = Command::new("git")
        .args(["worktree", "list"])
        .current_dir(lab.path("tree"))
        .output()
        .expect("git");
    assert_eq!(String::from_utf8_lossy(&listed.stdout).lines().count(), 1);
    let results = fs::read_dir(lab.path("results")).expect("there").next().expect("one");
    let results = results.expect("readable").path();
    let mail = fs::read_to_string(results.join("mail.txt")).expect("a mail");
    assert!(mail.starts_with("To: A <a@b.org>\nSubject: [REGRESSION] cost +"), "{mail}");
    let page = fs::read_to_string(results.join("report.md")).expect("a report");
    assert!(page.contains("cost has been worse since"), "{page}");
    let mut again = Command::new(env!("CARGO_BIN_EXE_numalab"));
    let again = again.args(["report", path(&results), "--format", "md"]).output().expect("starts");
    assert!(String::from_utf8_lossy(&again.stdout).contains("cost has been worse since"));
}

#[test]
fn revisions_that_are_not_there_or_do_not_follow_each_other_are_bad_input() {
    let lab = Lab::planted(2);
    for (more, words) in [
        (["--bad", "nowhere"], "nowhere"),
        (["--bad", "c0"], "expected a descendant of --good"),
        (["--bad", "c1^"], "expected a descendant of --good"),
    ] {
        let output = lab.run(&more);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(words), "{error}");
        assert!(!lab.path("results").exists());
    }
}

#[test]
fn a_study_that_does_not_use_the_build_and_a_tree_that_is_not_there_are_bad_input() {
    let lab = Lab::planted(1);
    let refused = |more: &[&str], words: &str| {
        let output = lab.run(&[&["--bad", "HEAD", "--treatment", "kernel=a"], more].concat());
        let error = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(words), "{error}");
    };
    let (tree, away) = (lab.path("tree"), lab.path("away"));
    fs::rename(&tree, &away).expect("moved");
    refused(&[], "tree: No such file or directory");
    fs::rename(&away, &tree).expect("moved back");
    fs::write(lab.path("cost.toml"), STUDY.replace("{kernel}", "cost.sh")).expect("written");
    refused(&[], "workload w does not use what is built from a commit: expected {kernel}");
}

#[test]
fn a_dry_run_says_how_many_commits_are_built_and_writes_nothing() {
    let lab = Lab::planted(2);
    let output = lab.run(&["--bad", "HEAD", "--dry-run"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("24 commits after") && text.contains("at most 5 are built"), "{text}");
    assert!(!lab.path("results").exists());
}

/// The default build runs a kernel's makefile, here one of a few lines.
#[test]
fn a_kernels_tree_is_configured_and_built_and_its_image_is_the_one_make_names() {
    let lab = Lab::planted(2);
    let makefile = "defconfig:\n\t@echo CONFIG_X=y > $(O)/.config\nolddefconfig:\n\t@grep -q \
                    CONFIG_ACPI_HMAT=y $(O)/.config\nbzImage:\n\t@cp cost $(O)/image\nimage_name:\n\t\
                    @echo image\n";
    fs::write(lab.path("tree/Makefile"), makefile).expect("written");
    lab.git(&["add", "Makefile"]);
    lab.git(&["commit", "--quiet", "-m", "a makefile"]);
    lab.git(&["tag", "made"]);
    fs::write(lab.path("tree/cost"), "107").expect("written");
    lab.git(&["commit", "--quiet", "-a", "-m", "slower"]);
    let words = ["\"sh\", \"{kernel}\"", "\"sed\", \"s/.*/cost = & ns/\", \"{kernel}\""];
    let study = STUDY.replace(words[0], words[1]);
    fs::write(lab.path("cost.toml"), study.replace("1.0", "0.5")).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_numalab"));
    command.args([
        "study",
        "bisect",
        "cost.toml",
        "--good",
        "made",
        "--bad",
        "HEAD",
        "--format",
        "json",
    ]);
    let output = command
        .args(["--tree", "tree"])
        .current_dir(lab.directory.path())
        .output()
        .expect("starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}{error}");
    assert!(text.contains("\"subject\": \"slower\""), "{text}");
}

/// A kernel of a few bytes that prints its cost.
const RAW_STUDY: &str = r#"
name = "raw"
question = "What does it cost?"
[backend.kernel]
file = "kernel.elf"
where = "plain"
emulate = "1"
cpus = 1
memory = "64M"
[rules]
primary = "w.cost"
[[factor]]
name = "word"
levels = ["a", "b"]
[[workload]]
name = "w"
command = ["kernel"]
timeout-s = 60
[[workload.metric]]
name = "cost"
better = "lower"
pattern = "cost = {lines}"
"#;

/// Each sample is a real boot.
#[test]
fn kernels_are_booted_and_one_that_does_not_boot_is_passed_over() {
    let lab = Lab::new(std::iter::once((100.0, 0)));
    let kernels = [
        code::elf("cost = 100 lines\n", code::Then::Exit(0)),
        code::elf("cost = 100.5 lines\n", code::Then::Exit(0)),
        code::elf("cost = 100 lines\n", code::Then::TripleFault),
        code::elf("cost = 120 lines\n", code::Then::Exit(0)),
        code::elf("cost = 121 lines\n", code::Then::Exit(0)),
    ];
    for (number, kernel) in kernels.iter().enumerate() {
        fs::write(lab.path("tree/kernel.elf"), kernel).expect("written");
        lab.git(&["add", "."]);
        lab.git(&["commit", "--quiet", "-m", &format!("kernel {number}")]);
    }
    fs::write(lab.path("cost.toml"), RAW_STUDY).expect("written");
    fs::write(lab.path("kernel.elf"), &kernels[0]).expect("written");
    fs::write(lab.path("build.sh"), "#!/bin/sh\necho kernel.elf\n").expect("written");
    lab.git(&["tag", "-f", "c0", "HEAD~4"]);
    let found = lab.finds_with(&["--treatment", "word=a"], 0);
    let names: Vec<&str> = found["answer"]["commits"]
        .as_array()
        .expect("several")
        .iter()
        .filter_map(|commit| commit["subject"].as_str())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(["kernel 2", "kernel 3"].iter().all(|name| names.contains(name)), "{names:?}");
    let judged = found["judged"].as_array().expect("commits");
    assert!(judged.iter().any(|judged| judged["side"]["not-run"].is_string()), "{found}");
}
