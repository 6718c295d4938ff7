//! Sizes, emulated nodes and command lines as typed by users.

use numalab_formats::command_line::numa_fake;
use numalab_formats::emulation::{parse, parse_distances, parse_nodes};
use numalab_formats::size::{
    format_bytes, format_rounded, parse_bytes, parse_list, parse_with_unit,
};
use numalab_topology::{EmulatedNode, EmulatedNodes};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

#[test]
fn sizes_are_read_in_every_usual_form() {
    assert_eq!(parse_bytes("1G"), Ok(1 << 30));
    assert_eq!(parse_bytes(" 512m "), Ok(512 * MIB));
    assert_eq!(parse_bytes("16 KiB"), Ok(16 << 10));
    assert_eq!(parse_bytes("2T"), Ok(2 << 40));
    for text in ["64M", "64MB", "64MiB", "64 mb", "65536K"] {
        assert_eq!(parse_bytes(text), Ok(64 * MIB), "{text}");
    }
    assert_eq!(parse_bytes("1.5M"), Ok(3 * MIB / 2));
    assert_eq!(parse_bytes("0.1K"), Ok(102));
    assert_eq!(parse_list("16M,16,16384K"), Ok(vec![16 * MIB]));
    assert_eq!(parse_bytes("7B"), Ok(7));
}

#[test]
fn a_number_alone_is_in_mebibytes_on_a_command_line_and_refused_in_descriptions() {
    assert_eq!(parse_bytes("4096"), Ok(4096 * MIB));
    assert_eq!(parse_bytes("1.5"), Ok(3 * MIB / 2));
    assert_eq!(parse_with_unit("0"), Ok(0));
    assert_eq!(parse_with_unit("4096B"), Ok(4096));
    let refusal = parse_with_unit("4096").unwrap_err().to_string();
    assert_eq!(refusal, "`4096` has no unit: expected a size such as 512M, 1.5G or 4096B");
    let toml = "[[node]]\nid = 0\nmemory = \"1024\"\ncpus = \"0\"\n";
    let refusal = numalab_formats::machine_toml::read(toml).unwrap_err().to_string();
    assert!(refusal.contains("`1024` has no unit") && refusal.contains("line 3"), "{refusal}");
}

#[test]
fn bad_sizes_are_refused_quoting_them() {
    let refuse = |text| parse_bytes(text).unwrap_err().to_string();
    assert_eq!(
        refuse("1,5"),
        "`1,5` is not a size: expected a number and K, M, G or T, such as 512M or 1.5G"
    );
    assert!(refuse("G").contains("is not a size"));
    for text in ["1.G", ".5G", "1.2.3G", "1XB", "1.0000000000001G"] {
        assert!(refuse(text).contains("is not a size"), "{text}");
    }
    assert!(refuse("").contains("is not a size"));
    assert!(refuse("-1").contains("is not a size"));
    assert_eq!(refuse("99999999999T"), "`99999999999T` exceeds 64 bits");
}

#[test]
fn lists_of_sizes_mean_mebibytes_and_double() {
    let mib =
        |text| -> Vec<u64> { parse_list(text).unwrap().iter().map(|size| size / MIB).collect() };
    assert_eq!(mib("8"), [8]);
    assert_eq!(mib("1-16"), [1, 2, 4, 8, 16]);
    assert_eq!(mib("3-20,64M"), [3, 6, 12, 20, 64]);
    assert_eq!(mib("1-16384").len(), 15);
    assert_eq!(parse_list("16K-64K").unwrap(), [16 << 10, 32 << 10, 64 << 10]);
    assert!(parse_list("8-4").unwrap_err().to_string().contains("is not a range of sizes"));
    assert!(parse_list("0-4").is_err());
    assert!(parse_list("1,,2").is_err());
}

#[test]
fn sizes_for_people_are_rounded() {
    assert_eq!(format_rounded(0), "0 B");
    assert_eq!(format_rounded(1536 * MIB), "1.5 GiB");
    assert_eq!(format_rounded(2 << 40), "2 TiB");
    assert_eq!(format_rounded(u64::MAX), "16777216 TiB");
}

