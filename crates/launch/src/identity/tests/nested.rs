//! Launchers within tasks of other launchers.

use super::*;

#[test]
fn the_innermost_launcher_counts() {
    let alone = "SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=0 \
                 SLURM_NODEID=1 SLURM_STEP_TASKS_PER_NODE=1(x2)";
    let flux = Some((Launcher::Flux, 40, Some(64), Some(8), None));
    assert_eq!(known(&format!("{alone} {FLUX_TASK}")), flux, "Flux in a step");
    let pals = "PALS_RANKID=40 PALS_NODEID=2";
    assert_eq!(known(&format!("{FLUX_TASK} {pals}")), flux, "Flux sets PALS's too");
    let jsrun = "JSM_NAMESPACE_RANK=1 JSM_NAMESPACE_SIZE=2 OMPI_COMM_WORLD_RANK=1";
    assert_eq!(known(&format!("{FLUX_TASK} {jsrun}")), flux, "Flux in jsrun");
    let of_flux = "FLUX_JOB_SIZE=4 FLUX_JOB_NNODES=4 FLUX_TASK_RANK=2 FLUX_TASK_LOCAL_ID=0";
    let mpirun = "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=3 \
                  OMPI_COMM_WORLD_LOCAL_SIZE=4";
    let inner = Some((Launcher::OpenMpi, 3, Some(4), Some(3), Some(4)));
    let salloc = "SLURM_STEP_ID=4294967290 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1";
    for outer in [alone, salloc, of_flux] {
        assert_eq!(known(&format!("{outer} {mpirun}")), inner, "{outer}");
    }
    let torchrun = "RANK=3 WORLD_SIZE=4 LOCAL_RANK=3 TORCHELASTIC_RUN_ID=7";
    let found = known(&format!("{alone} {torchrun}")).unwrap();
    assert_eq!(found.0, Launcher::Torchrun, "torchrun in a step");
    // A job script exports such names without torchrun.
    assert_eq!(
        known(&format!("{STEP} RANK=0 WORLD_SIZE=1 LOCAL_RANK=0")).unwrap().0,
        Launcher::Slurm
    );
    assert_eq!(known(&format!("{STEP} ALPS_APP_PE=5 PMIX_RANK=5")).unwrap().0, Launcher::Slurm);
}

#[test]
fn a_launcher_within_one_of_several_tasks_of_a_host_gives_no_number_on_it() {
    let mpirun = "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0 \
                  OMPI_COMM_WORLD_LOCAL_SIZE=2";
    let torchrun = "RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 TORCHELASTIC_RUN_ID=1";
    let jsrun = "JSM_NAMESPACE_RANK=5 JSM_NAMESPACE_SIZE=8 JSM_NAMESPACE_LOCAL_RANK=1";
    let of_flux = "FLUX_TASK_RANK=5 FLUX_JOB_SIZE=8 FLUX_TASK_LOCAL_ID=1";
    for (inner, outer, launcher) in [
        (mpirun, STEP, Launcher::Slurm),
        (torchrun, STEP, Launcher::Slurm),
        (torchrun, jsrun, Launcher::Jsrun),
        (mpirun, of_flux, Launcher::Flux),
    ] {
        let variables = format!("{inner} {outer}");
        let pairs: Vec<_> =
            variables.split_whitespace().filter_map(|pair| pair.split_once('=')).collect();
        let task = of(&pairs).unwrap().unwrap();
        assert_eq!((task.outer(), task.rank()), (Some(launcher), 0), "{variables}");
        assert_eq!(task.local_rank(), None, "{variables}");
        let of_all = known(&format!("{variables} NUMALAB_LOCAL_RANK=5")).unwrap();
        assert_eq!(of_all.3, Some(5), "{variables}");
    }
    // The same rank by two names, as from `srun --mpi=pmi2` under Hydra's variables.
    let same = format!("{STEP} MPI_LOCALRANKID=1 MPI_LOCALNRANKS=4 PMI_RANK=5 PMI_SIZE=8");
    assert_eq!(known(&same), Some((Launcher::Hydra, 5, Some(8), Some(1), Some(4))));
}

