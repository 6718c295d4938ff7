//! What `numalab study` changes of a study of many guests.

use clap::{Args, ValueEnum};

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Studies of many guests")]
pub(crate) struct GuestsChange {
    /// What the guests run on, instead of what the study says
    #[arg(long, value_enum, value_name = "KIND")]
    pub hypervisor: Option<GuestsHypervisor>,
    /// Use the Xen that this machine itself runs, by its xl, as it was booted: numa is no
    /// factor then
    #[arg(long)]
    pub on_this_dom0: bool,
    /// Give memory costs, in virtual time: slower to run, the same in every run
    #[arg(long)]
    pub emulate_memory: bool,
    /// So many guests, such as 4,16, instead of the study's
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=64))]
    pub guests: Vec<u16>,
    /// Only this workload of the study (repeatable)
    #[arg(long, value_name = "NAME")]
    pub workload: Vec<String>,
}

/// What guests run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GuestsHypervisor {
    /// Xen in QEMU: Debian's, or the study's own builds (`xen = [...]`)
    Xen,
    /// QEMU, on this machine's own nodes
    Qemu,
}

impl GuestsHypervisor {
    /// As the study has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Xen => "xen",
            Self::Qemu => "qemu",
        }
    }
}
