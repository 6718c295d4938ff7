//! Names the build: the version, the commit that it was made from, and whether it is optimised.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// Letters of a commit hash shown in the version.
const SHORT: usize = 12;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    // A debug build is often of a modified tree, and the commit would be an earlier one.
    let about = match env::var("PROFILE").as_deref() {
        Ok("debug") => Some("debug build".to_owned()),
        _ => packaged().or_else(checked_out).map(|commit| format!("commit {commit}")),
    };
    let about = about.map(|about| format!(" ({about})")).unwrap_or_default();
    println!("cargo:rustc-env=NUMALAB_VERSION={version}{about}");
    println!("cargo:rustc-env=NUMALAB_BUILD={}", build());
}

/// Returns the platform and compiler for reports of bugs: `x86_64-unknown-linux-gnu, static, rustc
/// 1.90.0`.
fn build() -> String {
    let said = |name: &str| env::var(name).unwrap_or_default();
    let is_static = said("CARGO_CFG_TARGET_FEATURE").split(',').any(|one| one == "crt-static");
    let compiler = Command::new(said("RUSTC")).arg("--version").output();
    let compiler = compiler.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    // The date adds nothing to the version number.
    let compiler = compiler.unwrap_or_default();
    let compiler = compiler.split(" (").next().unwrap_or_default().trim();
    let linked = if is_static { "static" } else { "dynamic" };
    format!("{}, {linked}, {compiler}", said("TARGET"))
}

/// Returns the commit that cargo wrote into the package.
fn packaged() -> Option<String> {
    let text = fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, rest) = text.split_once("\"sha1\": \"")?;
    rest.split('"').next()?.get(..SHORT).map(str::to_owned)
}

/// Returns the commit of the repository if this directory is its `crates/cli`.
fn checked_out() -> Option<String> {
    let top = git(&["rev-parse", "--show-toplevel"])?;
    let here = Path::new(&top).join("crates/cli").canonicalize().ok()?;
    if here != env::current_dir().ok()?.canonicalize().ok()? {
        return None;
    }
    // The index is not watched: every `git status` may rewrite it, including ours.
    for watched in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", watched])?;
        println!("cargo:rerun-if-changed={path}");
    }
    for crate_directory in fs::read_dir("..").ok()?.flatten() {
        println!("cargo:rerun-if-changed={}", crate_directory.path().join("src").display());
    }
    let commit = git(&["rev-parse", "HEAD"])?.get(..SHORT)?.to_owned();
    let changed = git(&["--no-optional-locks", "status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { commit } else { format!("{commit}, changed") })
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
