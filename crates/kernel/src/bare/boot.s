# The way from the boot loader, and from a cpu's start-up signal, to Rust in long mode.
#
# Both meet in 32-bit protected mode with paging off. The boot cpu maps the first 4 GiB with
# pages of 2 MiB, which is enough to find all memory and to make the real page tables.

# ---- PVH: an ELF note names the entry (Xen public/elfnote.h, XEN_ELFNOTE_PHYS32_ENTRY) ----
.section .note.Xen, "a", @note
.align 4
.long 4, 8, 18
.asciz "Xen"
.long pvh_start, 0

# ---- Multiboot2: a header in the first 32 KiB (specification 2.0, section 3.1) ----
.section .multiboot2, "a", @progbits
.align 8
multiboot2_header:
.long 0xe85250d6, 0, multiboot2_end - multiboot2_header
.long -(0xe85250d6 + 0 + (multiboot2_end - multiboot2_header))
.align 8
.short 1, 0                          # wanted: memory map, RSDP of ACPI 1 and 2
.long 20, 6, 14, 15
.align 8
.short 3, 0                          # entry address
.long 12, multiboot2_start
.align 8
.short 0, 0
.long 8
multiboot2_end:

.section .boot, "ax", @progbits
.code32
.global pvh_start
multiboot2_start:
    mov edx, 2
    jmp 0f
pvh_start:
    mov edx, 1
0:  cld
    cli
    mov esp, offset boot_stack_top
    mov esi, ebx                     # what the loader says
    mov ebp, edx                     # which loader
    mov edi, offset boot_pdpt
    or edi, 3
    mov [boot_pml4], edi
    mov eax, offset boot_pd
    or eax, 3
    xor ecx, ecx
1:  mov [boot_pdpt + ecx*8], eax
    add eax, 4096
    inc ecx
    cmp ecx, 4
    jb 1b
    mov eax, 0x83
    xor ecx, ecx
2:  mov [boot_pd + ecx*8], eax
    add eax, 0x200000
    inc ecx
    cmp ecx, 2048
    jb 2b
    mov eax, offset boot_pml4
    mov cr3, eax
    mov eax, cr4
    or eax, 0x620                    # PAE, OSFXSR, OSXMMEXCPT
    mov cr4, eax
    mov ecx, 0xC0000080
    rdmsr
    or eax, 0x100                    # LME
    wrmsr
    mov eax, 0x80000033              # PG, NE, ET, MP, PE
    mov cr0, eax
    lgdt [boot_gdt_pointer]
    .byte 0xea                       # jump far to 8:boot_long
    .long boot_long
    .word 8

.code64
boot_long:
    mov ax, 16
    mov ds, ax
    mov es, ax
    mov ss, ax
    xor eax, eax
    mov fs, ax
    mov gs, ax
    lea rsp, [rip + boot_stack_top]
    mov edi, esi
    mov esi, ebp
    xor ebp, ebp
    call {main}
3:  hlt
    jmp 3b

# ---- Exceptions and interrupts: number and error code on the stack, then one way for all ----
.macro vector number, code
vector_\number:
    .if \code == 0
    push 0
    .endif
    push \number
    jmp vector_common
.endm
.altmacro
.macro vectors from, to
    .set n, \from
    .rept \to - \from
    .if (n == 8) || ((n >= 10) && (n <= 14)) || (n == 17) || (n == 21) || (n == 29) || (n == 30)
    vector %n, 1
    .else
    vector %n, 0
    .endif
    .set n, n + 1
    .endr
.endm
vectors 0, 32
.noaltmacro
vector_common:
    mov rdi, rsp
    cld
    and rsp, -16
    call {exception}
4:  hlt
    jmp 4b

.global wake_vector
wake_vector:                         # nothing to do but to end a HLT
    push rax
    push rcx
    push rdx
    push rsi
    push rdi
    push r8
    push r9
    push r10
    push r11
    push rbp
    mov rbp, rsp
    and rsp, -16
    cld
    call {wake}
    mov rsp, rbp
    pop rbp
    pop r11
    pop r10
    pop r9
    pop r8
    pop rdi
    pop rsi
    pop rdx
    pop rcx
    pop rax
    iretq

.global ignore_vector
ignore_vector:
    iretq

.section .rodata
.altmacro
.macro vector_address number
    .quad vector_\number
.endm
.align 8
.global exception_vectors
exception_vectors:
    .set n, 0
    .rept 32
    vector_address %n
    .set n, n + 1
    .endr
.noaltmacro

.align 16
boot_gdt: .quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff, 0x00cf9b000000ffff
boot_gdt_pointer: .word 31
    .quad boot_gdt

# ---- Where other cpus start, in real mode; copied to 0x8000 (kept free for it) ----
.align 16
.global trampoline_start
.global trampoline_end
.set T, 0x8000
.set A_gdt_pointer, T + (trampoline_gdt_pointer - trampoline_start)
.set A_cr3, T + (trampoline_cr3 - trampoline_start)
.set A_stack, T + (trampoline_stack - trampoline_start)
.set A_argument, T + (trampoline_argument - trampoline_start)
.set A_entry, T + (trampoline_entry - trampoline_start)
.code16
trampoline_start:
    cli
    cld
    xor ax, ax
    mov ds, ax
    lgdtd [A_gdt_pointer]
    mov eax, cr0
    or eax, 1
    mov cr0, eax
    .byte 0x66, 0xea
    .long T + (trampoline_32 - trampoline_start)
    .word 24
.code32
trampoline_32:
    mov ax, 16
    mov ds, ax
    mov es, ax
    mov ss, ax
    mov eax, cr4
    or eax, 0x620
    mov cr4, eax
    mov eax, [A_cr3]
    mov cr3, eax
    mov ecx, 0xC0000080
    rdmsr
    or eax, 0x100
    wrmsr
    mov eax, 0x80000033
    mov cr0, eax
    .byte 0xea
    .long T + (trampoline_64 - trampoline_start)
    .word 8
.code64
trampoline_64:
    mov ax, 16
    mov ds, ax
    mov es, ax
    mov ss, ax
    xor eax, eax
    mov fs, ax
    mov gs, ax
    mov rsp, [A_stack]
    mov rdi, [A_argument]
    mov rax, [A_entry]
    xor ebp, ebp
    call rax
5:  hlt
    jmp 5b
.align 8
trampoline_gdt: .quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff, 0x00cf9b000000ffff
trampoline_gdt_pointer: .word 31
    .long T + (trampoline_gdt - trampoline_start)
.align 8
.global trampoline_cr3
.global trampoline_stack
.global trampoline_argument
.global trampoline_entry
trampoline_cr3: .quad 0
trampoline_stack: .quad 0
trampoline_argument: .quad 0
trampoline_entry: .quad 0
trampoline_end:

.section .bss
.align 4096
boot_pml4: .skip 4096
boot_pdpt: .skip 4096
boot_pd: .skip 16384
boot_stack: .skip 131072
.global boot_stack_top
boot_stack_top:
.section .text
