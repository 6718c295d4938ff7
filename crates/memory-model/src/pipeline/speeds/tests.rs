use super::*;
use crate::pipeline::flow::Flow;
use crate::pipeline::x86::decode;

const ADD: &[u8] = &[0x48, 0x01, 0xd8];

fn speeds(family: Family) -> Speeds {
    Speeds::of(&Core { timing: Some(family.timing(1.0)), ..Core::TYPICAL })
}

/// Returns the cycles of a block of these instructions.
fn cycles(family: Family, code: &[&[u8]]) -> f64 {
    let block = code.iter().map(|bytes| decode(bytes));
    Flow::at(block, (0, 32), &speeds(family)).takes_ps as f64 / 1000.0
}

#[test]
fn a_comparison_is_one_with_its_branch_but_a_decrement_only_on_later_cores() {
    let (compare, down): (&[u8], &[u8]) = (&[0x48, 0x39, 0xd8], &[0x48, 0xff, 0xc9]);
    let of = |family, last| cycles(family, &[ADD, ADD, ADD, ADD, last, &[0x75, 0xf0]]);
    assert!(of(Family::Zen1, down) > of(Family::Zen1, compare));
    assert_eq!(of(Family::Zen3, down), of(Family::Zen3, compare));
}

#[test]
fn an_instruction_on_32_bytes_is_two_on_zen_1() {
    let of = |family, bytes| cycles(family, &[bytes; 8]);
    let [narrow, wide]: [&[u8]; 2] = [&[0xc5, 0xf1, 0x58, 0xc2], &[0xc5, 0xf5, 0x58, 0xc2]];
    assert_eq!([narrow, wide].map(|bytes| of(Family::Zen1, bytes)), [4.0, 8.0]);
    assert_eq!([narrow, wide].map(|bytes| of(Family::Zen2, bytes)), [4.0, 4.0]);
    let load: &[u8] = &[0xc5, 0xfc, 0x28, 0x06];
    assert_eq!([Family::Zen1, Family::Zen2].map(|family| of(family, load)), [8.0, 4.0]);
}

#[test]
fn zen_1_begins_two_accesses_in_a_cycle_and_a_modification_is_one_of_them() {
    let (load, store, change): (&[u8], &[u8], &[u8]) =
        (&[0x48, 0x8b, 0x06], &[0x48, 0x89, 0x07], &[0x48, 0x01, 0x07]);
    let of = |code: &[&[u8]]| cycles(Family::Zen1, code);
    assert_eq!(of(&[load, load, store, load, load, store]), 3.0);
    assert_eq!(of(&[load, change, load, change]), 2.0);
    let newer = [Family::Zen2, Family::Zen3].map(|of| cycles(of, &[load, load, store]));
    assert!(newer.iter().all(|cycles| *cycles <= 1.2), "{newer:?}");
}

#[test]
fn loops_of_five_and_of_nine_instructions_and_of_loads_are_faster_on_zen_4() {
    let (compare, down): (&[u8], &[u8]) = (&[0x48, 0x39, 0xd8], &[0x48, 0xff, 0xc9]);
    let of = |each: &[u8], count: usize, last: &[u8]| {
        let ends = [last, &[0x72, 0xfb]];
        let code: Vec<&[u8]> = core::iter::repeat_n(each, count).chain(ends).collect();
        [Family::Zen3, Family::Zen4].map(|family| cycles(family, &code))
    };
    assert_eq!(of(ADD, 4, compare), [1.5, 1.0], "no unit is lost to the branch");
    assert_eq!(of(ADD, 4, down), [1.5, 1.25], "but one to the decrement");
    assert_eq!(of(&[0x48, 0x89, 0xd8], 8, compare), [2.12, 1.5], "nine are in one entry");
    assert_eq!(of(&[0x48, 0x0f, 0xbd, 0xc3], 2, compare), [8.0, 1.0], "bsr %rbx,%rax");
    assert_eq!(of(&[0x48, 0x8b, 0x06], 6, compare), [2.4, 2.0], "three loads a cycle");
}

#[test]
fn operations_fill_the_reorder_buffer_of_a_zen_4_sooner_than_moves_and_those_that_load_count_twice()
{
    let (copy, load): (&[u8], &[u8]) = (&[0x48, 0x89, 0xd8], &[0x48, 0x8b, 0x03]);
    let store: &[u8] = &[0x48, 0x89, 0x03];
    let (adds_memory, vector): (&[u8], &[u8]) = (&[0x48, 0x03, 0x03], &[0x0f, 0x28, 0x03]);
    let further = |family, code| {
        let speeds = speeds(family);
        speeds.further_slots(&[decode(code); 10])
    };
    let codes = [copy, store, ADD, load, adds_memory, vector];
    assert_eq!(codes.map(|code| further(Family::Zen4, code)), [0, 0, 22, 22, 54, 22]);
    assert_eq!(codes.map(|code| further(Family::Zen3, code)), [0; 6]);
}

