use proptest::prelude::*;

use super::*;
use crate::machine::Class;

fn general(numbers: &[u8]) -> Registers {
    numbers.iter().fold(Registers::NONE, |all, &number| all | Registers::general(number))
}

fn vector(numbers: &[u8]) -> Registers {
    numbers.iter().fold(Registers::NONE, |all, &number| all | Registers::vector(number))
}

/// Returns the registers of the address, those read, and those written, without the flags.
fn of(bytes: &[u8]) -> (Registers, Registers, Registers) {
    let known = decode(bytes);
    (known.address, known.reads.less(FLAGS), known.writes.less(FLAGS))
}

#[test]
fn loads_and_stores_of_general_registers() {
    let none = Registers::NONE;
    // mov 8(%rbx,%r9,8),%r10
    assert_eq!(of(&[0x4e, 0x8b, 0x54, 0xcb, 0x08]), (general(&[3, 9]), none, general(&[10])));
    // mov %r10,(%r12)
    assert_eq!(of(&[0x4d, 0x89, 0x14, 0x24]), (general(&[12]), general(&[10]), none));
    // mov 0x10(%rip),%rax
    assert_eq!(of(&[0x48, 0x8b, 0x05, 0x10, 0, 0, 0]), (none, none, general(&[0])));
    // movzbl (%rdi,%rcx,1),%eax
    assert_eq!(of(&[0x0f, 0xb6, 0x04, 0x0f]), (general(&[7, 1]), none, general(&[0])));
    // mov %gs:0x28,%rax
    assert_eq!(of(&[0x65, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0]), (none, none, general(&[0])));
    // push %r15, pop %r15, ret
    assert_eq!(of(&[0x41, 0x57]), (general(&[4]), general(&[15]), none));
    assert_eq!(of(&[0x41, 0x5f]), (general(&[4]), none, general(&[15])));
    assert_eq!(of(&[0xc3]), (general(&[4]), none, none));
}

#[test]
fn arithmetic_joins_its_operands_and_a_register_less_itself_is_of_nothing() {
    let none = Registers::NONE;
    // add (%rax),%rdx; add %rdx,%rcx; lea 8(%rax,%rbx,4),%rsi
    assert_eq!(of(&[0x48, 0x03, 0x10]), (general(&[0]), general(&[2]), general(&[2])));
    assert_eq!(of(&[0x48, 0x01, 0xd1]), (none, general(&[1, 2]), general(&[1])));
    assert_eq!(of(&[0x48, 0x8d, 0x74, 0x98, 8]), (none, general(&[0, 3]), general(&[6])));
    // cmp %rax,(%rbx); test %rax,%rax; xor %ecx,%ecx; sub %rdx,%rdx
    assert_eq!(of(&[0x48, 0x39, 0x03]), (general(&[3]), general(&[0]), none));
    assert_eq!(of(&[0x48, 0x85, 0xc0]).2, none);
    assert_eq!(of(&[0x31, 0xc9]), (none, none, general(&[1])));
    assert_eq!(of(&[0x48, 0x29, 0xd2]), (none, none, general(&[2])));
    // imul %rbx,%rax; mul %rbx; shl %cl,%rdx; cmovne %rcx,%rdx
    assert_eq!(of(&[0x48, 0x0f, 0xaf, 0xc3]), (none, general(&[0, 3]), general(&[0])));
    assert_eq!(of(&[0x48, 0xf7, 0xe3]), (none, general(&[0, 3]), general(&[0, 2])));
    assert_eq!(of(&[0x48, 0xd3, 0xe2]), (none, general(&[1, 2]), general(&[2])));
    assert_eq!(of(&[0x48, 0x0f, 0x45, 0xd1]), (none, general(&[1, 2]), general(&[2])));
}

#[test]
fn thirty_two_bit_code_has_increments_where_sixty_four_bit_code_has_prefixes() {
    assert_eq!(of(&[0x49]), (Registers::NONE, general(&[1]), general(&[1])));
    // mov (%eax),%eax
    assert_eq!(of(&[0x8b, 0x00]), (general(&[0]), Registers::NONE, general(&[0])));
}

