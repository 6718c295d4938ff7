//! Reads the properties of an ELF file that matter for an image: the libraries of a program and
//! their search path, the part of it that is loaded, and the dependencies of a kernel module.
//!
//! Only 64-bit little-endian files are read.

use elf::ElfBytes;
use elf::abi::{DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_STRTAB, ET_DYN, ET_EXEC, PT_INTERP, PT_LOAD};
use elf::endian::LittleEndian;
use elf::file::Class;
use elf::parse::ParseError;
use elf::segment::ProgramHeader;
use elf::string_table::StringTable;

/// The requests of a program or library to the dynamic linker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dynamic {
    /// The program interpreter (`PT_INTERP`), absent in libraries and static programs.
    pub interpreter: Option<String>,
    /// Libraries by name (`DT_NEEDED`), in order.
    pub needed: Vec<String>,
    /// Directories to search first (`DT_RUNPATH`, otherwise `DT_RPATH`), with `$ORIGIN` not yet
    /// replaced.
    pub search_path: Vec<String>,
}

/// The reason why bytes are not a usable ELF file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a whole 64-bit little-endian ELF file: {reason}")]
pub struct ElfError {
    reason: String,
}

impl From<ParseError> for ElfError {
    fn from(error: ParseError) -> Self {
        Self { reason: error.to_string() }
    }
}

/// Returns true if the bytes begin as an ELF file.
pub fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF")
}

/// Returns true if the bytes begin as an ELF file of the supported kind.
pub fn is_readable(bytes: &[u8]) -> bool {
    is_elf(bytes) && bytes.get(4..6) == Some(&[2, 1])
}

/// Reads the requests of the program or library to the dynamic linker; empty for a static program.
///
/// # Errors
/// [`ElfError`] for other files and for damaged ones.
pub fn dynamic(bytes: &[u8]) -> Result<Dynamic, ElfError> {
    let file = parse(bytes)?;
    let segments = segments(&file);
    let mut found = Dynamic::default();
    if let Some(segment) = segments.iter().find(|segment| segment.p_type == PT_INTERP) {
        let name = StringTable::new(file.segment_data(segment)?).get_raw(0)?;
        found.interpreter = Some(String::from_utf8_lossy(name).into_owned());
    }
    let entries: Vec<_> = file.dynamic()?.into_iter().flatten().collect();
    let value_of = |tag| entries.iter().find(|entry| entry.d_tag == tag).map(|e| e.d_val());
    let Some(address) = value_of(DT_STRTAB) else {
        return Ok(found);
    };
    let strings = StringTable::new(loaded_at(bytes, &segments, address)?);
    let text = |at: u64| {
        let at = usize::try_from(at).map_err(ParseError::from)?;
        Ok::<_, ElfError>(String::from_utf8_lossy(strings.get_raw(at)?).into_owned())
    };
    for entry in entries.iter().filter(|entry| entry.d_tag == DT_NEEDED) {
        found.needed.push(text(entry.d_val())?);
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
    let file = parse(bytes)?;
    let Some(section) = file.section_header_by_name(".modinfo")? else {
        return Ok(Vec::new());
    };
    let (content, _) = file.section_data(&section)?;
    let pairs = content.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    Ok(pairs
        .filter_map(|pair| {
            let (name, value) = pair.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        })
        .collect())
}

/// Returns the program or library without the data after its segments: symbols, debugging
/// information and the section table, which are not read at run time. Files of another kind, such
/// as kernel modules, stay unchanged.
///
/// # Errors
/// [`ElfError`] for other files and for damaged ones.
pub fn loaded_part(bytes: Vec<u8>) -> Result<Vec<u8>, ElfError> {
    let file = parse(&bytes)?;
    let (header, segments) = (file.ehdr, segments(&file));
    if ![ET_EXEC, ET_DYN].contains(&header.e_type) || segments.is_empty() {
        return Ok(bytes);
    }
    let table_bytes = usize::from(header.e_phentsize) * usize::from(header.e_phnum);
    let table = usize::try_from(header.e_phoff).map_err(ParseError::from)?;
    let mut end = table.saturating_add(table_bytes).max(usize::from(header.e_ehsize));
    for segment in &segments {
        file.segment_data(segment)?;
        let segment_end = segment.p_offset.saturating_add(segment.p_filesz);
        end = end.max(usize::try_from(segment_end).map_err(ParseError::from)?);
    }
    let mut loaded = bytes;
    loaded.truncate(end);
    // Offset, number and name index of the removed sections.
    loaded[40..48].fill(0);
    loaded[60..64].fill(0);
    Ok(loaded)
}

type File<'a> = ElfBytes<'a, LittleEndian>;

fn parse(bytes: &[u8]) -> Result<File<'_>, ElfError> {
    let file = File::minimal_parse(bytes)?;
    match file.ehdr.class {
        Class::ELF64 => Ok(file),
        Class::ELF32 => Err(ElfError { reason: "it is a 32-bit one".to_owned() }),
    }
}

