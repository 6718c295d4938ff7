use std::fs;
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

use super::*;

fn commit() -> Commit {
    Commit { hash: "0123456789abcdef0123456789abcdef01234567".to_owned(), ..Commit::default() }
}

/// A build script, a commit's tree, and a directory for kept files.
struct Lab {
    directory: TempDir,
    build: Build,
}

impl Lab {
    fn new(script: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("build.sh");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["tree", "kept"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        Self { directory, build: Build::Script(path) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn run(&self) -> Result<Built, BisectError> {
        let interrupt = Interrupt::never();
        self.build.run(&commit(), &self.path("tree"), &self.path("kept"), &interrupt)
    }
}

#[test]
fn the_last_line_that_a_script_prints_is_the_file_in_the_commits_tree() {
    let lab = Lab::new("echo building; echo x > image; echo image; echo noise >&2");
    assert_eq!(lab.run().unwrap(), Built::File(lab.path("tree").join("image")));
}

#[test]
fn a_file_elsewhere_is_named_by_its_absolute_path() {
    let lab = Lab::new("echo x > \"$NUMALAB_BUILD/vmlinuz\"; echo \"$NUMALAB_BUILD/vmlinuz\"");
    assert_eq!(lab.run().unwrap(), Built::File(lab.path("kept").join("vmlinuz")));
}

#[test]
fn a_script_knows_its_commit() {
    let lab = Lab::new("echo x > \"$NUMALAB_COMMIT\"; echo \"$NUMALAB_COMMIT\"");
    assert_eq!(lab.run().unwrap(), Built::File(lab.path("tree").join(commit().hash)));
}

#[test]
fn a_commit_that_does_not_build_is_skipped_with_the_reason() {
    for (script, reason) in [
        ("exit 125", "its script reports this (exit 125)"),
        ("echo no rule >&2; exit 2", "exit 2: no rule"),
        ("echo first >&2; echo last >&2; exit 124", "exit 124: last"),
        ("exit 1", "exit 1: "),
    ] {
        assert_eq!(Lab::new(script).run().unwrap(), Built::Skipped(reason.to_owned()), "{script}");
    }
}

#[test]
fn a_build_ends_the_search_in_the_cases_of_git_bisect_run() {
    for (script, reason) in [
        ("exit 126", "exit 126: "),
        ("echo gone >&2; exit 127", "exit 127: gone"),
        ("exit 255", "exit 255: "),
        ("kill -9 $$", "signal 9"),
    ] {
        let error = Lab::new(script).run().unwrap_err();
        let message = format!("the build of commit {} was aborted: {reason}", commit().short());
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn a_build_that_names_no_file_is_refused_with_its_output() {
    for (script, printed) in [("true", ""), ("echo nothing", "nothing"), ("echo .", ".")] {
        let error = Lab::new(script).run().unwrap_err();
        let message = format!(
            "the last line of the build of commit {} is {printed:?}: expected the kernel's path",
            commit().short()
        );
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn a_missing_script_ends_the_search() {
    let lab = Lab { build: Build::Script("/no/such/script".into()), ..Lab::new("true") };
    let message = lab.run().unwrap_err().to_string();
    assert!(message.contains("was aborted: ") && message.contains("/no/such/script"), "{message}");
}

#[test]
fn an_interrupt_ends_a_build() {
    let lab = Lab::new("exec sleep 600");
    let interrupt = Interrupt::never();
    interrupt.request();
    let ended = lab.build.run(&commit(), &lab.path("tree"), &lab.path("kept"), &interrupt);
    let error = ended.unwrap_err();
    assert!(matches!(error, BisectError::Backend(crate::BackendError::Interrupted)), "{error}");
}