#[test]
fn the_second_byte_of_a_register_counts_as_the_register() {
    // movzbl %bh,%ebp; movzbl %ch,%ecx; mov %ah,%dl; mov $1,%dh; with REX the same number is %bpl
    assert_eq!(of(&[0x0f, 0xb6, 0xef]), (Registers::NONE, general(&[3]), general(&[5])));
    assert_eq!(of(&[0x0f, 0xb6, 0xcd]), (Registers::NONE, general(&[1]), general(&[1])));
    assert_eq!(of(&[0x88, 0xe2]), (Registers::NONE, general(&[0]), general(&[2])));
    assert_eq!(of(&[0xb6, 1]), (Registers::NONE, Registers::NONE, general(&[2])));
    assert_eq!(of(&[0x40, 0x0f, 0xb6, 0xed]), (Registers::NONE, general(&[5]), general(&[5])));
    // sete %al keeps the other bytes; setb (%rbx)
    assert_eq!(decode(&[0x0f, 0x94, 0xc0]).reads, general(&[0]) | FLAGS);
    assert_eq!(decode(&[0x0f, 0x92, 0x03]).reads, FLAGS);
}

#[test]
fn vectors_are_followed_from_memory_to_addresses() {
    let none = Registers::NONE;
    // movdqu (%rdi),%xmm9; movntdq %xmm1,(%rsi); paddq %xmm2,%xmm3; pxor %xmm3,%xmm3
    assert_eq!(of(&[0xf3, 0x44, 0x0f, 0x6f, 0x0f]), (general(&[7]), none, vector(&[9])));
    assert_eq!(of(&[0x66, 0x0f, 0xe7, 0x0e]), (general(&[6]), vector(&[1]), none));
    assert_eq!(of(&[0x66, 0x0f, 0xd4, 0xda]), (none, vector(&[2, 3]), vector(&[3])));
    assert_eq!(of(&[0x66, 0x0f, 0xef, 0xdb]), (none, none, vector(&[3])));
    // movq %xmm0,%rax; movq %rax,%xmm0
    assert_eq!(of(&[0x66, 0x48, 0x0f, 0x7e, 0xc0]), (none, vector(&[0]), general(&[0])));
    assert_eq!(of(&[0x66, 0x48, 0x0f, 0x6e, 0xc0]), (none, general(&[0]), vector(&[0])));
    // pslld $1,%xmm3; vpslld $1,%xmm3,%xmm2
    assert_eq!(of(&[0x66, 0x0f, 0x72, 0xf3, 1]), (none, vector(&[3]), vector(&[3])));
    assert_eq!(of(&[0xc5, 0xe9, 0x72, 0xf3, 1]), (none, vector(&[3]), vector(&[2])));
    // vmovdqu (%rax),%ymm8; vpaddq (%rax),%ymm1,%ymm2; vpxor %xmm0,%xmm0,%xmm0
    assert_eq!(of(&[0xc5, 0x7e, 0x6f, 0x00]), (general(&[0]), none, vector(&[8])));
    assert_eq!(of(&[0xc5, 0xf5, 0xd4, 0x10]), (general(&[0]), vector(&[1]), vector(&[2])));
    assert_eq!(of(&[0xc5, 0xf9, 0xef, 0xc0]), (none, none, vector(&[0])));
    // vmovdqu64 (%rax),%zmm17; vfmadd231pd (%rax),%ymm1,%ymm2; andn %rcx,%rbx,%rax
    let zmm17 = [0x62, 0xe1, 0xfe, 0x48, 0x6f, 0x08];
    assert_eq!(of(&zmm17), (general(&[0]), none, vector(&[17])));
    let fused = [0xc4, 0xe2, 0xf5, 0xb8, 0x10];
    assert_eq!(of(&fused), (general(&[0]), vector(&[1, 2]), vector(&[2])));
    // blsr %rax,%rcx; vgatherdps %ymm2,(%rbx,%ymm0,4),%ymm1
    let blsr = [0xc4, 0xe2, 0xf0, 0xf3, 0xc8];
    assert_eq!(of(&blsr), (none, general(&[0]), general(&[1])));
    let gather = decode(&[0xc4, 0xe2, 0x6d, 0x92, 0x0c, 0x83]);
    assert_eq!(gather.address.less(general(&[0])), general(&[3]) | vector(&[0]));
    let andn = [0xc4, 0xe2, 0xe0, 0xf2, 0xc1];
    assert_eq!(of(&andn), (none, general(&[1, 3]), general(&[0])));
}

