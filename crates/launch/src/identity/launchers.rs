//! Launchers, with the variables that each sets for its ranks.

use core::fmt;

/// The launcher that started this process as a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// numalab itself: `--ranks N`, `scale --launcher local`.
    Local,
    /// PyTorch's `torchrun`.
    Torchrun,
    /// Another launcher of PyTorch, such as DeepSpeed's or Kubeflow's.
    Pytorch,
    /// PaddlePaddle's `paddle.distributed.launch`.
    Paddle,
    /// `horovodrun`, with MPI or without.
    Horovod,
    /// IBM's `jsrun` (Job Step Manager).
    Jsrun,
    /// Open MPI's `mpirun`, alone or through PRRTE.
    OpenMpi,
    /// MVAPICH's `mpirun_rsh`, of releases 2 and 3.
    Mvapich,
    /// `mpirun` of IBM Platform MPI (formerly HP-MPI).
    PlatformMpi,
    /// Hydra: `mpirun` of MPICH and Intel MPI.
    Hydra,
    Flux,
    /// HPE's PALS (`aprun`, `mpiexec`).
    Pals,
    /// `srun`.
    Slurm,
    /// Cray's ALPS (`aprun`).
    Alps,
    /// `mpiexec_mpt` of HPE MPT (formerly SGI).
    Mpt,
    /// `mpirun` of NEC MPI.
    Nec,
    /// `HTCondor`, in its parallel universe.
    Condor,
    /// `poe` of IBM's Parallel Environment.
    Poe,
    /// `mpiexec` of the Ohio Supercomputer Center, for PBS.
    OscMpiexec,
    /// LSF's `blaunch`.
    Blaunch,
    /// `charmrun` of Charm++.
    Charmrun,
    /// `pbsdsh` of PBS and TORQUE.
    Pbsdsh,
    /// Another launcher that speaks PMI.
    Pmi,
    /// Another launcher that speaks `PMIx`.
    Pmix,
}

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Local => "numalab",
            Self::Torchrun => "torchrun",
            Self::Pytorch => "a PyTorch launcher",
            Self::Paddle => "PaddlePaddle",
            Self::Horovod => "horovodrun",
            Self::Jsrun => "jsrun",
            Self::OpenMpi => "Open MPI's mpirun",
            Self::Mvapich => "MVAPICH's mpirun_rsh",
            Self::PlatformMpi => "Platform MPI's mpirun",
            Self::Hydra => "MPICH's mpirun",
            Self::Flux => "Flux",
            Self::Pals => "PALS",
            Self::Slurm => "srun",
            Self::Alps => "ALPS",
            Self::Mpt => "HPE MPT's mpiexec_mpt",
            Self::Nec => "NEC MPI's mpirun",
            Self::Condor => "HTCondor",
            Self::Poe => "poe",
            Self::OscMpiexec => "OSC mpiexec",
            Self::Blaunch => "blaunch",
            Self::Charmrun => "charmrun",
            Self::Pbsdsh => "pbsdsh",
            Self::Pmi => "a PMI launcher",
            Self::Pmix => "a PMIx launcher",
        })
    }
}

/// The variables of a launcher; `None` if it does not set one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variables {
    pub launcher: Launcher,
    /// Variables that are set if and only if this launcher started the process.
    pub signs: &'static [&'static str],
    pub rank: &'static str,
    /// The number of the first rank.
    pub first: usize,
    pub size: Option<&'static str>,
    /// The first that is set counts.
    pub local_rank: &'static [&'static str],
    pub local_size: &'static [&'static str],
    /// The number of hosts; if it is 1, the local numbers follow.
    pub hosts: Option<&'static str>,
}

/// numalab's variable for the rank.
pub const RANK: &str = "NUMALAB_RANK";
/// numalab's variable for the number of ranks; those that it starts are on one host.
pub const SIZE: &str = "NUMALAB_RANKS";
/// Variable with which the user gives the local rank if the launcher does not.
pub const LOCAL_RANK: &str = "NUMALAB_LOCAL_RANK";
/// Variable with which the user gives the number of ranks on this host.
pub const LOCAL_SIZE: &str = "NUMALAB_LOCAL_RANKS";

const fn usual(launcher: Launcher, signs: &'static [&'static str]) -> Variables {
    Variables {
        launcher,
        signs,
        rank: signs[0],
        first: 0,
        size: None,
        local_rank: &[],
        local_size: &[],
        hosts: None,
    }
}

