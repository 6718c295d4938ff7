# From PVH's entry, in 32-bit protected mode, to Rust in long mode: the first 4 GiB at their own
# addresses, with pages of 2 MiB.
.section .note.Xen, "a", @note
.align 4
.long 4, 8, 18                       # XEN_ELFNOTE_PHYS32_ENTRY (Xen public/elfnote.h)
.asciz "Xen"
.long pvh_start, 0

.section .text.boot, "ax", @progbits
.code32
.global pvh_start
pvh_start:
    cld
    cli
    mov esp, offset boot_stack_top
    mov esi, ebx                     # the start info
    mov eax, offset boot_pdpt
    or eax, 3
    mov [boot_pml4], eax
    mov eax, offset boot_pd
    or eax, 3
    xor ecx, ecx
1:  mov [boot_pdpt + ecx*8], eax
    add eax, 4096
    inc ecx
    cmp ecx, 4
    jb 1b
    mov eax, 0x83                    # present, writable, large
    xor ecx, ecx
2:  mov [boot_pd + ecx*8], eax
    add eax, 0x200000
    inc ecx
    cmp ecx, 2048
    jb 2b
    mov eax, offset boot_pml4
    mov cr3, eax
    mov eax, cr4
    or eax, 0x20                     # PAE
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
    lea rsp, [rip + boot_stack_top]
    mov edi, esi
    xor ebp, ebp
    call {main}

.section .rodata
.align 16
boot_gdt: .quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff
boot_gdt_pointer: .word 23
    .quad boot_gdt

.section .bss
.align 4096
boot_pml4: .skip 4096
boot_pdpt: .skip 4096
boot_pd: .skip 16384
boot_stack: .skip 131072
boot_stack_top:
.section .text
