# One cpu that waits: before, while and after it is counted.
    .include "common.inc"

# Executes an instruction a thousand times, and reports the time by the time stamp counter.
.macro wait instruction:vararg
    begin_timing
    mov $1000, %ecx
1:  \instruction
    dec %ecx
    jnz 1b
    say_timing
.endm

    .globl _start
_start:
    wait pause
    wait in $0x61, %al
    wait nop
    mark BEGIN
    wait pause
    mark END
    leave_qemu
