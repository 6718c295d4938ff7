//! A line for each step and size.

use crate::csv::csv_line;
use numalab_analysis::scaling::StepFigures;

const HEADER: &str = "file,mode,domains,serial,metric,unit,ranks,size_bytes,mean,median,deviation,\
                      min,max,p90,p99,range,efficiency,baseline_ranks\n";

pub(super) fn csv(figures: &[StepFigures]) -> String {
    let lines = figures.iter().map(|of| {
        let domains: Vec<String> = of.domains.iter().map(u32::to_string).collect();
        let values = [of.mean, of.median, of.deviation, of.min, of.max, of.p90, of.p99, of.range];
        let mut fields = vec![
            of.file.clone(),
            of.mode.name().to_owned(),
            domains.join(" "),
            of.serial.to_string(),
            format!("{:?}", of.metric).to_lowercase(),
            of.metric.unit().to_owned(),
            of.ranks.to_string(),
            of.size_bytes.to_string(),
        ];
        fields.extend(values.map(|value| format!("{value:.4}")));
        fields.push(of.efficiency.map_or_else(String::new, |share| format!("{share:.4}")));
        fields.push(of.baseline_ranks.map_or_else(String::new, |ranks| ranks.to_string()));
        csv_line(&fields)
    });
    HEADER.to_owned() + &lines.collect::<String>()
}
