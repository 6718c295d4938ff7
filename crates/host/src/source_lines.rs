//! Resolves addresses of code to function, source file and line, from symbols and debug
//! information.

use std::collections::HashMap;
use std::path::Path;

use addr2line::{Loader, Location};
use elf::ElfBytes;
use elf::abi::PT_LOAD;
use elf::endian::AnyEndian;
use numalab_record::CodePlace;

/// Object files, each read once.
#[derive(Default)]
pub struct SourceLines {
    files: HashMap<String, Option<Code>>,
}

struct Code {
    loader: Loader,
    /// Offset in the file, size and address of each loaded part.
    parts: Vec<(u64, u64, u64)>,
    /// False if the file has at most dynamic symbols: the nearest of them belongs to another
    /// function.
    has_symbols: bool,
}

impl SourceLines {
    /// Returns the functions that contain the instruction at a place, each with its file and line,
    /// the innermost inlined one first. Returns at least one, without a name if the file cannot be
    /// read.
    pub fn frames(&mut self, place: &CodePlace) -> Vec<CodePlace> {
        let read = || Code::read(Path::new(&place.object));
        let code = self.files.entry(place.object.clone()).or_insert_with(read).as_ref();
        let named = code.and_then(|code| code.frames(place.offset)).unwrap_or_default();
        let of = |(function, line)| CodePlace { function, line, ..place.clone() };
        match named.is_empty() {
            true => vec![of((None, None))],
            false => named.into_iter().map(of).collect(),
        }
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

    /// Returns function and line (`solver.c:120`) of each frame, as far as symbols and debug
    /// information name them.
    fn frames(&self, offset: u64) -> Option<Vec<(Option<String>, Option<String>)>> {
        let within =
            |&&(begin, size, _): &&(u64, u64, u64)| (begin..begin + size).contains(&offset);
        let &(begin, _, address) = self.parts.iter().find(within)?;
        let address = offset - begin + address;
        let mut found = Vec::new();
        let mut frames = self.loader.find_frames(address).ok()?;
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.and_then(|name| Some(name.demangle().ok()?.into_owned()));
            found.push((name, line(frame.location)));
        }
        if found.is_empty() {
            found.push((None, line(self.loader.find_location(address).ok().flatten())));
        }
        // Only the outermost function is a symbol.
        let outermost = found.last_mut()?;
        if outermost.0.is_none() && self.has_symbols {
            outermost.0 = self.loader.find_symbol(address).map(demangled);
        }
        Some(found)
    }
}

fn line(location: Option<Location<'_>>) -> Option<String> {
    let location = location?;
    Some(format!("{}:{}", location.file?, location.line?))
}

fn demangled(symbol: &str) -> String {
    addr2line::demangle_auto(symbol.into(), None).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the mapped file and the offset in it of an address in this test's code.
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
        let place = CodePlace { object, offset, function: None, line: None };
        let frames = SourceLines::default().frames(&place);
        let outermost = frames.last().unwrap();
        assert!(outermost.function.as_deref().unwrap().contains("own_place"), "{frames:?}");
    }

    #[test]
    fn a_file_that_is_not_a_program_has_no_places() {
        let mut lines = SourceLines::default();
        for object in ["/etc/passwd", "/no/such/file"].map(str::to_owned) {
            let place = CodePlace { object, offset: 0, function: None, line: None };
            assert_eq!(lines.frames(&place), [place]);
        }
    }
}
