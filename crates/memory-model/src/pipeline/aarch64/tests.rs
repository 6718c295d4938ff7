//! The words are the output of GNU as for the instructions in the comments.

use proptest::prelude::*;

use super::*;

fn x(numbers: &[u8]) -> Registers {
    numbers.iter().fold(NONE, |all, &number| all | general(number))
}

fn v(numbers: &[u8]) -> Registers {
    numbers.iter().fold(NONE, |all, &number| all | Registers::vector(number))
}

/// Returns the registers of the address, those read, and those written.
fn of(word: u32) -> (Registers, Registers, Registers) {
    let known = decode(&word.to_le_bytes());
    (known.address, known.reads, known.writes)
}

/// Returns the same for an instruction without memory access.
fn plain_of(word: u32) -> (Registers, Registers) {
    let known = decode(&word.to_le_bytes());
    assert!(!known.memory && known.order == Order::Free, "{word:#x}: {known:?}");
    (known.reads, known.writes)
}

#[test]
fn branches_are_known_by_the_values_that_decide_them() {
    let ends = |word: u32| {
        let known = decode(&word.to_le_bytes());
        (known.ends, known.reads)
    };
    assert_eq!(ends(0x5400_0041), (Ends::Conditional, FLAGS), "b.ne .+8");
    assert_eq!(ends(0xb400_0043), (Ends::Conditional, x(&[3])), "cbz x3, .+8");
    assert_eq!(ends(0x3600_0043), (Ends::Conditional, x(&[3])), "tbz w3, #0, .+8");
    assert_eq!(ends(0xd61f_00a0), (Ends::Indirect, x(&[5])), "br x5");
    assert_eq!(ends(0xd63f_00a0), (Ends::IndirectCall, x(&[5])), "blr x5");
    for known in [0x1400_0002, 0x9400_0000, 0xd65f_03c0] {
        assert_eq!(ends(known), (Ends::Known, NONE), "b, bl, ret: {known:#x}");
    }
}

#[test]
fn loads_and_stores_distinguish_address_from_value() {
    assert_eq!(of(0xf869_782a), (x(&[1, 9]), NONE, x(&[10])), "ldr x10, [x1, x9, lsl #3]");
    assert_eq!(of(0xf900_098a), (x(&[12]), x(&[10]), NONE), "str x10, [x12, #16]");
    assert_eq!(of(0xa941_0fe2), (NONE, NONE, x(&[2, 3])), "ldp x2, x3, [sp, #16]");
    assert_eq!(of(0xadbf_0480), (x(&[4]), v(&[0, 1]), NONE), "stp q0, q1, [x4, #-32]!");
    assert_eq!(of(0xb980_00c5), (x(&[6]), NONE, x(&[5])), "ldrsw x5, [x6]");
    assert_eq!(of(0x5800_0007), (NONE, NONE, x(&[7])), "ldr x7, .");
    assert_eq!(of(0xb85f_c128), (x(&[9]), NONE, x(&[8])), "ldur w8, [x9, #-4]");
    assert_eq!(of(0x3ce3_6843), (x(&[2, 3]), NONE, v(&[3])), "ldr q3, [x2, x3]");
    assert_eq!(plain_of(0xf980_0020), (NONE, NONE), "prfm pldl1keep, [x1]");
}

#[test]
fn stores_past_the_caches_are_known_with_their_size() {
    let bytes = |word: u32| decode(&word.to_le_bytes()).non_temporal_bytes;
    assert_eq!(bytes(0xac00_7c1f), 32, "stnp q31, q31, [x0]");
    assert_eq!(bytes(0x6c00_0400), 16, "stnp d0, d1, [x0]");
    assert_eq!(bytes(0x2c00_0400), 8, "stnp s0, s1, [x0]");
    assert_eq!(bytes(0xa801_0440), 16, "stnp x0, x1, [x2, #16]");
    assert_eq!(bytes(0x2800_0440), 8, "stnp w0, w1, [x2]");
    assert_eq!(of(0xa801_0440), (x(&[2]), x(&[0, 1]), NONE), "stnp x0, x1, [x2, #16]");
    assert_eq!(bytes(0xa840_0440), 0, "ldnp x0, x1, [x2]");
    assert_eq!(bytes(0xa900_0440), 0, "stp x0, x1, [x2]");
}

#[test]
fn a_base_advanced_by_an_access_does_not_depend_on_the_load() {
    assert_eq!(of(0xf840_8420), (x(&[1]), NONE, x(&[0])), "ldr x0, [x1], #8");
}