/// numalab's own ranks.
pub(super) const OWN: Variables = Variables {
    size: Some(SIZE),
    local_rank: &[LOCAL_RANK, RANK],
    local_size: &[LOCAL_SIZE, SIZE],
    ..usual(Launcher::Local, &[RANK])
};

/// torchrun(1), "Environment Variables". Other tools and wrappers set `RANK` too, so it counts
/// first only together with torchrun's own `TORCHELASTIC_RUN_ID`.
pub(super) const TORCHRUN: Variables = Variables {
    size: Some("WORLD_SIZE"),
    local_rank: &["LOCAL_RANK"],
    local_size: &["LOCAL_WORLD_SIZE"],
    ..usual(Launcher::Torchrun, &["RANK", "WORLD_SIZE", "LOCAL_RANK"])
};

/// Launchers without `TORCHELASTIC_RUN_ID`; Kubeflow's sets no `LOCAL_RANK`.
pub(super) const PYTORCH: Variables =
    Variables { launcher: Launcher::Pytorch, signs: &["RANK", "WORLD_SIZE"], ..TORCHRUN };

/// flux-environment(7). A Flux job can run within one of SLURM, PALS or jsrun; on Cray systems its
/// shell plugin sets some variables of PALS.
pub(super) const FLUX: Variables = Variables {
    size: Some("FLUX_JOB_SIZE"),
    local_rank: &["FLUX_TASK_LOCAL_ID"],
    hosts: Some("FLUX_JOB_NNODES"),
    ..usual(Launcher::Flux, &["FLUX_TASK_RANK"])
};

/// IBM Spectrum LSF, jsrun(1). It sets Open MPI's variables too, since Spectrum MPI is based on it.
pub(super) const JSRUN: Variables = Variables {
    size: Some("JSM_NAMESPACE_SIZE"),
    local_rank: &["JSM_NAMESPACE_LOCAL_RANK"],
    local_size: &["JSM_NAMESPACE_LOCAL_SIZE"],
    ..usual(Launcher::Jsrun, &["JSM_NAMESPACE_RANK"])
};

/// OpenPBS and TORQUE number the processes that they start for a job; the first, on the first node,
/// is its script. Those of any other launcher inherit the number, so this one comes last.
pub(super) const PBSDSH: Variables =
    Variables { first: 2, ..usual(Launcher::Pbsdsh, &["PBS_TASKNUM"]) };

/// The PMIx standard, "Environment variables"; everything else must be queried from its server. Some
/// launchers add the local rank, such as Fujitsu's mpiexec.
pub(super) const PMIX: Variables = Variables {
    local_rank: &["PMIX_LOCAL_RANK", "PLE_RANK_ON_NODE"],
    ..usual(Launcher::Pmix, &["PMIX_RANK"])
};

