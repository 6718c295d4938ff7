//! No prefix of a real text makes a reader panic.

mod corpus;

use corpus::{corpus, texts};
use numalab_formats::{architecture, hwloc, lscpu, machine_toml, numactl, xl_info};

/// Reads prefixes of `text`: all of them if it is short, otherwise about `most`, ten times more with
/// `NUMALAB_LONG=1`, evenly spaced. All prefixes would take time that is quadratic in the length.
fn cut<T>(text: &str, most: usize, read: impl Fn(&str) -> T) {
    let long = std::env::var_os("NUMALAB_LONG").is_some_and(|value| value == "1");
    let most = if long { most.saturating_mul(10) } else { most };
    let step = (text.len() / most).max(1);
    for end in (0..text.len()).step_by(step).filter(|&end| text.is_char_boundary(end)) {
        let _ = read(&text[..end]);
    }
}

#[test]
fn own_texts_survive_any_truncation() {
    for text in
        [include_str!("../architectures/lumi_partc"), include_str!("../architectures/lumi_partg")]
    {
        cut(text, usize::MAX, architecture::read);
        cut(text, usize::MAX, lscpu::read);
    }
    cut(machine_toml::EXAMPLE, usize::MAX, machine_toml::read);
}

#[test]
fn own_texts_survive_any_changed_byte() {
    let text = include_str!("../architectures/lumi_partg");
    for place in 0..text.len() {
        for byte in [b'9', b'-', b',', b'(', b'\n', b' '] {
            let mut bytes = text.as_bytes().to_vec();
            bytes[place] = byte;
            let _ = architecture::read(&String::from_utf8(bytes).unwrap());
        }
    }
}

#[test]
fn corpus_texts_survive_truncation() {
    let Some(root) = corpus("corpus_texts_survive_truncation") else {
        return;
    };
    for (_, text) in texts(&root.join("text"), ".txt") {
        cut(&text, 2000, numactl::read);
        cut(&text, 2000, xl_info::read);
    }
    for (_, text) in texts(&root.join("numa-mem-bench/architectures"), "") {
        cut(&text, 2000, architecture::read);
    }
    for (name, text) in texts(&root.join("sysfs/expected"), "") {
        if name.starts_with("lscpu-") {
            cut(&text, 2000, lscpu::read);
        }
    }
}

#[test]
fn corpus_xml_survives_truncation() {
    let Some(root) = corpus("corpus_xml_survives_truncation") else {
        return;
    };
    for folder in ["sysfs/xml", "sysfs/expected", "samples"] {
        for (_, text) in texts(&root.join(folder), ".xml") {
            cut(&text, 1_000_000 / text.len(), hwloc::read_xml);
        }
    }
}