#[test]
fn a_world_of_one_in_one_of_several_tasks_has_the_number_of_the_task() {
    let mpirun = "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_LOCAL_RANK=0 \
                  OMPI_COMM_WORLD_LOCAL_SIZE=1";
    let in_step = known(&format!("{STEP} {mpirun}"));
    assert_eq!(in_step, Some((Launcher::OpenMpi, 0, Some(1), Some(1), Some(4))));
    // Origin: mpiexec.hydra of Intel MPI 2021.19 within mpirun of Open MPI 5.0.11.
    let in_open_mpi = "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1 \
                       OMPI_COMM_WORLD_LOCAL_SIZE=2 PMI_RANK=0 PMI_SIZE=1 MPI_LOCALRANKID=0 \
                       MPI_LOCALNRANKS=1";
    let of_hydra = near(in_open_mpi, Some(Launcher::Hydra));
    assert_eq!(of_hydra, Some((Launcher::Hydra, 0, Some(1), Some(1), Some(2))));
    // srun within a Flux job of one task, within a SLURM allocation.
    let flux = "FLUX_TASK_RANK=0 FLUX_JOB_SIZE=1 FLUX_JOB_NNODES=1 FLUX_TASK_LOCAL_ID=0";
    let step_in_flux = known(&format!("{STEP} {flux}"));
    assert_eq!(step_in_flux, Some((Launcher::Flux, 0, Some(1), Some(1), Some(4))));
}

#[test]
fn a_launcher_of_pytorch_within_another_ones_task_counts_if_its_world_is_another() {
    let deepspeed = "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1";
    let pytorch = |local| Some((Launcher::Pytorch, 5, Some(8), local, None));
    let alone = "SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=0 \
                 SLURM_NODEID=1 SLURM_STEP_TASKS_PER_NODE=1(x2)";
    let mpirun = "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_LOCAL_RANK=0 \
                  OMPI_COMM_WORLD_LOCAL_SIZE=1";
    for outer in [alone, mpirun] {
        assert_eq!(known(&format!("{deepspeed} {outer}")), pytorch(Some(1)), "{outer}");
    }
    let among_others = STEP.replace("SLURM_STEP_NUM_TASKS=8", "SLURM_STEP_NUM_TASKS=6");
    assert_eq!(known(&format!("{deepspeed} {among_others}")), pytorch(None));
    // A job script that exports the variables of its own task, or of one process.
    let step = known(STEP);
    for exported in ["RANK=0 WORLD_SIZE=8 LOCAL_RANK=0", "RANK=0 WORLD_SIZE=1 LOCAL_RANK=0"] {
        assert_eq!(known(&format!("{exported} {STEP}")), step, "{exported}");
    }
    let own = "NUMALAB_RANK=1 NUMALAB_RANKS=2";
    assert_eq!(known(&format!("{deepspeed} {own}")), known(own));
}

#[test]
fn mpirun_within_a_task_of_jsrun_is_distinguished_from_the_variables_that_jsrun_sets() {
    let jsrun = "JSM_NAMESPACE_RANK=0 JSM_NAMESPACE_SIZE=1 JSM_NAMESPACE_LOCAL_RANK=0 \
                 JSM_NAMESPACE_LOCAL_SIZE=1";
    let mpirun = "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=2 \
                  OMPI_COMM_WORLD_LOCAL_SIZE=4";
    let inner = Some((Launcher::OpenMpi, 2, Some(4), Some(2), Some(4)));
    assert_eq!(known(&format!("{jsrun} {mpirun}")), inner);
}

#[test]
fn variables_of_pals_that_slurm_and_flux_set_on_cray_systems_are_the_same_rank() {
    let cray = "PALS_APID=9.0 PALS_APINFO=/run/a PALS_RANKID=5 PALS_NODEID=1 PALS_SPOOL_DIR=/run \
                PMI_CONTROL_PORT=20000";
    assert_eq!(known(&format!("{STEP} {cray}")), known(STEP));
    let flux = "FLUX_TASK_RANK=5 FLUX_JOB_SIZE=8 FLUX_JOB_NNODES=2 FLUX_TASK_LOCAL_ID=1";
    for local in ["", "PALS_LOCAL_RANKID=1"] {
        assert_eq!(known(&format!("{flux} {cray} {local}")), known(flux), "{local}");
    }
    // The same rank under another name has the numbers that either of the two gives.
    let mvapich = known(&format!("{STEP} MV2_COMM_WORLD_RANK=5 MV2_COMM_WORLD_SIZE=8"));
    assert_eq!(mvapich, Some((Launcher::Mvapich, 5, Some(8), Some(1), Some(4))));
}

