//! Names of Arm processors, which `/proc/cpuinfo` gives as numbers only.

use crate::proc::field;

/// Server processors: implementer, part, and the name that lscpu(1) uses.
const NAMES: [(&str, &str, &str); 12] = [
    ("0x41", "0xd08", "Cortex-A72"),
    ("0x41", "0xd0c", "Neoverse-N1"),
    ("0x41", "0xd40", "Neoverse-V1"),
    ("0x41", "0xd49", "Neoverse-N2"),
    ("0x41", "0xd4f", "Neoverse-V2"),
    ("0x41", "0xd84", "Neoverse-V3"),
    ("0x41", "0xd8e", "Neoverse-N3"),
    ("0x43", "0x0af", "ThunderX2-99xx"),
    ("0x46", "0x001", "A64FX"),
    ("0x48", "0xd01", "TaiShan-v110"),
    ("0xc0", "0xac3", "Ampere-1"),
    ("0xc0", "0xac4", "Ampere-1a"),
];

/// Returns the name of the first cpu, or its numbers if the table has no name.
pub fn model(cpuinfo: &str) -> Option<String> {
    let (implementer, part) = (field(cpuinfo, "CPU implementer")?, field(cpuinfo, "CPU part")?);
    let known = NAMES.iter().find(|known| (known.0, known.1) == (implementer, part));
    let numbers = || format!("implementer {implementer}, part {part}");
    Some(known.map_or_else(numbers, |known| known.2.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_by_number_has_a_name_or_its_numbers() {
        let text = |implementer, part| {
            format!(
                "processor\t: 0\nCPU implementer\t: {implementer}\nCPU architecture: 8\n\
                 CPU variant\t: 0x4\nCPU part\t: {part}\n"
            )
        };
        assert_eq!(model(&text("0x41", "0xd0c")).as_deref(), Some("Neoverse-N1"));
        let unknown = model(&text("0x41", "0xfff"));
        assert_eq!(unknown.as_deref(), Some("implementer 0x41, part 0xfff"));
        assert_eq!(model("model name\t: Some CPU\n"), None);
    }
}
