mod nested;

use proptest::prelude::*;

use super::*;

fn of(variables: &[(&str, &str)]) -> Result<Option<Task>, IdentityError> {
    started_by(variables, None)
}

fn started_by(
    variables: &[(&str, &str)],
    nearest: Option<Launcher>,
) -> Result<Option<Task>, IdentityError> {
    let look = |name: &str| {
        variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    };
    detect(&look, nearest)
}

/// The launcher, rank, size, local rank and local size found in an environment with variables `A=1
/// B=2`.
type Known = (Launcher, usize, Option<usize>, Option<usize>, Option<usize>);

fn known(variables: &str) -> Option<Known> {
    near(variables, None)
}

/// Like [`known`], with the launcher of the nearest process above.
fn near(variables: &str, nearest: Option<Launcher>) -> Option<Known> {
    let pairs: Vec<_> = variables.split_whitespace().filter_map(|p| p.split_once('=')).collect();
    let task = started_by(&pairs, nearest).unwrap()?;
    Some((task.launcher(), task.rank(), task.size(), task.local_rank(), task.local_size()))
}

fn error(variables: &str) -> String {
    let pairs: Vec<_> = variables.split_whitespace().filter_map(|p| p.split_once('=')).collect();
    of(&pairs).unwrap_err().to_string()
}

const STEP: &str = "SLURM_STEP_ID=0 SLURM_PROCID=5 SLURM_STEP_NUM_TASKS=8 SLURM_LOCALID=1 \
                    SLURM_NODEID=1 SLURM_STEP_TASKS_PER_NODE=4(x2)";
const FLUX_TASK: &str = "FLUX_JOB_SIZE=64 FLUX_JOB_NNODES=4 FLUX_TASK_RANK=40 FLUX_TASK_LOCAL_ID=8";

const SRUN: [(&str, &str); 6] = [
    ("SLURM_STEP_ID", "0"),
    ("SLURM_PROCID", "5"),
    ("SLURM_STEP_NUM_TASKS", "8"),
    ("SLURM_LOCALID", "1"),
    ("SLURM_NODEID", "1"),
    ("SLURM_STEP_TASKS_PER_NODE", "4(x2)"),
];

