//! The information in a file's name: `sequential_domains0,1_16ranks_1-512MB.csv`.

use super::Mode;

/// The parts of a file's name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) mode: Mode,
    pub(super) domains: Vec<u32>,
    pub(super) serial: bool,
}

/// Reads the parts that are present; a name of another form has none.
pub(super) fn parse(file: &str) -> Name {
    let stem = file.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let mut name = Name { mode: Mode::Other, domains: Vec::new(), serial: false };
    for word in stem.split('_') {
        match word {
            "sequential" => name.mode = Mode::Sequential,
            "interleaved" => name.mode = Mode::Interleaved,
            "serial" => name.serial = true,
            _ => {}
        }
        let list = word.strip_prefix("domains").or_else(|| word.strip_prefix("domain"));
        let numbers: Option<Vec<u32>> =
            list.and_then(|list| list.split(',').map(|number| number.parse().ok()).collect());
        if let Some(numbers) = numbers {
            name.domains = numbers;
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mode_and_domains_are_in_the_name() {
        let name = parse("job_1/sequential_domains0,1_16ranks_1-512MB.csv");
        assert_eq!(name, Name { mode: Mode::Sequential, domains: vec![0, 1], serial: false });
        let name = parse("interleaved_domain3_2ranks_8MB_serial.csv");
        assert_eq!((name.mode, name.domains), (Mode::Interleaved, vec![3]));
        assert_eq!(parse("mine.csv").mode, Mode::Other);
    }
}
