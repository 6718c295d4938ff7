//! A guest with tables that hide the second node of its host.

use super::lab::Lab;

#[test]
fn two_nodes_that_the_tables_hide_are_found_by_core_to_core_times() {
    let lab = Lab::open();
    let tables = lab.path("tables");
    let tables = tables.to_str().expect("UTF-8");
    let one = ["--emulate", "1", "--cpus", "6", "--memory", "1G", "-o", tables];
    let built = lab.numalab(&[&["machine", "acpi", "build"][..], &one].concat());
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let like = ["--emulate-like", "xeon-8360y-2s", "--cpus", "6", "--memory", "1G"];
    let hidden = [&like[..], &["--tables", tables]].concat();
    let Some(answer) = lab.guest(&hidden, "numalab c2c --budget 1s --seed 1 -q\n") else { return };
    let text = answer.text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("This guest sees one memory node"), "{text}");
    assert!(text.contains("0-2 | 3-5"), "{text}");
}