#[test]
fn without_a_launcher_there_is_no_rank() {
    assert_eq!(of(&[]), Ok(None));
    // A shell in an allocation, and a batch script, which is a step with one task.
    assert_eq!(of(&[("SLURM_JOB_ID", "7"), ("SLURM_NTASKS", "8")]), Ok(None));
    assert_eq!(of(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")]), Ok(None));
}

/// Variables of each launcher, and the rank that they mean.
const LAUNCHERS: &[(&str, Known)] = &[
    (STEP, (Launcher::Slurm, 5, Some(8), Some(1), Some(4))),
    (
        "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1 \
             OMPI_COMM_WORLD_LOCAL_SIZE=4 PMIX_RANK=3",
        (Launcher::OpenMpi, 3, Some(8), Some(1), Some(4)),
    ),
    (
        "MPI_RANKID=2 MPI_NRANKS=8 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=4",
        (Launcher::PlatformMpi, 2, Some(8), Some(1), Some(4)),
    ),
    ("MPT_MPI_RANK=3", (Launcher::Mpt, 3, None, None, None)),
    ("MPT_MPI_RANK=3 MPT_LRANK=1", (Launcher::Mpt, 3, None, Some(1), None)),
    (
        "MPIUNIVERSE=0 MPIRANK=3 MPISIZE=8 MPINODEID=0 MPIVEID=1",
        (Launcher::Nec, 3, Some(8), None, None),
    ),
    ("MPIRANK=3 MPISIZE=8 NMPI_LOCAL_RANK=1", (Launcher::Nec, 3, Some(8), Some(1), None)),
    ("MPIRUN_RANK=3 MPIRUN_NPROCS=8", (Launcher::Mvapich, 3, Some(8), None, None)),
    ("_CONDOR_PROCNO=3 _CONDOR_NPROCS=8", (Launcher::Condor, 3, Some(8), None, None)),
    ("MP_CHILD=3", (Launcher::Poe, 3, None, None, None)),
    ("MPIEXEC_RANK=3", (Launcher::OscMpiexec, 3, None, None, None)),
    (
        "PMI_RANK=2 PMI_SIZE=3 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=1",
        (Launcher::Hydra, 2, Some(3), Some(0), Some(1)),
    ),
    (
        "MV2_COMM_WORLD_RANK=3 MV2_COMM_WORLD_SIZE=8 MV2_COMM_WORLD_LOCAL_RANK=1 \
             MV2_COMM_WORLD_LOCAL_SIZE=2",
        (Launcher::Mvapich, 3, Some(8), Some(1), Some(2)),
    ),
    (
        "MVP_COMM_WORLD_RANK=3 MVP_COMM_WORLD_SIZE=8 MVP_COMM_WORLD_LOCAL_RANK=1 \
             MVP_COMM_WORLD_LOCAL_SIZE=2",
        (Launcher::Mvapich, 3, Some(8), Some(1), Some(2)),
    ),
    (
        "PALS_RANKID=9 PALS_NODEID=1 PALS_LOCAL_RANKID=1 PALS_LOCAL_SIZE=8 PMI_RANK=9 \
             PMI_SIZE=16 PMI_LOCAL_RANK=1 PMI_LOCAL_SIZE=8",
        (Launcher::Pals, 9, Some(16), Some(1), Some(8)),
    ),
    (
        "PALS_RANKID=9 PALS_LOCAL_RANKID=1 PALS_LOCAL_SIZE=8 PMIX_RANK=9",
        (Launcher::Pals, 9, None, Some(1), Some(8)),
    ),
    (
        "PALS_RANKID=9 PMI_SIZE=16 PMI_LOCAL_RANK=1 PMI_LOCAL_SIZE=8",
        (Launcher::Pals, 9, Some(16), Some(1), Some(8)),
    ),
    (FLUX_TASK, (Launcher::Flux, 40, Some(64), Some(8), None)),
    (
        "JSM_NAMESPACE_RANK=3 JSM_NAMESPACE_SIZE=8 JSM_NAMESPACE_LOCAL_RANK=1 \
             JSM_NAMESPACE_LOCAL_SIZE=4 PMIX_RANK=3 OMPI_COMM_WORLD_RANK=3",
        (Launcher::Jsrun, 3, Some(8), Some(1), Some(4)),
    ),
    ("ALPS_APP_PE=3 ALPS_APP_DEPTH=1", (Launcher::Alps, 3, None, None, None)),
    (
        "ALPS_APP_PE=3 PMI_RANK=3 PMI_SIZE=8 PMI_LOCAL_RANK=1 PMI_LOCAL_SIZE=4",
        (Launcher::Alps, 3, Some(8), Some(1), Some(4)),
    ),
    (
        "SLURM_STEPID=0 SLURM_PROCID=5 SLURM_NPROCS=8 SLURM_LOCALID=1",
        (Launcher::Slurm, 5, Some(8), Some(1), None),
    ),
    (
        "RANK=3 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 TORCHELASTIC_RUN_ID=none",
        (Launcher::Torchrun, 3, Some(8), Some(1), Some(4)),
    ),
    (
        "HOROVOD_RANK=3 HOROVOD_SIZE=8 HOROVOD_LOCAL_RANK=1 HOROVOD_LOCAL_SIZE=4 \
             HOROVOD_CROSS_RANK=0",
        (Launcher::Horovod, 3, Some(8), Some(1), Some(4)),
    ),
    (
        "PADDLE_TRAINER_ID=3 PADDLE_TRAINERS_NUM=8 PADDLE_RANK_IN_NODE=1 PADDLE_LOCAL_SIZE=2",
        (Launcher::Paddle, 3, Some(8), Some(1), Some(2)),
    ),
    ("LSF_PM_TASKID=3 LSB_JOBID=7", (Launcher::Blaunch, 2, None, None, None)),
    ("PBS_TASKNUM=4 PBS_NODENUM=1 PBS_JOBID=7.m", (Launcher::Pbsdsh, 2, None, None, None)),
    (
        "PBS_TASKNUM=4 NUMALAB_LOCAL_RANK=1 NUMALAB_RANKS=8",
        (Launcher::Pbsdsh, 2, Some(8), Some(1), None),
    ),
    ("PBS_TASKNUM=1 PBS_NODENUM=1 PBS_VNODENUM=3", (Launcher::Pbsdsh, 0, None, None, None)),
    // Ranks of another launcher that PBS started have its number too.
    ("PBS_TASKNUM=4 PMIX_RANK=5", (Launcher::Pmix, 5, None, None, None)),
    (
        "PBS_TASKNUM=4 RANK=3 WORLD_SIZE=8 LOCAL_RANK=1",
        (Launcher::Pytorch, 3, Some(8), Some(1), None),
    ),
    (
        "PMI_RANK=3 PMI_SIZE=8 MPI_LOCALNRANKID=1 MPI_LOCALNRANKS=4 PMIX_RANK=3",
        (Launcher::Pmi, 3, Some(8), Some(1), Some(4)),
    ),
    ("PMI_RANK=0 PMI_SIZE=2", (Launcher::Pmi, 0, Some(2), None, None)),
    ("PMIX_RANK=3 PRTE_LAUNCHED=1", (Launcher::Pmix, 3, None, None, None)),
    ("PMIX_RANK=5 PLE_RANK_ON_NODE=1", (Launcher::Pmix, 5, None, Some(1), None)),
    ("NUMALAB_RANK=1 NUMALAB_RANKS=2", (Launcher::Local, 1, Some(2), Some(1), Some(2))),
];

#[test]
fn every_launcher_is_understood() {
    for (variables, expected) in LAUNCHERS {
        assert_eq!(known(variables), Some(*expected), "{variables}");
    }
}

#[test]
fn a_rank_with_missing_variables_is_not_taken_for_a_single_process() {
    for (variables, missing) in [
        ("NUMALAB_LOCAL_RANK=2", "NUMALAB_RANK"),
        ("OMPI_COMM_WORLD_LOCAL_RANK=1", "OMPI_COMM_WORLD_RANK"),
        ("MV2_COMM_WORLD_LOCAL_RANK=1", "MV2_COMM_WORLD_RANK"),
        ("PALS_LOCAL_RANKID=1", "PALS_RANKID"),
        ("FLUX_TASK_LOCAL_ID=1", "FLUX_TASK_RANK"),
        ("JSM_NAMESPACE_LOCAL_RANK=1", "JSM_NAMESPACE_RANK"),
        ("WORLD_SIZE=4 LOCAL_RANK=1 NODE_RANK=0", "RANK"),
    ] {
        let said = error(variables);
        assert!(said.contains(&format!("but {missing} is not: set it")), "{said}");
    }
    let found = known("NUMALAB_RANK=5 NUMALAB_RANKS=8 NUMALAB_LOCAL_RANK=1 NUMALAB_LOCAL_RANKS=4");
    assert_eq!(found, Some((Launcher::Local, 5, Some(8), Some(1), Some(4))));
    let found = known("SLURM_PROCID=2 SLURM_NTASKS=4 SLURM_LOCALID=2");
    assert_eq!(found, Some((Launcher::Slurm, 2, Some(4), Some(2), None)), "without its step");
}

/// Origin: containers that pass a part of the environment (`apptainer --cleanenv`, `sudo -E` with a list).
#[test]
fn a_number_of_several_ranks_without_a_rank_is_refused() {
    for (variables, missing) in [
        ("OMPI_COMM_WORLD_SIZE=8", "OMPI_COMM_WORLD_RANK"),
        ("PMI_SIZE=4", "PMI_RANK"),
        ("MPI_LOCALNRANKS=4", "PMI_RANK"),
        ("PALS_LOCAL_SIZE=4", "PALS_RANKID"),
        ("JSM_NAMESPACE_SIZE=8", "JSM_NAMESPACE_RANK"),
        ("SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID"),
        ("NUMALAB_RANKS=2", "NUMALAB_RANK"),
        ("FLUX_JOB_SIZE=4 FLUX_JOB_NNODES=2", "FLUX_TASK_RANK"),
    ] {
        let said = error(variables);
        assert!(said.contains(&format!("but {missing} is not: set it")), "{said}");
    }
    // One rank is this one; a batch script has sizes of others.
    for one in
        ["PMI_SIZE=1", "OMPI_COMM_WORLD_SIZE=x", "FLUX_JOB_SIZE=1", "WORLD_SIZE=8", "MPISIZE=4"]
    {
        assert_eq!(known(one), None, "{one}");
    }
}

#[test]
fn numbers_of_independent_jobs_are_not_ranks() {
    for index in [
        "JOB_COMPLETION_INDEX=3",
        "SGE_TASK_ID=3",
        "SLURM_ARRAY_TASK_ID=3",
        "PBS_ARRAY_INDEX=3",
        "PBS_TASKNUM=1 PBS_NODENUM=0 PBS_JOBID=7.m",
        "LSB_JOBINDEX=3",
        "_CONDOR_PROCNO=3",
        "MPIRANK=3",
    ] {
        assert_eq!(known(index), None, "{index}");
    }
}

#[test]
fn shells_of_a_job_are_steps_without_ranks() {
    for step in ["4294967290", "4294967291", "4294967292", "batch", "interactive", "extern"] {
        let variables =
            format!("SLURM_STEP_ID={step} SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_NTASKS=1");
        assert_eq!(known(&variables), None, "{variables}");
    }
}

#[test]
fn charmrun_gives_the_number_on_the_host_only_where_all_are_on_one() {
    let netstart = ("NETSTART", "3 10.0.0.1 4242 77 0");
    let task = of(&[netstart]).unwrap().unwrap();
    assert_eq!((task.launcher(), task.rank()), (Launcher::Charmrun, 3));
    assert_eq!((task.size(), task.local_rank()), (None, None));
    let local = of(&[netstart, ("CmiLocal", "1")]).unwrap().unwrap();
    assert_eq!(local.local_rank(), Some(3));
    assert_eq!(of(&[("NETSTART", "yes")]), Ok(None), "another tool's");
}

#[test]
fn a_stray_rank_variable_is_not_attributed_to_torchrun() {
    for stray in ["RANK=gold", "RANK=3", "RANK=x WORLD_SIZE=8 LOCAL_RANK=1", "LOCAL_RANK=0"] {
        assert_eq!(known(stray), None, "{stray}");
    }
    let plain = known("RANK=3 WORLD_SIZE=8 LOCAL_RANK=1").unwrap();
    assert_eq!(plain, (Launcher::Pytorch, 3, Some(8), Some(1), None));
    // Kubeflow gives each container these two.
    let without_local = known("RANK=3 WORLD_SIZE=8").unwrap();
    assert_eq!(without_local, (Launcher::Pytorch, 3, Some(8), None, None));
    let without_size = known("RANK=3 LOCAL_RANK=1").unwrap();
    assert_eq!(without_size, (Launcher::Pytorch, 3, None, Some(1), None));
    let said = error("RANK=9 WORLD_SIZE=8");
    assert!(said.contains("RANK=9, but WORLD_SIZE=8"), "{said}");
    let said = error("LOCAL_RANK=2 NODE_RANK=1");
    assert!(said.contains("LOCAL_RANK is set") && said.contains("but RANK is not"), "{said}");
}

#[test]
fn one_host_or_one_rank_determines_the_local_numbers() {
    let found = known("FLUX_JOB_SIZE=4 FLUX_JOB_NNODES=1 FLUX_TASK_RANK=3 FLUX_TASK_LOCAL_ID=3");
    assert_eq!(found, Some((Launcher::Flux, 3, Some(4), Some(3), Some(4))));
    let found = known("PMI_RANK=0 PMI_SIZE=1");
    assert_eq!(found, Some((Launcher::Pmi, 0, Some(1), Some(0), Some(1))));
}

#[test]
fn the_user_may_give_numbers_that_the_launcher_does_not() {
    let alps = "ALPS_APP_PE=3 NUMALAB_RANKS=8 NUMALAB_LOCAL_RANK=1 NUMALAB_LOCAL_RANKS=2";
    assert_eq!(known(alps), Some((Launcher::Alps, 3, Some(8), Some(1), Some(2))));
    let found = known(&format!("{STEP} NUMALAB_LOCAL_RANK=3"));
    assert_eq!(found, Some((Launcher::Slurm, 5, Some(8), Some(1), Some(4))), "SLURM says it");
}

#[test]
fn a_missing_number_of_ranks_is_reported_with_the_variable_that_gives_it() {
    let task = of(&[("PMIX_RANK", "3")]).unwrap().unwrap();
    let said = task.identity().unwrap_err().to_string();
    assert!(said.contains("PMIX_RANK=3") && said.contains("set NUMALAB_RANKS"), "{said}");
}

#[test]
fn nonsense_is_quoted() {
    for value in ["x", "-1", "+1", "", "1e3", "99999999999999999999", "4294967295"] {
        let variables = [("OMPI_COMM_WORLD_RANK", value), ("OMPI_COMM_WORLD_SIZE", "2")];
        let said = of(&variables).unwrap_err().to_string();
        assert!(said.contains(&format!("OMPI_COMM_WORLD_RANK={value}: expected")), "{said}");
    }
    assert!(error("MPI_LOCALRANKID=0").contains("MPICH's mpirun, but PMI_RANK is not"));
    let said = error("NUMALAB_RANK=2 NUMALAB_RANKS=2");
    assert!(said.contains("NUMALAB_RANK=2, but NUMALAB_RANKS=2"), "{said}");
    let said = error(
        "MV2_COMM_WORLD_RANK=3 MV2_COMM_WORLD_SIZE=8 MV2_COMM_WORLD_LOCAL_RANK=2 \
                      MV2_COMM_WORLD_LOCAL_SIZE=2",
    );
    assert!(
        said.contains("MV2_COMM_WORLD_LOCAL_RANK=2, but MV2_COMM_WORLD_LOCAL_SIZE=2"),
        "{said}"
    );
    let said = error("FLUX_TASK_RANK=3 FLUX_JOB_SIZE=4 FLUX_TASK_LOCAL_ID=4");
    assert!(said.contains("FLUX_TASK_LOCAL_ID=4, but FLUX_JOB_SIZE=4"), "{said}");
    let said = error("MV2_COMM_WORLD_RANK=3 MV2_COMM_WORLD_SIZE=4 MV2_COMM_WORLD_LOCAL_SIZE=5");
    assert!(said.contains("MV2_COMM_WORLD_LOCAL_SIZE=5, but MV2_COMM_WORLD_SIZE=4"), "{said}");
}

#[test]
fn tasks_per_node_are_run_length_encoded() {
    assert_eq!(tasks_on_node("2(x3),1", 2), Some(2));
    assert_eq!(tasks_on_node("2(x3),1", 3), Some(1));
    assert_eq!(tasks_on_node("2(x3),1", 4), None);
    assert_eq!(tasks_on_node("8", 0), Some(8));
}

#[test]
fn a_map_is_read_with_its_repetitions() {
    let look = |list: &'static str| {
        move |name: &str| match name {
            "SLURM_CPU_BIND_TYPE" => Some("map_cpu:".to_owned()),
            "SLURM_CPU_BIND_LIST" => Some(list.to_owned()),
            _ => None,
        }
    };
    assert_eq!(map_cpu_list(&look("0,2,4,6")), Some(vec![0, 2, 4, 6]));
    assert_eq!(map_cpu_list(&look("0x1*2,3")), Some(vec![1, 1, 3]));
    assert_eq!(map_cpu_list(&|_| None), None);
}

proptest! {
    #[test]
    fn no_environment_makes_it_panic(list in ".{0,40}", node in 0_usize..1000) {
        let _ = tasks_on_node(&list, node);
        let _ = map_cpu_list(&|name| Some(if name.ends_with("TYPE") {
            "map_cpu".to_owned()
        } else {
            list.clone()
        }));
        let _ = detect(&|_| Some(list.clone()), None);
    }
}

#[test]
fn a_rank_of_a_heterogeneous_job_has_its_local_rank_and_a_size_only_if_it_fits() {
    let part = |rank, tasks| {
        let variables = format!(
            "SLURM_HET_SIZE=2 SLURM_STEP_ID=0 SLURM_PROCID={rank} SLURM_STEP_NUM_TASKS={tasks} \
             SLURM_LOCALID=1 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=4"
        );
        known(&variables).unwrap()
    };
    assert_eq!(part(9, 4), (Launcher::Slurm, 9, None, Some(1), None));
    assert_eq!(part(9, 12), (Launcher::Slurm, 9, Some(12), Some(1), None));
    let said = error("SLURM_LOCALID=1 SLURM_JOB_ID=7");
    assert!(said.contains("SLURM_LOCALID is set") && said.contains("SLURM_PROCID"), "{said}");
}

#[test]
fn a_rank_is_described_with_what_its_launcher_sets() {
    let said = |variables: &str| {
        let look = |name: &str| {
            let mut pairs = variables.split(' ').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
        };
        detect(&look, None).unwrap().unwrap().to_string()
    };
    for (variables, expected) in [
        (
            "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1 \
             OMPI_COMM_WORLD_LOCAL_SIZE=4",
            "rank 3 of 8, local rank 1 of 4 (Open MPI's mpirun)",
        ),
        ("PALS_RANKID=9 PALS_LOCAL_RANKID=1", "rank 9, local rank 1 (PALS)"),
        ("PMIX_RANK=3", "rank 3, local rank unknown (a PMIx launcher)"),
    ] {
        assert_eq!(said(variables), expected);
    }
}
