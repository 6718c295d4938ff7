use serde_json::{Value, json};

use super::*;

fn shape(settings: Value) -> Result<Shape, BackendError> {
    let Value::Object(settings) = settings else { unreachable!() };
    Shape::of(&BackendSpec { kind: "kernel".to_owned(), settings })
}

fn refused(settings: Value) -> String {
    match shape(settings) {
        Ok(shape) => {
            shape.machine().and_then(|machine| shape.described(&machine)).map(drop).unwrap_err()
        }
        Err(error) => error,
    }
    .to_string()
}

#[test]
fn a_kernel_boots_on_two_nodes_with_a_local_latency_of_100_ns_by_default() {
    let shape = shape(json!({})).unwrap();
    let machine = shape.machine().unwrap();
    assert_eq!((machine.nodes.len(), machine.cpus.len()), (2, 2));
    assert_eq!(machine.memory_bytes(), 2 << 30);
    assert_eq!(machine.distance(machine.nodes[0].id, machine.nodes[1].id), Some(20));
    assert_eq!(
        (shape.place, shape.file, shape.expect, shape.fail),
        (RequestedPlace::Auto, None, None, None)
    );
}

#[test]
fn nodes_cpus_memory_and_distances_make_the_machine() {
    let shape = shape(json!({
        "emulate": "1G,2G", "cpus": 6, "memory": "3G", "distances": "10,31;31,10"
    }));
    let machine = shape.unwrap().machine().unwrap();
    let memory: Vec<u64> = machine.nodes.iter().map(|node| node.memory_bytes >> 30).collect();
    assert_eq!((memory, machine.cpus.len()), (vec![1, 2], 6));
    assert_eq!(machine.distance(machine.nodes[0].id, machine.nodes[1].id), Some(31));
}

#[test]
fn a_kernel_boots_on_a_known_machine_whose_file_replaces_all_costs() {
    let like = |cpus: u32| json!({ "emulate-like": "epyc-9965-2s", "cpus": cpus, "memory": "3G" });
    let shape = shape(like(4)).unwrap();
    let machine = shape.machine().unwrap();
    assert_eq!((machine.nodes.len(), machine.cpus.len()), (2, 4));
    assert_eq!(machine.memory_bytes(), 3 << 30);
    let (described, source) = shape.described(&machine).unwrap();
    assert_eq!(source, EmulatedCosts::MachineFile);
    assert_eq!(described.latency_ns[0], [130.0, 310.0]);
    assert!(described.core.is_some() && described.tlb.is_some());
    let refused = refused(like(3));
    assert_eq!(
        refused,
        "backend.kernel.cpus: \"3\": expected a multiple of 2, the nodes with cpus"
    );
}

#[test]
fn each_place_has_a_name() {
    let place = |word: &str| shape(json!({ "where": word })).unwrap().place;
    let places = ["auto", "real", "emulator", "plain"].map(place);
    assert_eq!(
        places,
        [
            RequestedPlace::Auto,
            RequestedPlace::Real,
            RequestedPlace::Emulator,
            RequestedPlace::Plain
        ]
    );
    assert_eq!(
        refused(json!({ "where": "moon" })),
        "backend.kernel.where: \"moon\": expected auto, real, emulator or plain"
    );
}

#[test]
fn an_impossible_machine_is_refused_with_its_setting() {
    for (settings, start) in [
        (json!({ "memory": "much" }), "backend.kernel.memory: \"much\": expected "),
        (json!({ "emulate": "0" }), "backend.kernel.emulate: \"0\": expected "),
        (json!({ "emulate": "x" }), "backend.kernel.emulate: \"x\": expected "),
        (json!({ "emulate": "8G" }), "backend.kernel.emulate: \"8G\": expected "),
        (json!({ "distances": "10" }), "backend.kernel.emulate: \"2\": expected "),
        (json!({ "cpus": 0 }), "backend.kernel.cpus: 0: expected 1 to 4096"),
        (json!({ "cpus": 4097 }), "backend.kernel.cpus: 4097: expected 1 to 4096"),
        (json!({ "emulate-latency": "x" }), "backend.kernel.emulate-latency: \"x\": expected "),
        (json!({ "accel": "kvm" }), "backend.kernel.accel: no such setting: expected one of file"),
    ] {
        let message = refused(settings);
        assert!(message.starts_with(start), "{message}");
    }
}
