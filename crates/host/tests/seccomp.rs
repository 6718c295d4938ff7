//! A seccomp filter that forbids memory policies, as in a container, on one thread.

use std::thread;

use numalab_host::{
    Classed, ErrorClass, Mapping, MappingError, ProofError, Root, base_pages, prove, read_machine,
};
use numalab_record::ProofMethod;

/// Makes these system calls of the calling thread fail with `EPERM`; false if the kernel has no
/// filters (qemu-user).
fn forbid(calls: &[libc::c_long]) -> bool {
    let step = |code: u32, jump_true, jump_false, value| libc::sock_filter {
        code: u16::try_from(code).unwrap(),
        jt: jump_true,
        jf: jump_false,
        k: value,
    };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let jump = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let answer = libc::BPF_RET | libc::BPF_K;
    // The first field of `seccomp_data` is the number of the call.
    let mut program = vec![step(load, 0, 0, 0)];
    for &call in calls {
        program.push(step(jump, 0, 1, u32::try_from(call).unwrap()));
        let refuse = libc::SECCOMP_RET_ERRNO | u32::try_from(libc::EPERM).unwrap();
        program.push(step(answer, 0, 0, refuse));
    }
    program.push(step(answer, 0, 0, libc::SECCOMP_RET_ALLOW));
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).unwrap(),
        filter: program.as_mut_ptr(),
    };
    // SAFETY: `filter` points to `len` steps that outlive the call; both calls change the
    // calling thread only.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) == 0
    }
}

/// Runs `work` in a thread that may not use `calls`.
fn with_forbidden(calls: &'static [libc::c_long], work: impl FnOnce() + Send + 'static) {
    let forbidden = thread::spawn(move || {
        if !forbid(calls) {
            eprintln!("NOT RUN: this kernel has no seccomp filters");
            return;
        }
        work();
    });
    forbidden.join().unwrap();
}

#[test]
fn where_move_pages_is_forbidden_numa_maps_proves_the_node() {
    with_forbidden(&[libc::SYS_move_pages], || {
        let nodes = read_machine(&Root::live()).unwrap().machine.memory_nodes();
        let node = nodes.first().unwrap();
        let mut memory = Mapping::new(1 << 20, base_pages()).unwrap();
        memory.bind(node).unwrap();
        memory.populate().unwrap();
        match prove(&memory, node) {
            Ok(proof) => {
                assert_eq!(proof.method, ProofMethod::NumaMaps);
                assert_eq!(proof.pages_per_node[&node], proof.pages_total);
                assert_eq!(proof.pages_checked, proof.pages_total);
            }
            Err(error) => {
                assert!(matches!(error, ProofError::CannotBeProven { .. }), "{error}");
                assert_eq!(error.class(), ErrorClass::Lacking);
            }
        }
    });
}

#[test]
fn where_mbind_is_forbidden_only_a_single_node_can_be_used() {
    with_forbidden(&[libc::SYS_mbind], || {
        let machine = read_machine(&Root::live()).unwrap().machine;
        let node = machine.memory_nodes().first().unwrap();
        let mut memory = Mapping::new(1 << 20, base_pages()).unwrap();
        let bound = memory.bind(node);
        if machine.nodes.len() == 1 {
            assert_eq!(bound, Ok(()));
            return;
        }
        let error = bound.unwrap_err();
        assert!(matches!(error, MappingError::BindForbidden { .. }), "{error}");
        assert_eq!(error.class(), ErrorClass::Lacking);
        assert!(error.to_string().contains("--cap-add SYS_NICE"));
    });
}

#[test]
fn forbidden_pinning_is_reported() {
    with_forbidden(&[libc::SYS_sched_setaffinity], || {
        let cpu = numalab_host::current_place().cpu;
        let error = numalab_host::pin(cpu).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Lacking);
        assert!(error.to_string().contains("seccomp"), "{error}");
    });
}