#[test]
fn of_two_mpiruns_the_one_that_started_the_nearest_process_counts() {
    let ompi = |rank: u32, size: u32| {
        format!(
            "OMPI_COMM_WORLD_RANK={rank} OMPI_COMM_WORLD_SIZE={size} \
             OMPI_COMM_WORLD_LOCAL_RANK={rank} OMPI_COMM_WORLD_LOCAL_SIZE={size} PMIX_RANK={rank}"
        )
    };
    let hydra = |rank: u32, size: u32| {
        format!("PMI_RANK={rank} PMI_SIZE={size} MPI_LOCALRANKID={rank} MPI_LOCALNRANKS={size}")
    };
    let four = format!("{} {}", ompi(1, 2), hydra(3, 4));
    let of_hydra = near(&four, Some(Launcher::Hydra)).unwrap();
    assert_eq!(of_hydra, (Launcher::Hydra, 3, Some(4), None, None), "one of two tasks");
    let alike = near(&format!("{} {}", ompi(1, 2), hydra(1, 2)), Some(Launcher::Hydra)).unwrap();
    assert_eq!(alike, (Launcher::Hydra, 1, Some(2), None, None), "not the same rank");
    let of_ompi = near(&four, Some(Launcher::OpenMpi)).unwrap();
    assert_eq!(of_ompi, (Launcher::OpenMpi, 1, Some(2), None, None));
    // Without the processes, as in a container, the world of one is the outer one.
    let whole = |launcher, rank| Some((launcher, rank, Some(4), Some(rank), Some(4)));
    let in_ompi = format!("{} {}", ompi(0, 1), hydra(3, 4));
    assert_eq!(known(&in_ompi), whole(Launcher::Hydra, 3));
    assert_eq!(known(&format!("{} {}", ompi(3, 4), hydra(0, 1))), whole(Launcher::OpenMpi, 3));
    // numalab's own ranks within a single one, and srun within mpirun.
    let own = "NUMALAB_RANK=1 NUMALAB_RANKS=2";
    let within = format!("{own} {}", ompi(0, 1));
    assert_eq!(near(&within, Some(Launcher::OpenMpi)), known(own));
    let step = near(&format!("{STEP} {}", ompi(0, 1)), Some(Launcher::Slurm));
    assert_eq!(step, known(STEP));
    // torchrun's own process has the name of an interpreter.
    let torchrun = format!("{STEP} RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 TORCHELASTIC_RUN_ID=1");
    assert_eq!(near(&torchrun, Some(Launcher::Slurm)).unwrap().0, Launcher::Torchrun);
}

#[test]
fn ranks_within_a_rank_are_refused_except_its_own() {
    let task = of(&SRUN).unwrap().unwrap();
    let said = task.starts_ranks(4).unwrap_err().to_string();
    assert!(said.contains("--ranks 4") && said.contains("SLURM_PROCID=5"), "{said}");
    assert_eq!(Task::of_own(1, 4).starts_ranks(4), Ok(false));
    assert!(Task::of_own(1, 4).starts_ranks(2).is_err());
    assert!(Task::of_own(0, 1).starts_ranks(2).is_err());
    let shell = [("SLURM_STEP_ID", "0"), ("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1")];
    assert_eq!(of(&shell).unwrap().unwrap().starts_ranks(4), Ok(true));
}

#[test]
fn a_world_of_one_in_a_step_of_many_is_refused() {
    let singleton = of(&[&SRUN[..], &[("PMI_SIZE", "1")]].concat()).unwrap_err();
    assert_eq!(singleton, IdentityError::SingletonWorld { tasks: 8, size: 1 });
    assert_eq!(of(&[&SRUN[..], &[("PMI_SIZE", "8")]].concat()).unwrap().unwrap().size(), Some(8));
}