/// Launchers that can run inside another one's step come before those that cannot.
pub(super) const BEFORE_SLURM: [Variables; 10] = [
    // Horovod's launcher over Gloo (`runner/gloo_run.py`); over MPI, its ranks are those of MPI.
    Variables {
        size: Some("HOROVOD_SIZE"),
        local_rank: &["HOROVOD_LOCAL_RANK"],
        local_size: &["HOROVOD_LOCAL_SIZE"],
        ..usual(Launcher::Horovod, &["HOROVOD_RANK"])
    },
    // `paddle/distributed/launch/controllers`.
    Variables {
        size: Some("PADDLE_TRAINERS_NUM"),
        local_rank: &["PADDLE_RANK_IN_NODE", "PADDLE_LOCAL_RANK"],
        local_size: &["PADDLE_LOCAL_SIZE"],
        ..usual(Launcher::Paddle, &["PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"])
    },
    // Open MPI 5.0, "Environment variables set for MPI applications".
    Variables {
        size: Some("OMPI_COMM_WORLD_SIZE"),
        local_rank: &["OMPI_COMM_WORLD_LOCAL_RANK"],
        local_size: &["OMPI_COMM_WORLD_LOCAL_SIZE"],
        ..usual(Launcher::OpenMpi, &["OMPI_COMM_WORLD_RANK"])
    },
    // MVAPICH2 user guide, "MPIRUN_RSH Parameters".
    Variables {
        size: Some("MV2_COMM_WORLD_SIZE"),
        local_rank: &["MV2_COMM_WORLD_LOCAL_RANK"],
        local_size: &["MV2_COMM_WORLD_LOCAL_SIZE"],
        ..usual(Launcher::Mvapich, &["MV2_COMM_WORLD_RANK"])
    },
    // MVAPICH 3 renamed them.
    Variables {
        size: Some("MVP_COMM_WORLD_SIZE"),
        local_rank: &["MVP_COMM_WORLD_LOCAL_RANK"],
        local_size: &["MVP_COMM_WORLD_LOCAL_SIZE"],
        ..usual(Launcher::Mvapich, &["MVP_COMM_WORLD_RANK"])
    },
    // Platform MPI shares the local variables with Hydra, which does not set this one.
    Variables {
        size: Some("MPI_NRANKS"),
        local_rank: &["MPI_LOCALRANKID"],
        local_size: &["MPI_LOCALNRANKS"],
        ..usual(Launcher::PlatformMpi, &["MPI_RANKID"])
    },
    // NEC MPI User's Guide, "Environment Variables". `MPIRANK` alone is often a script's own. NEC's
    // libraries for Python read the local rank of later versions (`mpi4py-ve`, `nlcpy`).
    Variables {
        size: Some("MPISIZE"),
        local_rank: &["NMPI_LOCAL_RANK"],
        ..usual(Launcher::Nec, &["MPIRANK", "MPISIZE"])
    },
    // Hydra of MPICH and Intel MPI; the variable of the local rank distinguishes it from other PMI
    // launchers.
    Variables {
        rank: "PMI_RANK",
        size: Some("PMI_SIZE"),
        local_rank: &["MPI_LOCALRANKID"],
        local_size: &["MPI_LOCALNRANKS"],
        ..usual(Launcher::Hydra, &["MPI_LOCALRANKID", "PMI_RANK"])
    },
    FLUX,
    // HPE's mpiexec(1) of PALS; without its PMI (`--pmi=pmix`), PMI_SIZE is not set.
    Variables {
        size: Some("PMI_SIZE"),
        local_rank: &["PALS_LOCAL_RANKID", "PMI_LOCAL_RANK"],
        local_size: &["PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE"],
        ..usual(Launcher::Pals, &["PALS_RANKID"])
    },
];

/// The launchers with the least information. SLURM sets variables of ALPS, PMI and `PMIx` for its
/// own tasks.
pub(super) const AFTER_SLURM: [Variables; 9] = [
    // Cray's aprun(1); the rest is from its PMI, for programs that use it.
    Variables {
        size: Some("PMI_SIZE"),
        local_rank: &["PMI_LOCAL_RANK"],
        local_size: &["PMI_LOCAL_SIZE"],
        ..usual(Launcher::Alps, &["ALPS_APP_PE"])
    },
    Variables { local_rank: &["MPT_LRANK"], ..usual(Launcher::Mpt, &["MPT_MPI_RANK"]) },
    // MVAPICH 1 (`mpirun_rsh.c`); SLURM's plugin for it sets them too.
    Variables {
        size: Some("MPIRUN_NPROCS"),
        ..usual(Launcher::Mvapich, &["MPIRUN_RANK", "MPIRUN_NPROCS"])
    },
    usual(Launcher::Poe, &["MP_CHILD"]),
    usual(Launcher::OscMpiexec, &["MPIEXEC_RANK"]),
    // PMI 1 and 2 of any process manager; Cray's also sets the local numbers, and PRRTE's by other
    // names (`prterun --personality mpich`; PMIx, `pmdl/mpich`).
    Variables {
        size: Some("PMI_SIZE"),
        local_rank: &["PMI_LOCAL_RANK", "MPI_LOCALNRANKID"],
        local_size: &["PMI_LOCAL_SIZE", "MPI_LOCALNRANKS"],
        ..usual(Launcher::Pmi, &["PMI_RANK"])
    },
    // LSF's process manager counts tasks from 1, as PRRTE reads it (`ess/lsf`).
    Variables { first: 1, ..usual(Launcher::Blaunch, &["LSF_PM_TASKID"]) },
    PMIX,
    // HTCondor manual, "Parallel Applications": a process for each slot. Scripts of other universes set
    // one of them as the number of a job.
    Variables {
        size: Some("_CONDOR_NPROCS"),
        ..usual(Launcher::Condor, &["_CONDOR_PROCNO", "_CONDOR_NPROCS"])
    },
];
