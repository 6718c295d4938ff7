//! Reads what an image needs to know of an ELF file: which libraries a program
//! asks for and where it says they are, what of it is ever loaded, and what a kernel
//! module depends on.
//!
//! Only 64-bit little-endian files are read (System V gABI, chapters 4 and 5).

use std::ops::Range;

/// What a program or library asks of the dynamic linker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dynamic {
    /// The program interpreter (`PT_INTERP`), absent in libraries and static programs.
    pub interpreter: Option<String>,
    /// Libraries by name (`DT_NEEDED`), in order.
    pub needed: Vec<String>,
    /// Where to look first (`DT_RUNPATH`, else `DT_RPATH`), `$ORIGIN` not yet replaced.
    pub search_path: Vec<String>,
}

/// Why bytes are not an ELF file that this reader can use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ElfError {
    /// The file does not begin as an ELF file.
    #[error("no ELF file: it begins with {found:02x?}, expected 7f 45 4c 46")]
    NotElf {
        /// The first bytes, at most four.
        found: Vec<u8>,
    },
    /// The file is of another class or byte order.
    #[error("ELF class {class} and byte order {order}: only 64-bit (2) little-endian (1) is read")]
    Unsupported {
        /// `EI_CLASS`.
        class: u8,
        /// `EI_DATA`.
        order: u8,
    },
    /// Something lies beyond the end of the file.
    #[error("{what} at offset {offset} lies beyond the end of the file ({size} bytes)")]
    Truncated {
        /// What was sought.
        what: &'static str,
        /// Where it should be.
        offset: u64,
        /// The file's length in bytes.
        size: usize,
    },
}

/// The ELF header of a 64-bit file.
const HEADER_BYTES: usize = 64;
const ET_EXEC: u16 = 2;
const ET_DYN: u16 = 3;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;

/// Whether the bytes begin as an ELF file.
#[must_use]
pub fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF")
}

/// Whether the bytes begin as an ELF file of the kind that is read here.
#[must_use]
pub fn is_readable(bytes: &[u8]) -> bool {
    is_elf(bytes) && bytes.get(4..6) == Some(&[2, 1])
}

/// Reads what the program or library asks of the dynamic linker; a static
/// program gives the empty answer.
///
/// # Errors
/// [`ElfError`] for other files and for damaged ones.
pub fn dynamic(bytes: &[u8]) -> Result<Dynamic, ElfError> {
    let file = File::open(bytes)?;
    let segments = file.segments()?;
    let mut found = Dynamic::default();
    if let Some(segment) = segments.iter().find(|s| s.kind == PT_INTERP) {
        found.interpreter = Some(file.text(segment.offset, "interpreter")?);
    }
    let Some(table) = segments.iter().find(|s| s.kind == PT_DYNAMIC) else {
        return Ok(found);
    };
    let entries = file.dynamic_entries(table)?;
    let value_of = |tag| entries.iter().find(|e| e.0 == tag).map(|e| e.1);
    let Some(strings) = value_of(DT_STRTAB) else {
        return Ok(found);
    };
    let strings = file.offset_of(&segments, strings)?;
    let text = |at: u64| file.text(strings.saturating_add(at), "dynamic string");
    for (_, at) in entries.iter().filter(|e| e.0 == DT_NEEDED) {
        found.needed.push(text(*at)?);
    }
    if let Some(at) = value_of(DT_RUNPATH).or_else(|| value_of(DT_RPATH)) {
        let paths = text(at)?;
        let paths = paths.split(':').filter(|path| !path.is_empty());
        found.search_path = paths.map(ToOwned::to_owned).collect();
    }
    Ok(found)
}

/// Reads the `name=value` pairs of a kernel module (section `.modinfo`), in
/// order; empty if the file has none.
///
/// # Errors
/// [`ElfError`] for other files and for damaged ones.
pub fn module_info(bytes: &[u8]) -> Result<Vec<(String, String)>, ElfError> {
    let file = File::open(bytes)?;
    let Some(range) = file.section(".modinfo")? else {
        return Ok(Vec::new());
    };
    let pairs = bytes[range].split(|byte| *byte == 0);
    let pairs = pairs.map(String::from_utf8_lossy);
    Ok(pairs
        .filter_map(|pair| {
            let (name, value) = pair.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        })
        .collect())
}

/// The program or library without what follows its segments: symbols, debugging
/// information and the table of sections, which nothing that runs it reads. Files of
/// another kind, such as kernel modules, stay as they are.
///
/// # Errors
/// [`ElfError`] for other files and for damaged ones.
pub fn loaded_part(bytes: Vec<u8>) -> Result<Vec<u8>, ElfError> {
    let file = File::open(&bytes)?;
    let segments = file.segments()?;
    if ![ET_EXEC, ET_DYN].contains(&file.u16(16, "file type")?) || segments.is_empty() {
        return Ok(bytes);
    }
    let mut end = file.program_headers_end()?.max(HEADER_BYTES);
    for segment in &segments {
        end = end.max(file.range(segment.offset, segment.size, "segment")?.end);
    }
    let mut loaded = bytes;
    loaded.truncate(end);
    // Offset, number and name index of the sections that are gone.
    loaded[40..48].fill(0);
    loaded[60..64].fill(0);
    Ok(loaded)
}

