//! The result of one cell on a line.

use numalab_page::text::figure;
use numalab_record::{Cell, Sample, counted_values};
use numalab_stats::Sample as Values;

/// Returns a cell's result in short, `latency ... 64M  101 ns`, or only the cell's name if it has
/// no result.
pub fn in_short(cell: &Cell, samples: &[Sample]) -> String {
    let parts: Vec<&str> = cell.id.0.split('/').collect();
    let name = match parts[..] {
        [kind, .., last] if parts.len() > 2 => format!("{kind} ... {last}"),
        _ => parts.join(" "),
    };
    let Some(metric) = samples.first().map(|sample| sample.metric) else { return name };
    let of_metric = samples.iter().filter(|sample| sample.metric == metric);
    match Values::new(counted_values(of_metric)) {
        Ok(values) => {
            let figure = format!("{} {}", figure(values.median()), metric.unit());
            format!("{name}  {}", figure.trim_end())
        }
        Err(_) => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_record::{CellId, CoreCell, Experiment, Metric};
    use numalab_topology::CpuId;

    #[test]
    fn a_finished_cell_is_shown_with_its_figure_of_undisturbed_windows() {
        let named = |name: &str| Cell {
            id: CellId(name.to_owned()),
            experiment: Experiment::Core(CoreCell { cpu: CpuId(0) }),
        };
        let cell = named("latency/page-local/thp/cpu0/node0/64M");
        let sample = |value, disturbed: bool| Sample {
            cell: cell.id.clone(),
            metric: Metric::Latency,
            index: 0,
            value,
            start_ns: 0,
            duration_ns: 1,
            work: 1,
            disturbed: disturbed.then(|| "preempted".to_owned()),
        };
        let samples = [sample(300.0, true), sample(101.2, false), sample(400.0, true)];
        assert_eq!(in_short(&cell, &samples), "latency ... 64M  101 ns");
        assert_eq!(in_short(&cell, &samples[..1]), "latency ... 64M  300 ns");
        assert_eq!(in_short(&named("core/cpu0"), &[]), "core cpu0");
    }
}