#[test]
fn arithmetic_joins_its_operands() {
    assert_eq!(plain_of(0x8b02_0020), (x(&[1, 2]), x(&[0])), "add x0, x1, x2");
    assert_eq!(plain_of(0x9100_2020), (x(&[1]), x(&[0])), "add x0, x1, #8");
    assert_eq!(plain_of(0xeb04_007f), (x(&[3, 4]), FLAGS), "cmp x3, x4");
    assert_eq!(plain_of(0xf100_04bf), (x(&[5]), FLAGS), "cmp x5, #1");
    assert_eq!(plain_of(0xea03_0041), (x(&[2, 3]), x(&[1]) | FLAGS), "ands x1, x2, x3");
    assert_eq!(plain_of(0xca03_0041), (x(&[2, 3]), x(&[1])), "eor x1, x2, x3");
    assert_eq!(plain_of(0x9b03_1041), (x(&[2, 3, 4]), x(&[1])), "madd x1, x2, x3, x4");
    assert_eq!(plain_of(0xd280_00a1), (NONE, x(&[1])), "mov x1, #5");
    assert_eq!(plain_of(0xf2a0_00c1), (x(&[1]), x(&[1])), "movk x1, #6, lsl #16");
    assert_eq!(plain_of(0xb37c_1c62), (x(&[2, 3]), x(&[2])), "bfi x2, x3, #4, #8");
    assert_eq!(plain_of(0xd344_2c62), (x(&[3]), x(&[2])), "ubfx x2, x3, #4, #8");
    assert_eq!(plain_of(0x93c3_1041), (x(&[2, 3]), x(&[1])), "extr x1, x2, x3, #4");
    assert_eq!(plain_of(0x9a83_0041), (x(&[2, 3]) | FLAGS, x(&[1])), "csel x1, x2, x3, eq");
    assert_eq!(plain_of(0xfa42_0020), (x(&[1, 2]) | FLAGS, FLAGS), "ccmp x1, x2, #0, eq");
    assert_eq!(plain_of(0x9a03_0041), (x(&[2, 3]) | FLAGS, x(&[1])), "adc x1, x2, x3");
    assert_eq!(plain_of(0xdac0_1041), (x(&[2]), x(&[1])), "clz x1, x2");
    assert_eq!(plain_of(0x9ac3_0841), (x(&[2, 3]), x(&[1])), "udiv x1, x2, x3");
    assert_eq!(plain_of(0x9000_0001), (NONE, x(&[1])), "adrp x1, .");
    assert_eq!(plain_of(0x9400_0000), (NONE, x(&[30])), "bl .");
    assert_eq!(plain_of(0xd63f_00a0), (x(&[5]), x(&[30])), "blr x5");
    assert_eq!(plain_of(0xd53b_e043), (NONE, x(&[3])), "mrs x3, cntvct_el0");
    assert_eq!(plain_of(0xd503_201f), (NONE, NONE), "nop");
}

#[test]
fn instructions_that_order_memory_are_known() {
    let order = |word: u32| decode(&word.to_le_bytes()).order;
    assert_eq!(order(0xd503_3bbf), Order::Fence, "dmb ish");
    assert_eq!(order(0xd503_3abf), Order::Free, "dmb ishst");
    assert_eq!(order(0xd503_3f9f), Order::Fence, "dsb sy");
    assert_eq!(order(0xd503_3fdf), Order::Fence, "isb");
    assert_eq!(order(0xd400_0001), Order::Fence, "svc #0");
    for (word, instruction) in [
        (0xc8a1_7c62, "cas x1, x2, [x3]"),
        (0x4822_7cc4, "casp x2, x3, x4, x5, [x6]"),
        (0xf821_0062, "ldadd x1, x2, [x3]"),
        (0xf8e1_8062, "swpal x1, x2, [x3]"),
        (0xc85f_7c41, "ldxr x1, [x2]"),
        (0xc87f_8861, "ldaxp x1, x2, [x3]"),
    ] {
        assert_eq!(order(word), Order::Atomic, "{instruction}");
    }
    assert_eq!(order(0xc8df_fc41), Order::Free, "ldar x1, [x2]");
    assert_eq!(order(0xc803_7c41), Order::Free, "stxr w3, x1, [x2]");
}

#[test]
fn atomic_and_ordered_accesses_name_their_registers() {
    assert_eq!(of(0xc8a1_7c62), (x(&[3]), x(&[1, 2]), x(&[1])), "cas x1, x2, [x3]");
    let pair = (x(&[6]), x(&[2, 3, 4, 5]), x(&[2, 3]));
    assert_eq!(of(0x4822_7cc4), pair, "casp x2, x3, x4, x5, [x6]");
    assert_eq!(of(0xf821_0062), (x(&[3]), x(&[1]), x(&[2])), "ldadd x1, x2, [x3]");
    assert_eq!(of(0xc87f_8861), (x(&[3]), NONE, x(&[1, 2])), "ldaxp x1, x2, [x3]");
    assert_eq!(of(0xc803_7c41), (x(&[2]), x(&[1]), x(&[3])), "stxr w3, x1, [x2]");
    assert_eq!(of(0xc8df_fc41), (x(&[2]), NONE, x(&[1])), "ldar x1, [x2]");
    assert_eq!(of(0xc89f_fc41), (x(&[2]), x(&[1]), NONE), "stlr x1, [x2]");
}