struct File<'a> {
    bytes: &'a [u8],
}

/// A program header, as far as it matters here.
struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

impl<'a> File<'a> {
    fn open(bytes: &'a [u8]) -> Result<Self, ElfError> {
        if !is_elf(bytes) {
            let found = bytes[..bytes.len().min(4)].to_vec();
            return Err(ElfError::NotElf { found });
        }
        let file = Self { bytes };
        let [class, order] = file.array(4, "class")?;
        if (class, order) != (2, 1) {
            return Err(ElfError::Unsupported { class, order });
        }
        Ok(file)
    }

    fn segments(&self) -> Result<Vec<Segment>, ElfError> {
        let table = self.u64(32, "program header offset")?;
        let size = u64::from(self.u16(54, "program header size")?);
        let count = u64::from(self.u16(56, "program header count")?);
        let segment = |index: u64| {
            let at = table.saturating_add(index * size);
            Ok(Segment {
                kind: self.u32(at, "program header")?,
                offset: self.u64(at.saturating_add(8), "program header")?,
                address: self.u64(at.saturating_add(16), "program header")?,
                size: self.u64(at.saturating_add(32), "program header")?,
            })
        };
        (0..count).map(segment).collect()
    }

    /// Where the table of program headers ends.
    fn program_headers_end(&self) -> Result<usize, ElfError> {
        let size = u64::from(self.u16(54, "program header size")?);
        let count = u64::from(self.u16(56, "program header count")?);
        let table = self.u64(32, "program header offset")?;
        Ok(self.range(table, size * count, "program header")?.end)
    }

    fn dynamic_entries(&self, table: &Segment) -> Result<Vec<(u64, u64)>, ElfError> {
        let mut entries = Vec::new();
        for index in 0..table.size / 16 {
            let at = table.offset.saturating_add(index * 16);
            let tag = self.u64(at, "dynamic entry")?;
            if tag == 0 {
                break;
            }
            entries.push((tag, self.u64(at.saturating_add(8), "dynamic entry")?));
        }
        Ok(entries)
    }

    /// The file offset of what is loaded at `address`.
    fn offset_of(&self, segments: &[Segment], address: u64) -> Result<u64, ElfError> {
        let holds = |s: &&Segment| {
            s.kind == PT_LOAD && address.checked_sub(s.address).is_some_and(|at| at < s.size)
        };
        let segment = segments.iter().find(holds);
        let offset = segment.and_then(|s| s.offset.checked_add(address - s.address));
        offset.ok_or_else(|| self.truncated("string table", address))
    }

    fn section(&self, name: &str) -> Result<Option<Range<usize>>, ElfError> {
        let table = self.u64(40, "section header offset")?;
        let size = u64::from(self.u16(58, "section header size")?);
        let count = u64::from(self.u16(60, "section header count")?);
        let names = u64::from(self.u16(62, "section name index")?);
        if table == 0 || count == 0 {
            return Ok(None);
        }
        let at = |index: u64| table.saturating_add(index * size);
        let names = self.u64(at(names).saturating_add(24), "section names")?;
        for index in 0..count {
            let name_at = u64::from(self.u32(at(index), "section header")?);
            if self.text(names.saturating_add(name_at), "section name")? == name {
                let offset = self.u64(at(index).saturating_add(24), "section header")?;
                let size = self.u64(at(index).saturating_add(32), "section header")?;
                return self.range(offset, size, "section").map(Some);
            }
        }
        Ok(None)
    }

    fn text(&self, offset: u64, what: &'static str) -> Result<String, ElfError> {
        let start = usize::try_from(offset).ok();
        let rest = start.and_then(|start| self.bytes.get(start..));
        let rest = rest.ok_or_else(|| self.truncated(what, offset))?;
        let end = rest.iter().position(|byte| *byte == 0);
        let end = end.ok_or_else(|| self.truncated(what, offset))?;
        Ok(String::from_utf8_lossy(&rest[..end]).into_owned())
    }

    fn u16(&self, offset: u64, what: &'static str) -> Result<u16, ElfError> {
        self.array(offset, what).map(u16::from_le_bytes)
    }

    fn u32(&self, offset: u64, what: &'static str) -> Result<u32, ElfError> {
        self.array(offset, what).map(u32::from_le_bytes)
    }

