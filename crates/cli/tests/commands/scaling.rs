//! `numalab report` on results of `numalab scale` and of the suite before it.

use std::fs;
use std::path::Path;

use crate::command::{prints, run, stderr};
use crate::schemas;

const ARCHITECTURE: &str = "\
SYSTEM_NAME=\\\"TEST\\\"\\nPARTITION=\\\"P\\\"\\nCCDS_PER_NUMA=2\\nArchitecture: x86_64\\nCPU(s): 8\\n\
Thread(s) per core: 1\\nCore(s) per socket: 8\\nSocket(s): 1\\nL3 cache: 64 MiB (2 instances)\\n\
NUMA node(s): 1\\nNUMA node0 CPU(s): 0-7\\n";

/// Writes two runs below one directory: sequential with a `scale.json`, interleaved with the log of
/// the suite.
fn runs(directory: &Path) {
    let write = |name: &str, text: String| {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().expect("below")).expect("made");
        fs::write(path, text).expect("written");
    };
    let csv = |values: &[f64]| {
        let ranks: Vec<String> = (0..values.len()).map(|rank| rank.to_string()).collect();
        let row = |size: u32, factor: f64| {
            let values: Vec<String> =
                values.iter().map(|value| format!("{:.2}", value * factor)).collect();
            format!("{size},{}\n", values.join(","))
        };
        format!("size (MB),{}\n{}{}", ranks.join(","), row(8, 0.1), row(512, 1.0))
    };
    let sequential = "sequential_domain0_4ranks_8-512MB.csv";
    write(&format!("job_1/{sequential}"), csv(&[150.0, 151.0, 152.0, 153.0]));
    write("job_1/sequential_domain0_1ranks_8-512MB.csv", csv(&[100.0]));
    write(
        "job_1/scale.json",
        format!(
            "{{\"schema\":\"numalab-scale/1\",\"system\":\"TEST\",\"partition\":\"P\",\"arch\":\"{ARCHITECTURE}\",\
         \"steps\":[{{\"cpus\":[0,1,2,3],\"nodes\":[0,0,0,0],\"csv\":\"{sequential}\"}},\
         {{\"cpus\":[0],\"nodes\":[0],\"csv\":\"sequential_domain0_1ranks_8-512MB.csv\"}}]}}"
        ),
    );
    let interleaved = "interleaved_domain0_4ranks_8-512MB.csv";
    write(&format!("job_2/{interleaved}"), csv(&[120.0, 121.0, 122.0, 123.0]));
    write(
        "job_2/slurm_run_numa_benchmarks_2.log",
        format!(
            "[ 4 RANKS ] NUMA binding: 0,0,0,0\n[ 4 RANKS ] CPU binding : 0,4,1,5\n\
         [ 4 RANKS ] Executing : srun numa_mem_bench -- --csv={interleaved}\n"
        ),
    );
}

#[test]
fn runs_below_a_directory_are_explained_together_from_where_their_ranks_were() {
    let directory = tempfile::tempdir().expect("made");
    runs(directory.path());
    let path = directory.path().to_str().expect("UTF-8");
    let text = prints(&["report", path, "--format", "text"]);
    assert!(text.contains("Scaling on TEST P"), "{text}");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("packed 4 to a CCD they are 24.7 % slower than 2 to a CCD"), "{flat}");
    assert_eq!(prints(&["report", path, "--format", "csv"]).lines().count(), 7);
    let json = schemas::document(&prints(&["report", path, "--format", "json"]));
    assert_eq!(json["schema"], "numalab/scaling-2");
    assert_eq!(json["scaling"]["steps"].as_array().map(Vec::len), Some(3));
    let written = prints(&["report", path]);
    assert!(written.ends_with("report.md\n".replace("md", "html").as_str()), "{written}");
    let html = fs::read_to_string(directory.path().join("report.html")).expect("written");
    assert!(html.contains("<svg") && html.contains("packed 4 to a CCD"));
}

#[test]
fn one_file_of_the_suite_is_shown_and_a_damaged_one_is_exit_2_with_its_place() {
    let directory = tempfile::tempdir().expect("made");
    runs(directory.path());
    let file = directory.path().join("job_1/sequential_domain0_4ranks_8-512MB.csv");
    let text = prints(&["report", file.to_str().expect("UTF-8")]);
    assert!(text.contains("sequential 0, 4 x 512M"), "{text}");
    fs::write(&file, "size (MB),0,1\n8,10,oops\n16,10,11\n").expect("written");
    let output = run(&["report", file.to_str().expect("UTF-8")]);
    let errors = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains(":2: `8,10,oops`, expected a size in MB"), "{errors}");
}
