//! Accepted arguments, and the messages for others.

use proptest::prelude::*;

use super::*;

const PLAIN: &str = "cpus=0.0.1.1,memory=1G.1G,distances=10.21/21.10";

fn parse(text: &str) -> Result<Arguments, ArgumentError> {
    Arguments::parse(text.split(','), |_| Err("entity not found".into()))
}

#[test]
fn short_forms_describe_the_same_machine_as_a_file() {
    let short = parse(&format!(
        "{PLAIN},local-ns=90,node-bandwidth=8000.0,link-bandwidth=0.500/500.0,\
         caches=1:32K:8:64:cpu+3:1M:16:64:group,l3-groups=0.1.2.2,mode=virtual,start=marker,\
         report=/tmp/r.json,pmu=/dev/shm/p@0x40"
    ))
    .unwrap();
    assert_eq!(short.machine.latency_ns, [[90.0, 189.0], [189.0, 90.0]]);
    assert_eq!(short.machine.groups(), [0, 1, 2, 2]);
    assert_eq!((short.mode, short.start), (Mode::Virtual, Start::Marker));
    assert_eq!(short.pmu.unwrap().offset, 64);
    let json = serde_json::to_string(&short.machine).unwrap();
    let from_file = Arguments::parse(["machine=m.json"], |path| {
        assert_eq!(path, "m.json");
        Ok(json)
    });
    assert_eq!(from_file.unwrap().machine, short.machine);
}

#[test]
fn mistakes_are_quoted_with_the_expected_form() {
    let cases = [
        ("cpus=0", "`distances` is missing; it, or latency, gives the cost of an access"),
        ("mode=fast", "`mode=fast`: expected count, virtual or sleep"),
        ("colour", "argument `colour` is not known; expected one of machine, cpus"),
        ("mode=count,mode=count", "argument `mode` is given twice"),
        ("machine=/nowhere", "machine=/nowhere: entity not found"),
        ("cpus=0.2,memory=1G.1G,distances=10.20/20.10", "machine: vCPU 1 is on node position 2"),
        ("cpus=0,memory=1G.1G,distances=10.20", "machine: `latency_ns` has 1 entries, expected 2"),
        ("cpus=0,memory=1G,distances=10,latency=1", "`latency` and `distances` exclude"),
        ("cpus=0,memory=1X,distances=10", "`memory=1X`: expected a size per node"),
        ("cpus=0,ranges=0-10-0+8-20-0,distances=10", "machine: range 0x8-0x20 of node 0 overlaps"),
        ("cpus=0,memory=1G,distances=-1", "`distances=-1`: expected a row per node, such as"),
        ("cpus=0,memory=1G,distances=10,sample=2,mode=sleep", "`sample` and `mode` exclude"),
        (
            "cpus=0,memory=1G,distances=10,caches=1:48K:7:64:cpu",
            "machine: cache level 1: size_bytes must be a whole number of sets",
        ),
    ];
    for (arguments, message) in cases {
        let error = parse(arguments).unwrap_err().to_string();
        assert!(error.starts_with(message), "{arguments}: {error}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(
        key in prop::sample::select(KEYS.split(", ").filter(|key| *key != "machine").collect::<Vec<_>>()),
        value in "[0-9a-zA-Z.:/+@x-]{0,24}",
    ) {
        let argument = format!("{key}={value}");
        let plain = PLAIN.split(',').filter(|word| !word.starts_with(&format!("{key}=")));
        let _ = Arguments::parse(plain.chain([argument.as_str()]), |_| unreachable!());
    }
}

#[test]
fn nodes_of_policies_must_exist_in_the_machine() {
    let parse =
        |word: &str| parse(&format!("{PLAIN},{word}")).map(|arguments| arguments.alternatives);
    let found = parse("alternatives=bind.1+interleave.0.0.1+thp+pack+users").unwrap();
    let placed = [Placement::Bind(vec![1]), Placement::Interleave(vec![0, 0, 1])];
    let [bound, interleaved] = placed.map(Alternative::Placed);
    assert_eq!(
        found,
        [bound, interleaved, Alternative::Huge, Alternative::Packed, Alternative::Users]
    );
    let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(shown.join("+"), "bind.1+interleave.0.0.1+thp+pack+users");
    let nine = ["bind.0"; 9].join("+");
    for word in ["", "0.1", "bind.2", "bind.0.1", "interleave", "local", &nine] {
        let error = parse(&format!("alternatives={word}")).expect_err(word).to_string();
        assert!(error.contains("expected at most eight of bind with one node"), "{error}");
    }
}