#[test]
fn local_numbers_left_over_from_an_mpirun_around_the_launcher_are_refused() {
    let flux = "FLUX_TASK_RANK=3 FLUX_TASK_LOCAL_ID=3 FLUX_JOB_SIZE=4 FLUX_JOB_NNODES=1";
    let step = "SLURM_STEP_ID=0 SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=4 SLURM_LOCALID=3 \
                SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=4";
    let pmi = "PMI_RANK=3 PMI_SIZE=4";
    for (inner, local) in [(flux, "FLUX_TASK_LOCAL_ID=3"), (step, "SLURM_LOCALID=3")] {
        let said = error(&format!("{inner} {pmi} MPI_LOCALRANKID=0 MPI_LOCALNRANKS=1"));
        assert!(said.contains("MPI_LOCALRANKID=0") && said.contains(local), "{said}");
        let same = known(&format!("{inner} {pmi} MPI_LOCALRANKID=3 MPI_LOCALNRANKS=4"));
        assert_eq!(same.unwrap().3, Some(3), "{inner}");
    }
    let first = flux.replace("RANK=3", "RANK=0").replace("ID=3", "ID=0");
    let said = error(&format!("{first} PMI_RANK=0 PMI_SIZE=4 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=1"));
    assert!(said.contains("MPI_LOCALNRANKS=1, as") && said.contains("FLUX_JOB_SIZE=4"), "{said}");
    // Without PMI, as by `flux run -o pmi=off`, only Flux describes the rank.
    let found = known(&format!("{flux} MPI_LOCALRANKID=0 MPI_LOCALNRANKS=1"));
    assert_eq!(found, Some((Launcher::Flux, 3, Some(4), Some(3), Some(4))));
}

#[test]
fn a_launcher_of_several_ranks_ran_within_the_rank_of_numalab() {
    let own = "NUMALAB_RANK=0 NUMALAB_RANKS=2";
    let mpirun = "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1 \
                  OMPI_COMM_WORLD_LOCAL_SIZE=2";
    let torchrun = "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 TORCHELASTIC_RUN_ID=1";
    for (inner, launcher) in
        [(mpirun, Launcher::OpenMpi), (torchrun, Launcher::Torchrun), (STEP, Launcher::Slurm)]
    {
        let variables = format!("{own} {inner}");
        let pairs: Vec<_> =
            variables.split_whitespace().filter_map(|pair| pair.split_once('=')).collect();
        let task = of(&pairs).unwrap().unwrap();
        assert_eq!((task.launcher(), task.outer()), (launcher, Some(Launcher::Local)), "{inner}");
        assert_eq!(task.local_rank(), None, "{inner}");
    }
    // The shell in which numalab started its ranks is a single task.
    let shell = "SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_LOCALID=0";
    assert_eq!(known(&format!("{own} {shell}")), known(own));
}

/// Regression: `prterun` in a SLURM job starts its daemons by srun, one a host, and every rank took the
/// daemon's number for its own: all of a host bound to the first node.
#[test]
fn prterun_whose_daemons_another_launcher_started_gives_the_rank() {
    let daemon = "SLURM_STEP_ID=1 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=0 \
                  SLURM_NODEID=1 SLURM_STEP_TASKS_PER_NODE=1(x2)";
    let pals = "PALS_RANKID=1 PALS_LOCAL_RANKID=0 PALS_LOCAL_SIZE=1";
    let prrte = |rank: u32| format!("PMIX_RANK={rank} PMIX_NAMESPACE=prterun-a-17@1");
    for outer in [daemon, pals] {
        for rank in [1, 6] {
            let found = known(&format!("{outer} {}", prrte(rank))).unwrap();
            assert_eq!(found, (Launcher::Pmix, rank as usize, None, None, None), "{outer}");
        }
    }
    // The launchers' own PMIx, and srun in a rank of prterun.
    let own = "PMIX_RANK=5 PMIX_NAMESPACE=slurm.pmix.7.0";
    assert_eq!(known(&format!("{STEP} {own}")), known(STEP));
    let within = near(&format!("{STEP} {}", prrte(0)), Some(Launcher::Slurm));
    assert_eq!(within, known(STEP));
}

#[test]
fn mvapich_by_hydra_is_one_rank_of_two_names() {
    let mvapich = "MVP_COMM_WORLD_RANK=3 MVP_COMM_WORLD_SIZE=8 MVP_COMM_WORLD_LOCAL_RANK=1 \
                   MVP_COMM_WORLD_LOCAL_SIZE=2";
    let hydra = "PMI_RANK=3 PMI_SIZE=8 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2";
    assert_eq!(known(&format!("{mvapich} {hydra}")), known(mvapich));
    // One of eight ranks on the host that started eight others.
    let around = "PMI_RANK=3 PMI_SIZE=8 MPI_LOCALRANKID=3 MPI_LOCALNRANKS=8";
    assert_eq!(known(&format!("{mvapich} {around}")).unwrap().3, None);
}
