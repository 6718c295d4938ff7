//! The compiled hot loops: they contain only the intended instructions.
#![cfg(target_arch = "x86_64")]

use numalab_membench::{Chase, Cycle, Line, LineSize, Pattern, dependent_adds};
use std::process::Command;

/// Returns the instructions of the function of this program with `name` in its name, without
/// addresses; `None` if there is no objdump.
fn instructions(name: &str) -> Option<Vec<String>> {
    let program = std::env::current_exe().unwrap();
    let listing = Command::new("objdump")
        .args(["--disassemble", "--demangle", "--no-show-raw-insn", "--section=.text"])
        .args(["-M", "intel"])
        .arg(program)
        .output()
        .ok()?;
    let listing = String::from_utf8_lossy(&listing.stdout).into_owned();
    let start = listing.lines().position(|line| line.ends_with(">:") && line.contains(name));
    let start = start.unwrap_or_else(|| panic!("no function {name} in this program"));
    let body = listing.lines().skip(start + 1).take_while(|line| !line.is_empty());
    Some(body.filter_map(|line| Some(line.split_once(":\t")?.1.trim().to_owned())).collect())
}

/// Returns the instructions from the first one that is `wanted` to the jump that closes its loop.
fn hot_loop(body: &[String], wanted: impl Fn(&str) -> bool) -> &[String] {
    let start = body.iter().position(|line| wanted(line)).unwrap();
    let end = body[start..].iter().position(|line| line.starts_with("jne")).unwrap();
    &body[start..=start + end]
}

/// Returns true if the instruction loads a register from the address in the same register.
fn follows_a_pointer(instruction: &str) -> bool {
    let operands = instruction.strip_prefix("mov").and_then(|rest| rest.trim().split_once(','));
    operands.is_some_and(|(to, from)| from == format!("QWORD PTR [{to}]"))
}

fn mnemonics(instructions: &[String]) -> Vec<&str> {
    instructions.iter().filter_map(|line| line.split_whitespace().next()).collect()
}

#[test]
fn the_chase_is_one_load_one_count_and_one_jump() {
    // Used, so that the function is linked into this program.
    let mut lines = [Line::ZERO; 4];
    let cycle = Cycle::new(Pattern::Random, 256, LineSize::Bytes64, 0).unwrap();
    Chase::build(cycle, &mut lines).unwrap().walk().loads(4);

    let Some(body) = instructions("arch::follow") else {
        println!("NOT RUN: no objdump on this machine");
        return;
    };
    let hot = hot_loop(&body, follows_a_pointer);
    assert_eq!(mnemonics(hot), ["mov", "dec", "jne"], "{hot:?}");
    assert!(!hot[1].contains('['), "the count is in a register: {hot:?}");
}

#[test]
fn the_chain_consists_only_of_additions_of_registers() {
    dependent_adds(1);
    let Some(body) = instructions("arch::dependent_adds") else {
        println!("NOT RUN: no objdump on this machine");
        return;
    };
    let hot = hot_loop(&body, |line| line.starts_with("add"));
    assert_eq!(hot.len(), 34, "{hot:?}");
    assert!(hot[..32].iter().all(|line| line == &hot[0] && !line.contains('[')), "{hot:?}");
    assert_eq!(mnemonics(&hot[32..]), ["dec", "jne"]);
}
