//! The smallest programs that a PC boots, in machine code.

use std::iter::repeat_n;

const LOAD: u32 = 0x10_0000;
const PAGE: u32 = 0x1000;

/// The kernel's action after it has printed its text.
#[derive(Clone, Copy, Debug)]
pub enum Then {
    /// Waits for ever.
    Halt,
    /// Prints its command line, and writes 0 to the exit port.
    Echo,
    /// Writes this to the exit port.
    Exit(u8),
    /// Causes a fault without an interrupt table.
    TripleFault,
}

/// Returns a 32-bit ELF file with a PVH entry point, as Xen defines it.
pub fn elf(text: &str, then: Then) -> Vec<u8> {
    let mut code = says(text, &[0x66, 0xba, 0xf8, 0x03]); // mov dx, 0x3f8
    code.extend(match then {
        Then::Halt => vec![0xf4, 0xeb, 0xfd], // hlt; jmp to it
        // mov esi, the start info's command line; cld; next: lodsb; test al, al; jz done;
        // out dx, al; jmp next; done: mov al, '\n'; out dx, al; mov dx, 0xf4; mov al, 0; out
        Then::Echo => vec![
            0x8b, 0x73, 0x18, 0xfc, 0xac, 0x84, 0xc0, 0x74, 0x03, 0xee, 0xeb, 0xf8, 0xb0, b'\n',
            0xee, 0x66, 0xba, 0xf4, 0x00, 0xb0, 0x00, 0xee, 0xf4,
        ],
        Then::Exit(value) => vec![0x66, 0xba, 0xf4, 0x00, 0xb0, value, 0xee, 0xf4],
        // mov esp, 0x200000; push 0; push 0; lidt [esp]; int3
        Then::TripleFault => {
            vec![0xbc, 0, 0, 0x20, 0, 0x6a, 0, 0x6a, 0, 0x0f, 0x01, 0x1c, 0x24, 0xcc]
        }
    });
    let length = u32::try_from(code.len()).expect("short");
    let note = words(&[4, 4, 18, u32::from_le_bytes(*b"Xen\0"), LOAD]);
    let segment = |kind: u32, at: u32, address: u32, bytes: u32| {
        words(&[kind, at, address, address, bytes, bytes, 5, 4])
    };
    let header = words(&[LOAD, 52, 0, 0]);
    let sizes: Vec<u8> = [52_u16, 32, 2, 0, 0, 0].into_iter().flat_map(u16::to_le_bytes).collect();
    let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x03\0\x01\0\0\0".to_vec();
    file.extend([header, sizes].concat());
    file.extend(segment(1, PAGE, LOAD, length));
    file.extend(segment(4, 52 + 64, 0, 20));
    file.extend(note);
    file.resize(PAGE as usize, 0);
    file.extend(code);
    file
}

/// Returns 64 KiB of firmware that prints a string in real mode, and writes to the exit port.
pub fn firmware(text: &str, value: u8) -> Vec<u8> {
    let mut code = says(text, &[0xba, 0xf8, 0x03]); // mov dx, 0x3f8
    code.extend([0xba, 0xf4, 0x00, 0xb0, value, 0xee, 0xf4]);
    let mut file: Vec<u8> = code.into_iter().chain(repeat_n(0xf4, 64 << 10)).collect();
    file.truncate(64 << 10);
    // The processor begins here: jmp to the first byte.
    file[0xfff0..0xfff3].copy_from_slice(&[0xe9, 0x0d, 0x00]);
    file
}

fn says(text: &str, port: &[u8]) -> Vec<u8> {
    // mov al, character; out dx, al
    let spelled = text.bytes().flat_map(|byte| [0xb0, byte, 0xee]);
    port.iter().copied().chain(spelled).collect()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