#[test]
fn branches_are_known_by_the_values_that_decide_them() {
    let ends = |bytes: &[u8]| (decode(bytes).ends, decode(bytes).reads);
    assert_eq!(ends(&[0x75, 0xf6]), (Ends::Conditional, FLAGS), "jne");
    assert_eq!(ends(&[0x0f, 0x84, 0, 1, 0, 0]), (Ends::Conditional, FLAGS), "je");
    assert_eq!(ends(&[0xff, 0xe0]), (Ends::Indirect, general(&[0])), "jmp *%rax");
    assert_eq!(ends(&[0x41, 0xff, 0xd3]), (Ends::IndirectCall, general(&[11])), "call *%r11");
    for known in [&[0xeb, 0x10][..], &[0xe8, 0, 0, 0, 0], &[0xc3], &[0xff, 0x30]] {
        assert_eq!(decode(known).ends, Ends::Known, "jmp, call, ret, push (%rax)");
    }
}

#[test]
fn instructions_have_classes() {
    let class = |bytes: &[u8]| decode(bytes).class;
    for (bytes, expected) in [
        (&[0x48, 0x83, 0xc0, 8][..], Class::Constant),
        (&[0x48, 0x8d, 0x40, 8], Class::Constant),
        (&[0x83, 0xc0, 8], Class::Integer),
        (&[0x48, 0x83, 0x00, 8], Class::Integer),
        (&[0x48, 0x8d, 0x04, 0x18], Class::Integer),
        (&[0x48, 0x8d, 0x04, 0x98], Class::Scaled),
        (&[0x48, 0x8d, 0x44, 0x98, 8], Class::ScaledParts),
        (&[0x48, 0x8d, 0x44, 0x18, 8], Class::ThreeParts),
        (&[0x49, 0x8d, 0x44, 0x1d, 0], Class::Integer),
        (&[0xb8, 1, 0, 0, 0], Class::Integer),
        (&[0x31, 0xc0], Class::Move),
        (&[0x66, 0x0f, 0xef, 0xc0], Class::Move),
        (&[0x48, 0x11, 0xd8], Class::Select),
        (&[0x48, 0xc1, 0xe0, 3], Class::Shift),
        (&[0x0f, 0x43, 0xc1], Class::Select),
        (&[0x0f, 0x46, 0xc1], Class::TwoFlags),
        (&[0xf3, 0x0f, 0xb8, 0xc1], Class::BitCount),
        (&[0xf3, 0x0f, 0xbc, 0xc1], Class::TrailingZeros),
        (&[0x0f, 0xbd, 0xc1], Class::BitScan),
        (&[0xf2, 0x0f, 0x51, 0xc1], Class::FpRoot),
        (&[0xf2, 0x0f, 0x5e, 0xc1], Class::FpDivide),
        (&[0xf3, 0x0f, 0x5e, 0xc1], Class::SingleDivide),
        (&[0x0f, 0x51, 0xc1], Class::SingleRoot),
        (&[0x66, 0x0f, 0x72, 0xf0, 3], Class::VectorShift),
        (&[0xc4, 0xe3, 0x7d, 0x39, 0xc0, 1], Class::Lanes),
        (&[0x66, 0x48, 0x0f, 0x6e, 0xc0], Class::ToVector),
        (&[0x66, 0x0f, 0xd7, 0xc0], Class::FromVector),
        (&[0x66, 0x0f, 0x6e, 0x00], Class::Move),
        (&[0x66, 0x0f, 0x2e, 0xc1], Class::FpCompare),
        (&[0xf2, 0x48, 0x0f, 0x2a, 0xc0], Class::FpConvert),
        (&[0xc4, 0xe2, 0xf5, 0xb8, 0xc2], Class::FpFused),
        (&[0x66, 0x0f, 0xf4, 0xc1], Class::VectorMultiply),
        (&[0x48, 0xf7, 0xe3], Class::WideMultiply),
        (&[0xc4, 0xe2, 0xfb, 0xf6, 0xd2], Class::WideMultiply),
        (&[0xc4, 0xe2, 0xfb, 0xf5, 0xc1], Class::Multiply),
        (&[0x66, 0x0f, 0x38, 0x00, 0xc0], Class::ByteShuffle),
        (&[0x66, 0x0f, 0x67, 0xc0], Class::ByteShuffle),
        (&[0x66, 0x0f, 0x73, 0xf8, 4], Class::ByteShuffle),
        (&[0xc4, 0xe2, 0x6d, 0x92, 0x0c, 0x83], Class::Gather),
    ] {
        assert_eq!(class(bytes), expected, "{bytes:02x?}");
    }
}

