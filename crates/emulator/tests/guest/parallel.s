# CPUS cpus at once: cpu i reads LINES lines from TARGETi on, and says how long it took.
    .include "common.inc"

# Waits until all have come here for the nth time.
.macro barrier n
    mov $1, %eax
    lock xadd %eax, arrived
1:  cmpl $\n * CPUS, arrived
    jge 2f
    pause
    jmp 1b
2:
.endm

    .set TRAMPOLINE, 0x8000
    .set TRAMPOLINE_GDT, 0x7000
    .set LAPIC_ID, 0xfee00020
    .set LAPIC_COMMAND, 0xfee00300
    .globl _start
_start:
    lgdt gdt_pointer
    ljmp $8, $3f
3:  mov gdt_pointer, %eax
    mov %eax, TRAMPOLINE_GDT
    mov gdt_pointer + 4, %eax
    mov %eax, TRAMPOLINE_GDT + 4
    mov $16, %ax
    mov %ax, %ds
    mov %ax, %es
    mov $trampoline, %esi
    mov $TRAMPOLINE, %edi
    mov $trampoline_end - trampoline, %ecx
    rep movsb
    movl $0x000c4500, LAPIC_COMMAND             # INIT to all others
    mov $100000, %ecx
4:  dec %ecx
    jnz 4b
    movl $0x000c4600 + TRAMPOLINE / 4096, LAPIC_COMMAND  # start-up
    jmp cpu

trampoline:
    .code16
    cli
    xor %ax, %ax
    mov %ax, %ds
    lgdtl TRAMPOLINE_GDT
    mov %cr0, %eax
    or $1, %al
    mov %eax, %cr0
    ljmpl $8, $started
trampoline_end:
    .code32
started:
    mov $16, %ax
    mov %ax, %ds
    mov %ax, %es

cpu:
    mov LAPIC_ID, %edi
    shr $24, %edi
    barrier 1
    test %edi, %edi
    jnz 5f
    mark BEGIN
    phase 1
5:  barrier 2
    rdtsc
    mov %eax, %ebx
    mov targets(, %edi, 4), %esi
    mov $LINES, %ecx
6:  mov (%esi), %eax
    add $64, %esi
    dec %ecx
    jnz 6b
    rdtsc
    sub %ebx, %eax
    mov %eax, took(, %edi, 4)
    mark PUBLISH
    barrier 3
    test %edi, %edi
    jz 8f
7:  cli
    hlt
    jmp 7b
8:  mark END
    xor %edi, %edi
9:  mov took(, %edi, 4), %eax
    say
    inc %edi
    cmp $CPUS, %edi
    jne 9b
    leave_qemu

    .balign 16
gdt: .quad 0, 0x00cf9a000000ffff, 0x00cf92000000ffff
gdt_pointer: .word 23
    .long gdt
    .balign 64
arrived: .long 0
    .balign 64
targets: .long TARGET0, TARGET1, TARGET2, TARGET3
took: .long 0, 0, 0, 0
