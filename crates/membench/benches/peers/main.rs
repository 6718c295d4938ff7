//! membench beside its peers, in one run: `cargo bench -p numalab-membench [-- SECTION...]`.
//!
//! Prints Markdown. Values are medians with the middle half of the sample in brackets; a
//! ratio is that of pairs taken in turn. `NUMALAB_LONG=1` builds 4 GiB cycles instead of 1.

mod building;
mod chasing;
mod machine;
mod programs;
mod reference;
mod sample;
mod streaming;

use reference::Reference;

const SECTIONS: [&str; 5] = ["build", "chase", "load-to-use", "stream", "programs"];

fn main() {
    // Cargo passes `--bench`; anything else names a section.
    let asked: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    if let Some(unknown) = asked.iter().find(|arg| !SECTIONS.contains(&arg.as_str())) {
        eprintln!("no section {unknown:?}; expected some of {SECTIONS:?}");
        std::process::exit(2);
    }
    let wanted = |section: &str| asked.is_empty() || asked.iter().any(|arg| arg == section);
    println!("{}\n", machine::describe());
    machine::stay_on_first_cpu();
    let reference = match Reference::load() {
        Ok(reference) => reference,
        Err(reason) => {
            println!("nothing compared with C: {reason}");
            return;
        }
    };
    if wanted("build") {
        building::compare(&reference);
    }
    if wanted("chase") {
        chasing::compare_with_c(&reference);
    }
    if wanted("load-to-use") {
        chasing::load_to_use();
    }
    if wanted("stream") {
        streaming::compare(&reference);
    }
    if wanted("programs") {
        programs::compare();
    }
}
