//! The emulator's plugin and the programs of this directory, built once for all tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

pub(crate) struct Lab {
    /// Where the programs are, of the build: a static is never dropped.
    pub directory: PathBuf,
    pub plugin: PathBuf,
}

/// The plugin, and the programs of `programs`; once for all tests.
pub(crate) fn lab() -> Option<&'static Lab> {
    static LAB: OnceLock<Option<Lab>> = OnceLock::new();
    let made = LAB.get_or_init(|| match build() {
        Ok(lab) => Some(lab),
        Err(why) if std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some() => panic!("{why}"),
        Err(why) => {
            eprintln!("NOT RUN: {why}");
            None
        }
    });
    made.as_ref()
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
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs");
    fs::create_dir_all(&directory).expect("made");
    let programs = [
        ("placement", "cc", "-static", "placement"),
        ("answers", "cc", "-g", "answers"),
        ("stream", "cc", "-fopenmp", "stream"),
        ("births", "cc", "-static", "births"),
        ("children", "cc", "-g", "children"),
        ("cpus", "cc", "-g", "cpus"),
        ("omp", "cc", "-fopenmp", "omp"),
        ("overlap", "cc", "-static", "overlap"),
        ("overlap", "aarch64-linux-gnu-gcc", "-static", "overlap-aarch64"),
    ];
    for (source, compiler, how, name) in programs {
        let compiled = Command::new(compiler)
            .args(["-O1", "-pthread", how, "-o"])
            .arg(directory.join(name))
            .arg(manifest.join(format!("tests/programs/{source}.c")))
            .status();
        if !compiled.is_ok_and(|status| status.success()) {
            let packages = "apt install gcc libc6-dev gcc-aarch64-linux-gnu libc6-dev-arm64-cross";
            return Err(format!("{compiler} cannot compile a program: {packages}"));
        }
    }
    inputs(&directory);
    Ok(Lab { directory, plugin: target.join("release/libnumalab_emulator.so") })
}

/// What programs of the distribution work on.
fn inputs(directory: &Path) {
    let write = |name: &str, text: &str| {
        fs::write(directory.join(name), text).expect("it can be written");
    };
    let numbers = (0_u64..20_000).map(|at| at.wrapping_mul(6_364_136_223_846_793_005) >> 40);
    write("text", &numbers.map(|number| format!("{number} is a line\n")).collect::<String>());
    let function = |at| format!("int f{at}(int x) {{ return x % 7 ? x * {at} : f{at}(x - 1); }}\n");
    write("small.c", &(0..60).map(function).collect::<String>());
    let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)";
    let sql = format!(
        "CREATE TABLE t(a INTEGER, b TEXT); {rows} INSERT INTO t SELECT i, hex(i * 7919) FROM n; \
         CREATE INDEX i ON t(b); SELECT count(*), max(a) FROM t WHERE b > '5';\n"
    );
    write("rows.sql", &sql);
}

impl Lab {
    /// A program's file.
    pub(crate) fn program(&self, name: &str) -> String {
        self.directory.join(name).to_string_lossy().into_owned()
    }
}

/// The line of `programs/answers.c` that ends in a comment with this word.
pub(crate) fn line_of(word: &str) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/answers.c");
    let text = fs::read_to_string(source).expect("the source");
    let at = text.lines().position(|line| line.ends_with(&format!("/* {word} */")));
    format!("answers.c:{}", at.expect("the word stands there") + 1)
}
