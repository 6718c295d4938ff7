use proptest::prelude::*;

use super::*;

fn of(variables: &[(&str, &str)]) -> Result<Option<Identity>, IdentityError> {
    detect(&|name| {
        variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    })
}

fn rank(launcher: Launcher, rank: usize, size: usize, local: (usize, usize)) -> Identity {
    Identity { launcher, rank, size, local: Some(Local { rank: local.0, size: local.1 }) }
}

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
    // A shell in an allocation, and a batch script, which is a step of one task.
    assert_eq!(of(&[("SLURM_JOB_ID", "7"), ("SLURM_NTASKS", "8")]), Ok(None));
    assert_eq!(of(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")]), Ok(None));
}

#[test]
fn every_launcher_is_understood() {
    assert_eq!(of(&SRUN), Ok(Some(rank(Launcher::Slurm, 5, 8, (1, 4)))));
    let open_mpi = [
        ("OMPI_COMM_WORLD_RANK", "3"),
        ("OMPI_COMM_WORLD_SIZE", "4"),
        ("OMPI_COMM_WORLD_LOCAL_RANK", "1"),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
    ];
    assert_eq!(of(&open_mpi), Ok(Some(rank(Launcher::OpenMpi, 3, 4, (1, 2)))));
    let hydra =
        [("PMI_RANK", "2"), ("PMI_SIZE", "3"), ("MPI_LOCALRANKID", "0"), ("MPI_LOCALNRANKS", "1")];
    assert_eq!(of(&hydra), Ok(Some(rank(Launcher::Hydra, 2, 3, (0, 1)))));
    let pals = [
        ("PALS_RANKID", "2"),
        ("PALS_LOCAL_RANKID", "2"),
        ("PMI_SIZE", "3"),
        ("PMI_LOCAL_SIZE", "3"),
    ];
    assert_eq!(of(&pals), Ok(Some(rank(Launcher::Pals, 2, 3, (2, 3)))));
    let pmi = [("PMI_RANK", "0"), ("PMI_SIZE", "2")];
    let expected = Identity { launcher: Launcher::Pmi, rank: 0, size: 2, local: None };
    assert_eq!(of(&pmi), Ok(Some(expected)));
    let own = [("NUMALAB_RANK", "1"), ("NUMALAB_RANKS", "2")];
    assert_eq!(of(&own), Ok(Some(rank(Launcher::Local, 1, 2, (1, 2)))));
}

#[test]
fn mpirun_within_a_job_counts_and_not_the_step_that_started_its_daemon() {
    let inner = [
        ("OMPI_COMM_WORLD_RANK", "1"),
        ("OMPI_COMM_WORLD_SIZE", "2"),
        ("OMPI_COMM_WORLD_LOCAL_RANK", "1"),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
    ];
    let found = of(&[&SRUN[..], &inner].concat()).unwrap().unwrap();
    assert_eq!((found.launcher, found.rank, found.size), (Launcher::OpenMpi, 1, 2));
}

#[test]
fn a_world_of_one_in_a_step_of_many_is_refused() {
    let singleton = of(&[&SRUN[..], &[("PMI_SIZE", "1")]].concat()).unwrap_err();
    assert_eq!(singleton, IdentityError::SingletonWorld { tasks: 8, size: 1 });
    assert_eq!(of(&[&SRUN[..], &[("PMI_SIZE", "8")]].concat()).unwrap().unwrap().size, 8);
}

#[test]
fn nonsense_is_quoted() {
    let error = of(&[("OMPI_COMM_WORLD_RANK", "x"), ("OMPI_COMM_WORLD_SIZE", "2")]).unwrap_err();
    assert!(error.to_string().contains("OMPI_COMM_WORLD_RANK=x"), "{error}");
    let error = of(&[("PMI_RANK", "0")]).unwrap_err();
    assert!(error.to_string().contains("PMI_SIZE"), "{error}");
    let error = of(&[("NUMALAB_RANK", "2"), ("NUMALAB_RANKS", "2")]).unwrap_err();
    assert!(error.to_string().contains("rank 2 of 2"), "{error}");
}

#[test]
fn tasks_per_node_are_told_in_runs() {
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
        let _ = detect(&|_| Some(list.clone()));
    }
}
