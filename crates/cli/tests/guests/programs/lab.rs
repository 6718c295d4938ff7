//! The emulator's plugin, and the programs that run with it, built once for all tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::programs::built::{built, or_not_run};

pub(crate) struct Lab {
    /// Directory of the built programs; a static is never dropped.
    pub directory: PathBuf,
    pub plugin: PathBuf,
}

/// Builds the plugin and the programs of `programs`, once for all tests.
pub(crate) fn lab() -> Option<&'static Lab> {
    static LAB: OnceLock<Option<Lab>> = OnceLock::new();
    LAB.get_or_init(|| or_not_run(build())).as_ref()
}

fn build() -> Result<Lab, String> {
    if Command::new("qemu-x86_64").arg("--version").output().is_err() {
        return Err("qemu-x86_64 is missing: apt install qemu-user".to_owned());
    }
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = manifest.join("../../target");
    let cargo = Command::new(env!("CARGO"))
        .args(["build", "-q", "--release", "-p", "numalab-emulator", "--target-dir"])
        .arg(&target)
        .current_dir(manifest)
        .status();
    assert!(cargo.expect("cargo runs").success());
    let directory = built()?;
    Ok(Lab { directory, plugin: target.join("release/libnumalab_emulator.so") })
}

impl Lab {
    /// Returns the path of a program.
    pub(crate) fn program(&self, name: &str) -> String {
        self.directory.join(name).to_string_lossy().into_owned()
    }
}

/// Returns the line of `programs/answers.c` that ends in a comment with this word.
pub(crate) fn line_of(word: &str) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/answers.c");
    let text = fs::read_to_string(source).expect("the source");
    let at = text.lines().position(|line| line.ends_with(&format!("/* {word} */")));
    format!("answers.c:{}", at.expect("the word stands there") + 1)
}
