//! Our own kernel on an image that any PC boots, by BIOS or by UEFI, with GRUB.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use numalab_host::{Classed, ErrorClass, Interrupt, run_command, tool};

/// Time limit for making an image.
const LIMIT: Duration = Duration::from_secs(600);
const PROGRAM: &str = "grub-mkrescue";
/// The Debian packages needed for an image: GRUB for both kinds of firmware, and the writers of
/// images.
const PACKAGES: &str = "grub-common grub-pc-bin grub-efi-amd64-bin xorriso mtools";
/// Directories of GRUB's parts for each kind of firmware.
const MODULES: [(&str, &str); 2] = [("BIOS", "i386-pc"), ("UEFI", "x86_64-efi")];
const GRUB: &str = "/usr/lib/grub";

/// Reasons why no image was made.
#[derive(Debug, thiserror::Error)]
pub enum IsoError {
    #[error("{what} is needed for an image, but missing")]
    Lacking { what: String },
    #[error("`{words}`: expected words of letters, digits and = : , . - _ separated by spaces")]
    Words { words: String },
    #[error("{doing}: {reason}")]
    Failed { doing: String, reason: String },
}

impl Classed for IsoError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Lacking { .. } => ErrorClass::Lacking,
            Self::Words { .. } => ErrorClass::BadInput,
            Self::Failed { .. } => ErrorClass::Failed,
        }
    }

    fn remedy(&self) -> Option<String> {
        matches!(self, Self::Lacking { .. }).then(|| format!("apt-get install {PACKAGES}"))
    }
}

/// Writes an image to `file` that boots `kernel` with `words` on its command line.
///
/// # Errors
/// [`IsoError`]; an existing `file` is only replaced by a complete image.
pub fn write(kernel: &Path, words: &str, file: &Path) -> Result<(), IsoError> {
    let configuration = configuration(words)?;
    check_tools()?;
    let failed = |path: &Path| {
        let doing = path.display().to_string();
        move |error: io::Error| IsoError::Failed { doing, reason: error.to_string() }
    };
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let scratch = tempfile::tempdir_in(parent).map_err(failed(parent))?;
    let tree = scratch.path().join("tree/boot/grub");
    fs::create_dir_all(&tree).map_err(failed(&tree))?;
    let (menu, copy) = (tree.join("grub.cfg"), scratch.path().join("tree/boot/numalab-kernel"));
    fs::write(&menu, configuration).map_err(failed(&menu))?;
    fs::copy(kernel, &copy).map_err(failed(kernel))?;
    let made = scratch.path().join("image");
    let tree = scratch.path().join("tree");
    let command = tool(PROGRAM, ["-o".as_ref(), made.as_os_str(), tree.as_os_str()]);
    let ran = run_command(command, LIMIT, &Interrupt::never())
        .map_err(|error| failed(Path::new(PROGRAM))(io::Error::other(error)))?;
    if !ran.status.success() || !made.is_file() {
        let last =
            ran.stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let (doing, reason) = (PROGRAM.to_owned(), format!("{}: {last}", ran.status));
        return Err(IsoError::Failed { doing, reason });
    }
    fs::rename(&made, file).map_err(failed(file))
}

fn check_tools() -> Result<(), IsoError> {
    let lacking = |what: &str| Err(IsoError::Lacking { what: what.to_owned() });
    for program in [PROGRAM, "xorriso", "mformat"] {
        if numalab_host::on_path(program).is_none() {
            return lacking(program);
        }
    }
    for (firmware, modules) in MODULES {
        if !PathBuf::from(GRUB).join(modules).is_dir() {
            return lacking(&format!("{GRUB}/{modules} (GRUB for {firmware})"));
        }
    }
    Ok(())
}

/// Returns GRUB's menu: one entry without delay, on the screen and on the serial port.
fn configuration(words: &str) -> Result<String, IsoError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "=:,.-_ ".contains(c);
    if !words.chars().all(plain) {
        return Err(IsoError::Words { words: words.to_owned() });
    }
    Ok(format!(
        "set timeout=0\nserial --unit=0 --speed=115200\nterminal_output console serial\n\
         menuentry numalab {{\n  multiboot2 /boot/numalab-kernel {words}\n  boot\n}}\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_a_special_meaning_for_grub_are_refused() {
        for words in ["a;b", "a\nb", "$x", "{", "'", "a\"b"] {
            let error = configuration(words).unwrap_err();
            assert!(error.to_string().contains("expected words of letters"), "{error}");
        }
        let menu = configuration("work=chase,storm numa=fake=1G,2G").unwrap();
        assert!(
            menu.contains("multiboot2 /boot/numalab-kernel work=chase,storm numa=fake=1G,2G\n")
        );
    }

    #[test]
    fn a_missing_kernel_gives_an_error_and_no_image() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("x.iso");
        let error = write(Path::new("/no/such/kernel"), "", &file).unwrap_err();
        match &error {
            IsoError::Lacking { .. } => assert!(error.remedy().unwrap().contains("grub-pc-bin")),
            error => assert!(error.to_string().contains("/no/such/kernel"), "{error}"),
        }
        assert!(!file.exists());
    }
}