fn segments(file: &File<'_>) -> Vec<ProgramHeader> {
    file.segments().into_iter().flatten().collect()
}

/// Returns the bytes that are loaded at `address`, up to the end of the file.
fn loaded_at<'a>(
    bytes: &'a [u8],
    segments: &[ProgramHeader],
    address: u64,
) -> Result<&'a [u8], ElfError> {
    let holds = |segment: &&ProgramHeader| {
        let at = address.checked_sub(segment.p_vaddr);
        segment.p_type == PT_LOAD && at.is_some_and(|at| at < segment.p_filesz)
    };
    let segment = segments.iter().find(holds);
    let offset = segment.and_then(|found| found.p_offset.checked_add(address - found.p_vaddr));
    let found = offset.and_then(|offset| bytes.get(usize::try_from(offset).ok()?..));
    found.ok_or_else(|| ElfError { reason: format!("nothing is loaded at {address:#x}") })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the test program: a real dynamic program on any machine.
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
        assert!(dynamic(b"#!/bin/sh").is_err());
        let mut header = module_file(b"");
        for (place, other) in [(0, b'e'), (4, 1), (5, 2)] {
            let was = std::mem::replace(&mut header[place], other);
            let error = dynamic(&header).unwrap_err().to_string();
            assert!(error.starts_with("expected a whole 64-bit little-endian ELF"), "{error}");
            header[place] = was;
        }
        dynamic(&header).unwrap();
    }

    #[test]
    fn every_truncation_of_the_headers_gives_an_error_or_a_result() {
        let bytes = this_program();
        for end in 0..4096.min(bytes.len()) {
            let _ = dynamic(&bytes[..end]);
            let _ = module_info(&bytes[..end]);
            assert!(loaded_part(bytes[..end].to_vec()).is_err(), "its segments are cut off");
        }
        assert!(dynamic(&bytes[..63]).is_err());
    }

    #[test]
    fn a_program_runs_without_the_data_after_its_segments() {
        let whole = this_program();
        let loaded = loaded_part(whole.clone()).unwrap();
        assert!(loaded.len() < whole.len(), "tests have symbols");
        assert_eq!(dynamic(&loaded).unwrap(), dynamic(&whole).unwrap());
        assert_eq!(loaded_part(loaded.clone()).unwrap(), loaded, "a second pass changes nothing");
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("program");
        std::fs::write(&program, &loaded).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).unwrap();
        let listed = std::process::Command::new(&program).arg("--list").output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert!(listed.contains("a_program_runs_without_the_data_after_its_segments"), "{listed}");
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

    /// Returns an ELF file with the sections "", ".shstrtab" and ".modinfo".
    pub fn module_file(info: &[u8]) -> Vec<u8> {
        let names = b"\0.shstrtab\0.modinfo\0";
        let mut bytes = vec![0; 64];
        bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        bytes[20] = 1;
        let names_at = bytes.len();
        bytes.extend_from_slice(names);
        let info_at = bytes.len();
        bytes.extend_from_slice(info);
        let table = bytes.len();
        for (name, kind, offset, size) in
            [(0, 0, 0, 0), (1, 3, names_at, names.len()), (11, 1, info_at, info.len())]
        {
            let mut header = [0; 64];
            header[0] = name;
            header[4] = kind;
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
