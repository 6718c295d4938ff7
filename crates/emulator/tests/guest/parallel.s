# CPUS cpus at once: cpu i reads LINES lines from TARGETi on, and reports the time.
    .include "cpus.inc"

cpu_begins:
    begin_together
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
    tell_times

    .balign 64
targets: .long TARGET0, TARGET1, TARGET2, TARGET3