#[test]
fn the_mask_of_a_wide_vector_takes_two_cycles_more_and_an_upper_half_of_a_product_one_on_zen_4() {
    let latency = |code: &[u8]| {
        let speeds = speeds(Family::Zen4);
        speeds.latency_ps(&decode(code), false, false)
    };
    let [narrow, wide]: [&[u8]; 2] = [&[0xc5, 0xf9, 0xd7, 0xc0], &[0xc5, 0xfd, 0xd7, 0xc0]];
    assert_eq!([narrow, wide].map(latency), [2000, 4000]);
    let products: [&[u8]; 2] = [&[0x48, 0x0f, 0xaf, 0xc3], &[0x48, 0xf7, 0xe3]];
    assert_eq!(products.map(latency), [3000, 4000]);
}

#[test]
fn additions_that_wait_for_a_counter_take_the_units_before_its_increment_does_on_zen_4() {
    // add %rdi,%rax repeatedly; add $1,%rdi; cmp %rcx,%rdi; jne
    let chain_ps = |family, count| {
        let adds = core::iter::repeat_n([0x48, 0x01, 0xf8].as_slice(), count);
        let ends: [&[u8]; 3] = [&[0x48, 0x83, 0xc7, 1], &[0x48, 0x39, 0xcf], &[0x75, 0xf0]];
        let code = adds.chain(ends).map(decode);
        let flow = Flow::at(code, (0, 32), &speeds(family));
        let of_counter = flow.results.iter().find(|(number, _)| *number == 7);
        let mut registers = crate::pipeline::late::Late::default();
        registers.set(7, 100_000);
        let known_ps = of_counter.unwrap().1.known_ps(0, &registers, &Default::default());
        known_ps - 100_000
    };
    assert_eq!([3, 4, 8].map(|count| chain_ps(Family::Zen4, count)), [1000, 2000, 3000]);
    assert_eq!(chain_ps(Family::Zen3, 8), 1000);
}

#[test]
fn a_product_waits_for_an_older_one_of_the_same_value_in_a_loop_on_zen_4() {
    // imul $3,%eax,%eax; add $7,%eax; mov %eax,%ecx; imul %rdx,%rcx; jne
    let step: [&[u8]; 2] = [&[0x6b, 0xc0, 3], &[0x83, 0xc0, 7]];
    let copy: &[u8] = &[0x89, 0xc1];
    let (product, sum, back): (&[u8], &[u8], &[u8]) =
        (&[0x48, 0x0f, 0xaf, 0xca], &[0x48, 0x01, 0xd1], &[0x75, 0xf0]);
    let chain_ps = |family, code: &[&[u8]]| {
        let flow = Flow::at(code.iter().map(|bytes| decode(bytes)), (0, 32), &speeds(family));
        let of_step = flow.results.iter().find(|(number, _)| *number == 0);
        let mut registers = crate::pipeline::late::Late::default();
        registers.set(0, 100_000);
        of_step.unwrap().1.known_ps(0, &registers, &Default::default()) - 100_000
    };
    let of = |family, used, ends| chain_ps(family, &[step[0], step[1], copy, used, ends]);
    assert_eq!(of(Family::Zen4, product, back), 5000);
    assert_eq!(of(Family::Zen4, sum, back), 4000, "no product");
    assert_eq!(of(Family::Zen4, product, copy), 4000, "no loop");
    assert_eq!(of(Family::Zen3, product, back), 4000);
}

#[test]
fn an_address_of_two_registers_delays_a_load_on_zen_1() {
    let pair = decode(&[0x48, 0x8b, 0x1c, 0x3b]);
    let one = decode(&[0x48, 0x8b, 0x1b]);
    let of = |family, operands| speeds(family).load_ps(operands);
    assert_eq!([&pair, &one].map(|operands| of(Family::Zen1, operands)), [1000, 0]);
    assert_eq!(of(Family::Zen3, &pair), 0);
}

#[test]
fn a_pause_stops_the_core_for_the_cycles_of_its_family() {
    let (pause, nop): (&[u8], &[u8]) = (&[0xf3, 0x90], &[0x90]);
    let more =
        |family| cycles(family, &[ADD, pause, ADD, pause]) - cycles(family, &[ADD, nop, ADD, nop]);
    assert_eq!([Family::Zen4, Family::GoldenCove].map(more), [182.0, 280.0]);
}