#[test]
fn calls_repetitions_and_plain_addresses_are_known() {
    let calls = |bytes: &[u8]| decode(bytes).calls;
    assert!(calls(&[0xe8, 0, 0, 0, 0]) && calls(&[0xc3]) && calls(&[0xff, 0xd0]));
    assert!(!calls(&[0xeb, 0]) && !calls(&[0xff, 0xe0]));
    let repeated = |bytes: &[u8]| decode(bytes).repeated_bytes;
    assert_eq!([repeated(&[0xf3, 0xaa]), repeated(&[0xf3, 0x48, 0xab])], [1, 8]);
    assert_eq!([repeated(&[0xf3, 0xa5]), repeated(&[0xa4])], [4, 0]);
    let plain = |bytes: &[u8]| decode(bytes).plain_address;
    assert!(plain(&[0x48, 0x8b, 0x43, 8]) && plain(&[0x57]) && plain(&[0x48, 0x89, 0x44, 0x24, 8]));
    assert!(!plain(&[0x48, 0x8b, 0x04, 0xcb]), "with an index");
    assert!(!plain(&[0x48, 0x8b, 0x05, 8, 0, 0, 0]), "of the instruction's own address");
    assert!(!plain(&[0xf2, 0x0f, 0x10, 0x03]), "a vector");
}

#[test]
fn products_read_one_register_and_what_only_reads_memory_stores_nothing() {
    let (rax, rdx) = (general(&[0]), general(&[2]));
    assert_eq!(of(&[0x48, 0xf7, 0x23]), (general(&[3]), rax, rax | rdx), "mulq (%rbx)");
    assert_eq!(of(&[0x48, 0xf7, 0x33]), (general(&[3]), rax | rdx, rax | rdx), "divq (%rbx)");
    // divq (%rbx); testq $1,(%rbx); cmpq $0,(%rbx); btq $1,(%rbx); jmp *(%rbx); call *(%rbx)
    for code in [
        &[0x48, 0xf7, 0x33][..],
        &[0x48, 0xf7, 0x03, 1, 0, 0, 0],
        &[0x48, 0x83, 0x3b, 0],
        &[0x48, 0x0f, 0xba, 0x23, 1],
        &[0xff, 0x23],
        &[0xff, 0x13],
    ] {
        let known = decode(code);
        assert!(known.memory && !known.stores, "{code:02x?}");
    }
    // notq (%rbx); addq $1,(%rbx)
    for code in [&[0x48, 0xf7, 0x13][..], &[0x48, 0x83, 0x03, 1]] {
        assert!(decode(code).stores && decode(code).modifies(), "{code:02x?}");
    }
}

#[test]
fn addresses_of_several_parts_and_loads_that_extend_a_sign_are_known() {
    let far = |bytes: &[u8]| decode(bytes).far_address;
    assert!(far(&[0x48, 0x8b, 0x04, 0xcb]), "mov (%rbx,%rcx,8),%rax");
    assert!(far(&[0x48, 0x8b, 0x44, 0x0b, 8]), "mov 8(%rbx,%rcx),%rax");
    assert!(!far(&[0x48, 0x8b, 0x04, 0x0b]), "mov (%rbx,%rcx),%rax");
    assert!(!far(&[0x48, 0x8b, 0x43, 8]), "mov 8(%rbx),%rax");
    let signed = |bytes: &[u8]| decode(bytes).extends_sign;
    assert!(signed(&[0x48, 0x63, 0x03]) && signed(&[0x0f, 0xbe, 0x03]));
    assert!(!signed(&[0x48, 0x63, 0xc3]) && !signed(&[0x0f, 0xb6, 0x03]));
}

