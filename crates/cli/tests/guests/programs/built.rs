//! The programs of this directory, and input files of others.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the directory of the built programs, or the reason why they cannot be built.
pub(crate) fn built() -> Result<PathBuf, String> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs");
    fs::create_dir_all(&directory).expect("made");
    let programs = [
        ("placement", "cc", "-static", "placement"),
        ("answers", "cc", "-g", "answers"),
        ("stream", "cc", "-fopenmp", "stream"),
        ("births", "cc", "-static", "births"),
        ("children", "cc", "-g", "children"),
        ("workers", "cc", "-g", "workers"),
        ("cpus", "cc", "-g", "cpus"),
        ("omp", "cc", "-fopenmp", "omp"),
        ("probes", "cc", "-g", "probes"),
        ("libnuma", "cc", "-g", "libnuma"),
        ("overlap", "cc", "-static", "overlap"),
        ("overlap", "aarch64-linux-gnu-gcc", "-static", "overlap-aarch64"),
    ];
    for (source, compiler, how, name) in programs {
        let compiled = Command::new(compiler)
            .args(["-O1", "-pthread", how, "-o"])
            .arg(directory.join(name))
            .arg(manifest.join(format!("tests/programs/{source}.c")))
            .args((source == "libnuma").then_some("-l:libnuma.so.1"))
            .status();
        if !compiled.is_ok_and(|status| status.success()) {
            let packages =
                "apt install gcc libc6-dev libnuma1 gcc-aarch64-linux-gnu libc6-dev-arm64-cross";
            return Err(format!("{compiler} cannot compile a program: {packages}"));
        }
    }
    inputs(&directory);
    Ok(directory)
}

/// Returns the built programs; if a tool is missing, prints that, or fails with
/// `NUMALAB_REQUIRE_TOOLS`.
pub(crate) fn or_not_run<T>(built: Result<T, String>) -> Option<T> {
    match built {
        Ok(built) => Some(built),
        Err(why) if std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some() => panic!("{why}"),
        Err(why) => {
            eprintln!("NOT RUN: {why}");
            None
        }
    }
}

/// Writes input files for programs of the distribution.
fn inputs(directory: &Path) {
    let write = |name: &str, text: &str| {
        fs::write(directory.join(name), text).expect("it can be written");
    };
    let numbers = (0_u64..20_000).map(|at| at.wrapping_mul(6_364_136_223_846_793_005) >> 40);
    write("text", &numbers.map(|number| format!("{number} is a line\n")).collect::<String>());
    let function = |at| format!("int f{at}(int x) {{ return x % 7 ? x * {at} : f{at}(x - 1); }}\n");
    write("small.c", &(0..20).map(function).collect::<String>());
    let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)";
    let sql = format!(
        "CREATE TABLE t(a INTEGER, b TEXT); {rows} INSERT INTO t SELECT i, hex(i * 7919) FROM n; \
         CREATE INDEX i ON t(b); SELECT count(*), max(a) FROM t WHERE b > '5';\n"
    );
    write("rows.sql", &sql);
}