#[test]
fn structures_of_vectors_are_followed() {
    assert_eq!(of(0x4c40_a020), (x(&[1]), NONE, v(&[0, 1])), "ld1 {{v0.16b, v1.16b}}, [x1]");
    assert_eq!(of(0x0dc2_9022), (x(&[1]), v(&[2]), v(&[2])), "ld1 {{v2.s}}[1], [x1], x2");
    assert_eq!(of(0x4c00_0824), (x(&[1]), v(&[4, 5, 6, 7]), NONE), "st4 {{v4.4s-v7.4s}}, [x1]");
    assert_eq!(of(0x4d40_cc23), (x(&[1]), NONE, v(&[3])), "ld1r {{v3.2d}}, [x1]");
}

#[test]
fn values_are_followed_between_vectors_and_general_registers() {
    assert_eq!(plain_of(0x9e66_0041), (v(&[2]), x(&[1])), "fmov x1, d2");
    assert_eq!(plain_of(0x9e67_0041), (x(&[2]), v(&[1])), "fmov d1, x2");
    assert_eq!(plain_of(0x9e62_0041), (x(&[2]), v(&[1])), "scvtf d1, x2");
    assert_eq!(plain_of(0x9e78_0041), (v(&[2]), x(&[1])), "fcvtzs x1, d2");
    assert_eq!(plain_of(0x4e08_0c41), (x(&[2]), v(&[1])), "dup v1.2d, x2");
    assert_eq!(plain_of(0x4e18_1c41), (x(&[2]) | v(&[1]), v(&[1])), "mov v1.d[1], x2");
    assert_eq!(plain_of(0x4e08_3c41), (v(&[2]), x(&[1])), "umov x1, v2.d[0]");
}

#[test]
fn vectors_join_their_operands_and_some_their_own_value() {
    let (two, three) = (v(&[2, 3]), v(&[1, 2, 3]));
    for (word, reads, instruction) in [
        (0x1e6e_1001, NONE, "fmov d1, #1.0"),
        (0x1e63_2841, two, "fadd d1, d2, d3"),
        (0x1f43_1041, v(&[2, 3, 4]), "fmadd d1, d2, d3, d4"),
        (0x1e63_0c41, two | FLAGS, "fcsel d1, d2, d3, eq"),
        (0x1e61_4041, v(&[2]), "fneg d1, d2"),
        (0x4e63_cc41, three, "fmla v1.2d, v2.2d, v3.2d"),
        (0x4ee3_8441, two, "add v1.2d, v2.2d, v3.2d"),
        (0x4ea3_9441, three, "mla v1.4s, v2.4s, v3.4s"),
        (0x6e63_1c41, three, "bsl v1.16b, v2.16b, v3.16b"),
        (0x6e23_1c41, two, "eor v1.16b, v2.16b, v3.16b"),
        (0x6e08_4441, v(&[1, 2]), "mov v1.d[0], v2.d[1]"),
        (0x4eb1_b841, v(&[2]), "addv s1, v2.4s"),
        (0x4e20_0841, v(&[2]), "rev64 v1.16b, v2.16b"),
        (0x6f00_e401, NONE, "movi v1.2d, #0"),
        (0x4f43_5441, v(&[2]), "shl v1.2d, v2.2d, #3"),
        (0x4f7d_1441, v(&[1, 2]), "ssra v1.2d, v2.2d, #3"),
        (0x4fc3_9041, two, "fmul v1.2d, v2.2d, v3.d[0]"),
        (0x4fc3_1041, three, "fmla v1.2d, v2.2d, v3.d[0]"),
        (0x4f83_8041, two, "mul v1.4s, v2.4s, v3.s[0]"),
        (0x0ea3_8041, three, "smlal v1.2d, v2.2s, v3.2s"),
        (0x0ea3_c041, two, "smull v1.2d, v2.2s, v3.2s"),
        (0x6ea0_2841, v(&[2]), "uaddlp v1.2d, v2.4s"),
        (0x4e83_9441, three, "sdot v1.4s, v2.16b, v3.16b"),
        (0x4e03_0041, two, "tbl v1.16b, {v2.16b}, v3.16b"),
        (0x4e28_4841, v(&[1, 2]), "aese v1.16b, v2.16b"),
    ] {
        assert_eq!(plain_of(word), (reads, v(&[1])), "{instruction}");
    }
    assert_eq!(plain_of(0x1e62_2020), (v(&[1, 2]), FLAGS), "fcmp d1, d2");
}

proptest! {
    #[test]
    fn no_word_makes_it_panic(word: u32) {
        decode(&word.to_le_bytes());
    }

    #[test]
    fn what_is_no_word_is_not_known(bytes in prop::collection::vec(any::<u8>(), 0..4)) {
        prop_assert_eq!(decode(&bytes), Operands::default());
    }
}
