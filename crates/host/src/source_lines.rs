//! Resolves addresses of code to function, source file and line, from symbols and debug
//! information.

use std::collections::HashMap;
use std::path::Path;

use addr2line::Loader;
use elf::ElfBytes;
use elf::abi::PT_LOAD;
use elf::endian::AnyEndian;

/// The source of an instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourcePlace {
    /// The function, if the file has symbols.
    pub function: Option<String>,
    /// File and line, if there is debug information: `solver.c:120`.
    pub line: Option<String>,
}

/// Object files, each read once.
#[derive(Default)]
pub struct SourceLines {
    files: HashMap<String, Option<Code>>,
}

struct Code {
    loader: Loader,
    /// Of each loaded part: its offset in the file, its size and its address.
    parts: Vec<(u64, u64, u64)>,
    /// Without symbols the nearest one (a dynamic symbol) belongs to another function.
    has_symbols: bool,
}

impl SourceLines {
    /// Returns the source of the instruction at an offset in a file; empty if the file cannot be
    /// read.
    pub fn of(&mut self, object: &str, offset: u64) -> SourcePlace {
        let read = || Code::read(Path::new(object));
        let code = self.files.entry(object.to_owned()).or_insert_with(read).as_ref();
        code.and_then(|code| code.place(offset)).unwrap_or_default()
    }
}

impl Code {
    fn read(path: &Path) -> Option<Self> {
        let bytes = std::fs::read(path).ok()?;
        let file = ElfBytes::<AnyEndian>::minimal_parse(&bytes).ok()?;
        let loaded = file.segments()?.iter().filter(|part| part.p_type == PT_LOAD);
        let parts = loaded.map(|part| (part.p_offset, part.p_filesz, part.p_vaddr)).collect();
        let symbols = file.section_header_by_name(".symtab").ok()?;
        Some(Self { loader: Loader::new(path).ok()?, parts, has_symbols: symbols.is_some() })
    }

    fn place(&self, offset: u64) -> Option<SourcePlace> {
        let within =
            |&&(begin, size, _): &&(u64, u64, u64)| (begin..begin + size).contains(&offset);
        let &(begin, _, address) = self.parts.iter().find(within)?;
        let address = offset - begin + address;
        let line = self
            .loader
            .find_location(address)
            .ok()
            .flatten()
            .and_then(|location| Some(format!("{}:{}", location.file?, location.line?)));
        // The innermost of inlined functions comes first.
        let mut frames = self.loader.find_frames(address).ok()?;
        let named = frames.next().ok().flatten().and_then(|frame| frame.function);
        let named = named.and_then(|name| Some(name.demangle().ok()?.into_owned()));
        let symbol =
            || self.loader.find_symbol(address).filter(|_| self.has_symbols).map(demangled);
        Some(SourcePlace { function: named.or_else(symbol), line })
    }
}

fn demangled(symbol: &str) -> String {
    addr2line::demangle_auto(symbol.into(), None).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the file and offset of this test's own code.
    fn own_place(address: u64) -> (String, u64) {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let found = maps.lines().find_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (start, end) = words[0].split_once('-')?;
            let number = |word| u64::from_str_radix(word, 16).unwrap();
            let (start, end) = (number(start), number(end));
            let offset = address.checked_sub(start)? + number(words[2]);
            (address < end).then(|| (words[5].to_owned(), offset))
        });
        found.unwrap()
    }

    #[test]
    fn code_is_named_by_its_function() {
        let (object, offset) = own_place(own_place as *const () as u64);
        let place = SourceLines::default().of(&object, offset);
        assert!(place.function.as_deref().unwrap().contains("own_place"), "{place:?}");
    }

    #[test]
    fn a_file_that_is_not_a_program_has_no_places() {
        let mut lines = SourceLines::default();
        assert_eq!(lines.of("/etc/passwd", 0), SourcePlace::default());
        assert_eq!(lines.of("/no/such/file", 0), SourcePlace::default());
    }
}
