//! `stress-ng --metrics-brief`, which prints on standard error.

use numalab_record::study::{Quantity, Reading};

use super::{Parser, ToolEntry};
use crate::error::OutputError;
use crate::number;

pub(super) const ENTRIES: &[ToolEntry] = &[ToolEntry {
    name: "stress-ng",
    summary: "a stressor of stress-ng, by operations per second",
    command: &["stress-ng", "--metrics-brief"],
    arguments: &["--vm", "1", "--vm-bytes", "256M", "-t", "5"],
    programs: &[("stress-ng", "stress-ng", "--version")],
    ..ToolEntry::of(Parser { read: |_, finished| parse(finished.stderr), metric })
}];

fn metric(name: &str) -> Option<Quantity> {
    let known = name.ends_with(" rate") || name.ends_with(" cpu-rate");
    known.then(|| Quantity::higher(name, "ops/s"))
}

/// Returns the readings of lines such as `stress-ng: metrc: [77] vm  43108  1.00  0.59  0.41
/// 42905.49  42910.82`: stressor, operations, real, user and system seconds, operations by real and
/// by cpu second.
fn parse(text: &str) -> Result<Vec<Reading>, OutputError> {
    let mut readings = Vec::new();
    for row in text.lines().filter_map(columns) {
        let (&[stressor, ..], Some(real), Some(cpu)) = (&row[..], row.get(5), row.get(6)) else {
            continue;
        };
        // The two lines of the header.
        if stressor == "stressor" || stressor.starts_with('(') {
            continue;
        }
        let real = number::whole(stressor, real)?;
        let cpu = number::whole(stressor, cpu)?;
        readings.push(Quantity::higher(format!("{stressor} rate"), "ops/s").at(real));
        readings.push(Quantity::higher(format!("{stressor} cpu-rate"), "ops/s").at(cpu));
    }
    if readings.is_empty() {
        let expected = "stress-ng: metrc: [77] vm 43108 1.00 0.59 0.41 42905.49 42910.82";
        return Err(OutputError::missing("metrics", expected, text));
    }
    Ok(readings)
}

/// Returns the columns after `stress-ng: metrc: [pid]`.
fn columns(line: &str) -> Option<Vec<&str>> {
    let rest = line.strip_prefix("stress-ng: metrc: [")?.split_once(']')?.1;
    Some(rest.split_whitespace().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
stress-ng: info:  [26737] setting to a 1 second run per stressor
stress-ng: info:  [26737] dispatching hogs: 1 vm
stress-ng: metrc: [26737] stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s
stress-ng: metrc: [26737]                           (secs)    (secs)    (secs)   (real time) (usr+sys time)
stress-ng: metrc: [26737] vm                43108      1.00      0.59      0.41     42905.49       42910.82
stress-ng: info:  [26737] successful run completed in 1.01s
";

    #[test]
    fn each_stressor_has_its_rates() {
        let expected = [
            Quantity::higher("vm rate", "ops/s").at(42905.49),
            Quantity::higher("vm cpu-rate", "ops/s").at(42910.82),
        ];
        assert_eq!(parse(OUTPUT).unwrap(), expected);
    }

    #[test]
    fn an_output_without_metrics_is_refused() {
        let lines = OUTPUT.lines().filter(|line| !line.contains("43108"));
        let without: String = lines.map(|line| format!("{line}\n")).collect();
        assert!(matches!(parse(&without), Err(OutputError::Missing { .. })));
    }
}
