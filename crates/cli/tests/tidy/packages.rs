//! Other people's packages in what is released: one version of each, and licences that allow it.

use std::process::Command;

use super::root;

/// Licences under which a release may carry a package.
const ALLOWED: [&str; 7] =
    ["MIT", "Apache-2.0", "BSD-3-Clause", "ISC", "Unicode-3.0", "Unlicense", "Zlib"];

/// Returns the output of `cargo tree` for a release's programs, without build and test dependencies.
fn shipped(words: &[&str]) -> String {
    let programs = ["-p", "numalab", "-p", "numalab-emulator", "-p", "numalab-kernel"];
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--edges", "normal,no-proc-macro"])
        .args(["--target", "x86_64-unknown-linux-gnu", "--prefix", "none"])
        .args(programs)
        .args(words)
        .current_dir(root())
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Returns true if an SPDX expression can be met by licences of the list. The `/` of older packages
/// means `OR`.
fn is_allowed(licence: &str) -> bool {
    let licence = licence.replace(['(', ')'], "").replace('/', " OR ");
    let any = |words: &str| words.split(" OR ").any(|word| ALLOWED.contains(&word.trim()));
    !licence.is_empty() && licence.split(" AND ").all(any)
}

#[test]
fn a_release_has_no_package_in_two_versions() {
    assert!(shipped(&[]).lines().count() > 50, "cargo lists what is shipped");
    let twice = shipped(&["--duplicates", "--depth", "0"]);
    assert!(twice.is_empty(), "{twice}`cargo tree --duplicates` names who needs them");
}

#[test]
fn licences_of_what_is_released_allow_it() {
    let listed = shipped(&["--format", "{l}|{p}"]);
    // An empty line is between the programs.
    for line in listed.lines().filter(|line| !line.is_empty()) {
        let (licence, package) = line.split_once('|').unwrap_or_else(|| panic!("{line}"));
        assert!(is_allowed(licence), "{package}: `{licence}`: expected one of {ALLOWED:?}");
    }
    assert!(is_allowed("(MIT OR Apache-2.0) AND Unicode-3.0") && is_allowed("GPL-2.0/MIT"));
    assert!(!["", "GPL-2.0", "MIT AND GPL-2.0"].into_iter().any(is_allowed));
}
