//! membench compared with its peers, in one run: `cargo bench -p numalab-membench [-- SECTION...]`.
//!
//! Prints Markdown. Values are medians with the middle half of the sample in brackets; a ratio is
//! that of alternating pairs. `NUMALAB_LONG=1` builds 4 GiB cycles instead of 1.

mod building;
mod chasing;
mod machine;
mod programs;
mod reference;
mod sample;
mod streaming;

use reference::Reference;

type Section = fn(&Reference);

/// The sections, each of at most a minute.
const SECTIONS: [(&str, Section); 7] = [
    ("build", building::compare),
    ("chase", chasing::compare_with_c),
    ("load-to-use", |_| chasing::load_to_use()),
    ("stream", streaming::compare),
    ("likwid", |_| programs::compare_with_likwid()),
    ("sysbench", |_| programs::compare_with_sysbench()),
    ("mbw", |_| programs::compare_with_mbw()),
];

fn main() {
    // Cargo passes `--bench`; all other arguments are sections.
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let names = SECTIONS.map(|(name, _)| name);
    if let Some(unknown) = asked.iter().find(|arg| !names.contains(&arg.as_str())) {
        eprintln!("no section {unknown:?}; expected some of {names:?}");
        std::process::exit(2);
    }
    println!("{}\n", machine::describe());
    machine::stay_on_first_cpu();
    let reference = match Reference::load() {
        Ok(reference) => reference,
        Err(reason) => {
            eprintln!("no comparison with C: {reason}");
            std::process::exit(3);
        }
    };
    for (name, section) in SECTIONS {
        if asked.is_empty() || asked.iter().any(|arg| arg == name) {
            section(&reference);
        }
    }
}
