//! Tables of one machine agree with each other.

use std::collections::BTreeMap;

use numalab_acpi::{AnyTable, Problem, Severity, Tables};

use crate::support::{Sample, findings, samples};

#[test]
fn tables_of_one_real_machine_agree_except_for_known_oddities() {
    let samples = samples();
    let mut machines: BTreeMap<&str, Vec<&Sample>> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| ["valid", "quirk"].contains(&&*sample.valid)) {
        machines.entry(sample.machine()).or_default().push(sample);
    }
    for (machine, parts) in machines.iter().filter(|(_, parts)| parts.len() > 1) {
        let mut tables = Tables::default();
        for part in parts {
            tables.insert(AnyTable::read(&part.bytes).expect("readable"));
        }
        for finding in findings(&tables) {
            let cross = matches!(
                finding.problem,
                Problem::ProcessorNotInSrat { .. }
                    | Problem::ProcessorNotInMadt { .. }
                    | Problem::DomainWithoutSlitRow { .. }
                    | Problem::SlitRowWithoutDomain { .. }
                    | Problem::HmatDomainNotInSrat { .. }
            );
            if cross && finding.severity() > Severity::Note {
                panic!("{machine}: {finding}");
            }
        }
    }
}