#[test]
fn emulated_nodes_are_read_in_every_form() {
    let node = |memory_bytes, cpus| EmulatedNode { memory_bytes, cpus };
    assert_eq!(parse_nodes("4"), Ok(EmulatedNodes::Equal(4)));
    assert_eq!(parse_nodes("2U"), Ok(EmulatedNodes::Split(2)));
    assert_eq!(
        parse_nodes("1G,512M,0"),
        Ok(EmulatedNodes::Listed(vec![node(1 << 30, None), node(512 * MIB, None), node(0, None)]))
    );
    assert_eq!(
        parse_nodes("1G:4,2G:0"),
        Ok(EmulatedNodes::Listed(vec![node(1 << 30, Some(4)), node(2 << 30, Some(0))]))
    );
}

#[test]
fn bad_emulated_nodes_are_refused_with_the_forms() {
    let refuse = |text| parse_nodes(text).unwrap_err().to_string();
    assert!(
        refuse("1G,2").starts_with("`2` in `1G,2` is not a node: expected a size with its unit")
    );
    assert!(refuse("1G:x").starts_with("`1G:x` in"));
    assert!(refuse("").starts_with("`` in ``"));
    assert!(refuse("-4").contains("not a node"));
    assert!(refuse("99999999999T").contains("exceeds 64 bits"));
}

#[test]
fn distance_tables_are_read_and_checked() {
    let table = parse_distances("10,20; 21 10;").unwrap();
    assert_eq!((table.get(0, 1), table.get(1, 0)), (Some(20), Some(21)));
    let refuse = |text| parse_distances(text).unwrap_err().to_string();
    assert!(refuse("10,2;20,10").starts_with("`2` in the distance table"));
    assert!(refuse("10,256;20,10").contains("expected 10 to 255"));
    assert_eq!(
        refuse("10,20;20"),
        "distance table: row 1 of the distance matrix has 1 values, expected 2"
    );
}

#[test]
fn the_linux_option_has_only_the_latencies_it_can_emulate() {
    let fake = |nodes, distances| numa_fake(&parse(nodes, distances).unwrap());
    assert_eq!(fake("4", None).unwrap(), "numa=fake=4");
    assert_eq!(fake("2U", None).unwrap(), "numa=fake=2U");
    assert_eq!(fake("1G,1G", None).unwrap(), "numa=fake=1G");
    assert_eq!(fake("2", Some("10,20;20,10")).unwrap(), "numa=fake=2:10,20,20,10");
    let refuse = |nodes| fake(nodes, None).unwrap_err().to_string();
    assert_eq!(refuse("1G,2G"), "numa=fake= cannot express nodes of different sizes");
    assert_eq!(
        refuse("0,0"),
        "numa=fake= cannot express a node with a size that is not in whole MiB"
    );
    assert_eq!(refuse("1G:1,1G:3"), "numa=fake= cannot express the cpus of a node");
}

proptest! {
    #[test]
    fn written_sizes_are_read_again(bytes in prop_oneof![any::<u64>(), (0u64..4096).prop_map(|n| n << 30)]) {
        prop_assert_eq!(parse_bytes(&format_bytes(bytes)), Ok(bytes));
        prop_assert_eq!(parse_with_unit(&format_bytes(bytes)), Ok(bytes));
    }

    #[test]
    fn any_text_is_a_size_or_an_error(text in "[0-9KMGTiB ,:;U.-]{0,12}") {
        let _ = (parse_bytes(&text), parse_list(&text), parse_nodes(&text), parse_distances(&text));
    }

    #[test]
    fn written_nodes_are_read_again(
        nodes in proptest::collection::vec((any::<u32>(), proptest::option::of(0usize..9)), 2..6)
    ) {
        let text = |&(bytes, cpus): &(u32, Option<usize>)| {
            let cpus = cpus.map(|cpus| format!(":{cpus}")).unwrap_or_default();
            format_bytes(u64::from(bytes)) + &cpus
        };
        let texts: Vec<String> = nodes.iter().map(text).collect();
        let node = |&(bytes, cpus): &(u32, Option<usize>)| EmulatedNode { memory_bytes: u64::from(bytes), cpus };
        let nodes = EmulatedNodes::Listed(nodes.iter().map(node).collect());
        prop_assert_eq!(parse_nodes(&texts.join(",")), Ok(nodes));
    }
}
