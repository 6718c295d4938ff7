//! Arguments of guests with any kernel, firmware or disk.

use std::path::PathBuf;

use clap::Args;

/// A kernel, firmware or disk known only by its console output.
#[derive(Debug, Args)]
pub(crate) struct RawArgs {
    /// Boot the file of --kernel unchanged: bzImage, multiboot or PVH kernel, firmware, ISO or disk
    /// image; its first serial port is the output
    #[arg(long)]
    pub raw: bool,
    /// Exit 0 at the first console line that matches; exit 4 if the guest ends without one
    #[arg(long, value_name = "REGEX", requires = "raw")]
    pub expect: Option<regex::Regex>,
    /// Exit 4 at the first console line that matches
    #[arg(long, value_name = "REGEX", requires = "raw")]
    pub fail: Option<regex::Regex>,
    /// Initramfs of a Linux image, or modules of a multiboot kernel
    #[arg(long, value_name = "FILE", requires = "raw")]
    pub initrd: Option<PathBuf>,
    /// Disk or ISO image in an AHCI drive; what the guest writes to it is lost (repeatable)
    #[arg(long, value_name = "FILE", requires = "raw")]
    pub disk: Vec<PathBuf>,
}
