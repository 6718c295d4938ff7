# One cpu: loads from both nodes, stores, walks through caches, a device.
# NODE0 and NODE1 are addresses on the nodes.
    .include "common.inc"

# Follows a pointer to itself, and reports the time by the time stamp counter.
.macro chase address, count
    movl $\address, \address
    begin_timing
    mov $\address, %eax
    mov $\count, %ecx
1:  mov (%eax), %eax
    dec %ecx
    jnz 1b
    say_timing
.endm

# Reads every line of a buffer a number of times.
.macro walk address, bytes, rounds
    mov $\rounds, %ebx
2:  mov $\address, %eax
    mov $\bytes / 64, %ecx
3:  mov (%eax), %edx
    add $64, %eax
    dec %ecx
    jnz 3b
    dec %ebx
    jnz 2b
.endm

    .globl _start
_start:
    mov (NODE0), %eax
    mark BEGIN
    phase 0
    chase NODE0, 10000
    phase 1
    chase NODE1, 10000
    phase 2
    mov $5000, %ecx
4:  mov %ecx, (NODE1)
    dec %ecx
    jnz 4b
    phase 3
    walk NODE0, 16384, 2
    phase 4
    walk NODE0, 65536, 2
    phase 5
    mov $10, %ecx
5:  mov 0xfee00020, %eax
    dec %ecx
    jnz 5b
    mark PUBLISH
    mark END
    mov (NODE0), %eax
    leave_qemu