#[test]
fn branches_that_jump_and_wide_divisions_are_known() {
    let jumps = |bytes: &[u8]| decode(bytes).jumps;
    assert!(jumps(&[0x75, 0xf6]) && jumps(&[0x0f, 0x85, 0, 0xff, 0xff, 0xff]), "backward");
    assert!(jumps(&[0xeb, 4]) && jumps(&[0xff, 0xe0]), "always");
    assert!(!jumps(&[0x75, 0x06]) && !jumps(&[0x0f, 0x85, 0, 1, 0, 0]) && !jumps(&[0xff, 0xd0]));
    let class = |bytes: &[u8]| decode(bytes).class;
    assert_eq!(class(&[0x48, 0xf7, 0xf1]), Class::Divide);
    assert_eq!([class(&[0xf7, 0xf1]), class(&[0xf6, 0xf1])], [Class::NarrowDivide; 2]);
}

#[test]
fn instructions_that_order_memory_are_known() {
    let order = |bytes: &[u8]| decode(bytes).order;
    assert_eq!(order(&[0x0f, 0xae, 0xe8]), Order::Fence, "lfence");
    assert_eq!(order(&[0x0f, 0xae, 0xf0]), Order::Fence, "mfence");
    assert_eq!(order(&[0x0f, 0xae, 0xf8]), Order::Drain, "sfence");
    assert_eq!(order(&[0x0f, 0xae, 0x38]), Order::Free, "clflush (%rax)");
    assert_eq!(order(&[0x0f, 0x01, 0xf9]), Order::Fence, "rdtscp");
    assert_eq!(order(&[0x0f, 0xa2]), Order::Fence, "cpuid");
    assert_eq!(order(&[0xf0, 0x48, 0x0f, 0xc1, 0x07]), Order::Atomic, "lock xadd %rax,(%rdi)");
    assert_eq!(order(&[0x48, 0x87, 0x07]), Order::Atomic, "xchg %rax,(%rdi)");
    assert_eq!(order(&[0x48, 0x87, 0xc7]), Order::Free, "xchg %rax,%rdi");
}

#[test]
fn stores_past_the_caches_are_known_with_their_size() {
    let bytes = |code: &[u8]| {
        let known = decode(code);
        assert!(known.memory || known.non_temporal_bytes == 0);
        known.non_temporal_bytes
    };
    assert_eq!(bytes(&[0x0f, 0xc3, 0x08]), 4, "movnti %ecx,(%rax)");
    assert_eq!(bytes(&[0x48, 0x0f, 0xc3, 0x08]), 8, "movnti %rcx,(%rax)");
    assert_eq!(bytes(&[0x0f, 0x2b, 0x08]), 16, "movntps %xmm1,(%rax)");
    assert_eq!(bytes(&[0x66, 0x0f, 0x2b, 0x08]), 16, "movntpd %xmm1,(%rax)");
    assert_eq!(bytes(&[0xf3, 0x0f, 0x2b, 0x08]), 4, "movntss %xmm1,(%rax)");
    assert_eq!(bytes(&[0xf2, 0x0f, 0x2b, 0x08]), 8, "movntsd %xmm1,(%rax)");
    assert_eq!(bytes(&[0x66, 0x0f, 0xe7, 0x0e]), 16, "movntdq %xmm1,(%rsi)");
    assert_eq!(bytes(&[0x0f, 0xe7, 0x0e]), 8, "movntq %mm1,(%rsi)");
    assert_eq!(bytes(&[0xc5, 0xf8, 0x2b, 0x08]), 16, "vmovntps %xmm1,(%rax)");
    assert_eq!(bytes(&[0xc5, 0xfd, 0xe7, 0x08]), 32, "vmovntdq %ymm1,(%rax)");
    assert_eq!(bytes(&[0xc4, 0xc1, 0x7d, 0xe7, 0x08]), 32, "vmovntdq %ymm1,(%r8)");
    assert_eq!(bytes(&[0x62, 0xf1, 0x7c, 0x48, 0x2b, 0x08]), 64, "vmovntps %zmm1,(%rax)");
    let masked = [0x66, 0x0f, 0xf7, 0xca];
    assert_eq!(bytes(&masked), 1, "maskmovdqu %xmm2,%xmm1");
    assert_eq!(of(&masked), (general(&[7]), vector(&[1, 2]), Registers::NONE));
    assert_eq!(bytes(&[0x0f, 0x29, 0x08]), 0, "movaps %xmm1,(%rax)");
    assert_eq!(bytes(&[0x66, 0x0f, 0x38, 0x2a, 0x08]), 0, "movntdqa (%rax),%xmm1");
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..16)) {
        decode(&bytes);
    }
}
