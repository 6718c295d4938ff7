use std::fs;

use super::*;

fn refused(name: &str) -> String {
    read(name).unwrap_err().to_string()
}

#[test]
fn bundled_machines_are_known_by_name() {
    let nodes = |name| read(name).unwrap().nodes.len();
    assert_eq!((nodes("x460"), nodes("two-sockets"), nodes("four-sockets")), (4, 2, 4));
    assert_eq!(nodes("xeon-8360y-2s"), 2, "one of the gallery");
    for (name, _) in MACHINES {
        assert!(!read(name).unwrap().cpu_nodes().is_empty(), "{name}");
    }
}

#[test]
fn an_unknown_machine_is_refused_with_the_known_ones() {
    let message = refused("mainframe");
    assert!(message.starts_with("setting machine: mainframe: No such file"), "{message}");
    let end = ": expected x460, two-sockets, four-sockets, one of `numalab machine list`, or a file in TOML";
    assert!(message.ends_with(end), "{message}");
}

#[test]
fn an_invalid_machine_file_is_refused_with_its_path() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("m.toml");
    fs::write(&path, "what = 1\n").unwrap();
    let message = refused(&path.to_string_lossy());
    assert!(message.starts_with(&format!("setting machine: {}: ", path.display())), "{message}");
    assert!(message.ends_with(": expected a machine in TOML"), "{message}");
    fs::write(&path, MACHINES[1].1).unwrap();
    assert_eq!(read(&path.to_string_lossy()).unwrap(), read("two-sockets").unwrap());
}