    fn u64(&self, offset: u64, what: &'static str) -> Result<u64, ElfError> {
        self.array(offset, what).map(u64::from_le_bytes)
    }

    fn array<const N: usize>(&self, offset: u64, what: &'static str) -> Result<[u8; N], ElfError> {
        let range = self.range(offset, N as u64, what)?;
        let bytes = self.bytes[range].first_chunk();
        bytes.copied().ok_or_else(|| self.truncated(what, offset))
    }

    fn range(&self, offset: u64, size: u64, what: &'static str) -> Result<Range<usize>, ElfError> {
        let end = offset.checked_add(size);
        let bounds = (usize::try_from(offset), end.map(usize::try_from));
        match bounds {
            (Ok(start), Some(Ok(end))) if end <= self.bytes.len() => Ok(start..end),
            _ => Err(self.truncated(what, offset)),
        }
    }

    fn truncated(&self, what: &'static str, offset: u64) -> ElfError {
        ElfError::Truncated { what, offset, size: self.bytes.len() }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The test program itself: a real dynamic program, whatever the machine.
    fn this_program() -> Vec<u8> {
        std::fs::read(std::env::current_exe().unwrap()).unwrap()
    }

    #[test]
    fn a_real_program_names_its_interpreter_and_libc() {
        let found = dynamic(&this_program()).unwrap();
        assert!(found.interpreter.unwrap().contains("ld-linux"));
        assert!(found.needed.iter().any(|name| name.starts_with("libc.so")));
    }

    #[test]
    fn other_files_and_other_classes_are_refused() {
        let found = b"#!/b".to_vec();
        assert_eq!(dynamic(b"#!/bin/sh"), Err(ElfError::NotElf { found }));
        let error = dynamic(b"\x7fELF\x01\x01").unwrap_err();
        assert_eq!(error, ElfError::Unsupported { class: 1, order: 1 });
    }

    #[test]
    fn every_truncation_of_the_headers_is_an_error_or_an_answer() {
        let bytes = this_program();
        for end in 0..4096.min(bytes.len()) {
            let _ = dynamic(&bytes[..end]);
            let _ = module_info(&bytes[..end]);
            assert!(loaded_part(bytes[..end].to_vec()).is_err(), "its segments are cut off");
        }
        assert!(matches!(dynamic(&bytes[..63]), Err(ElfError::Truncated { .. })));
    }

    #[test]
    fn a_program_runs_without_what_follows_its_segments() {
        let whole = this_program();
        let loaded = loaded_part(whole.clone()).unwrap();
        assert!(loaded.len() < whole.len(), "tests have symbols");
        assert_eq!(dynamic(&loaded).unwrap(), dynamic(&whole).unwrap());
        assert_eq!(loaded_part(loaded.clone()).unwrap(), loaded, "once is enough");
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("program");
        std::fs::write(&program, &loaded).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).unwrap();
        let listed = std::process::Command::new(&program).arg("--list").output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert!(listed.contains("a_program_runs_without_what_follows_its_segments"), "{listed}");
    }

    #[test]
    fn a_kernel_module_keeps_its_sections() {
        let module = module_file(b"depends=\0");
        assert_eq!(loaded_part(module.clone()).unwrap(), module);
    }

    #[test]
    fn module_info_is_read_from_its_section() {
        let bytes = module_file(b"license=GPL\0depends=virtio,virtio_ring\0");
        let info = module_info(&bytes).unwrap();
        let depends = ("depends".to_owned(), "virtio,virtio_ring".to_owned());
        assert_eq!(info[1], depends);
    }

    /// An ELF file with the sections "", ".shstrtab" and ".modinfo".
    pub fn module_file(info: &[u8]) -> Vec<u8> {
        let names = b"\0.shstrtab\0.modinfo\0";
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let names_at = bytes.len();
        bytes.extend_from_slice(names);
        let info_at = bytes.len();
        bytes.extend_from_slice(info);
        let table = bytes.len();
        for (name, offset, size) in
            [(0, 0, 0), (1, names_at, names.len()), (11, info_at, info.len())]
        {
            let mut header = [0; 64];
            header[0] = name;
            header[24..32].copy_from_slice(&(offset as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(size as u64).to_le_bytes());
            bytes.extend_from_slice(&header);
        }
        bytes[40..48].copy_from_slice(&(table as u64).to_le_bytes());
        bytes[58] = 64;
        bytes[60] = 3;
        bytes[62] = 1;
        bytes
    }

    proptest! {
        #[test]
        fn damaged_headers_never_panic(
            at in 0_usize..200, value: u8, end in 0_usize..400,
        ) {
            let mut bytes = module_file(b"depends=\0");
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
            bytes.truncate(end);
            let _ = dynamic(&bytes);
            let _ = module_info(&bytes);
            let _ = loaded_part(bytes);
        }
    }
}
