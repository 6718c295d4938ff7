# One cpu: writes 64 KiB of node 0 past the caches, in words, then in vectors, then through the
# caches, and each time reads it.
    .include "common.inc"
    .set BYTES, 65536

# Reads every line.
.macro read
    mov $NODE0, %eax
    mov $BYTES / 64, %ecx
1:  mov (%eax), %edx
    add $64, %eax
    dec %ecx
    jnz 1b
.endm

# Stores by an instruction, a number of bytes at a time, and reports the time up to a fence's end.
.macro write bytes, instruction:vararg
    begin_timing
    mov $NODE0, %eax
    mov $BYTES / \bytes, %ecx
2:  \instruction
    add $\bytes, %eax
    dec %ecx
    jnz 2b
    jmp 3f
3:  sfence
    say_timing
.endm

    .globl _start
_start:
    # SSE: Intel SDM 3A, 9.6.
    mov %cr0, %eax
    and $~4, %eax
    or $2, %eax
    mov %eax, %cr0
    mov %cr4, %eax
    or $0x600, %eax
    mov %eax, %cr4
    mark BEGIN
    phase 0
    write 4, movnti %edx, (%eax)
    phase 1
    read
    phase 2
    write 16, movntps %xmm0, (%eax)
    phase 3
    read
    phase 4
    write 4, mov %edx, (%eax)
    phase 5
    read
    mark PUBLISH
    mark END
    leave_qemu
