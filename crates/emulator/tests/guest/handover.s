# Two cpus pass a line back and forth, ROUNDS times, and report the time.
    .include "cpus.inc"

cpu_begins:
    begin_together
    mov %edi, %esi                              # cpu 0 waits for even numbers, 1 for odd ones
    mov $ROUNDS, %ecx
    rdtsc
    mov %eax, %ebx
6:  cmp %esi, line
    jne 6b
    lea 1(%esi), %eax
    mov %eax, line
    add $2, %esi
    dec %ecx
    jnz 6b
    rdtsc
    sub %ebx, %eax
    mov %eax, took(, %edi, 4)
    tell_times

    .balign 64
line: .long 0
