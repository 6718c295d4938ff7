//! The cpus and nodes that a process may use, in its status (proc_pid_status(5)).

use std::fs::File;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::os::unix::fs::FileExt as _;

use super::super::Program;
use super::super::guest_memory;
use super::super::world::World;

impl Program {
    /// Replaces a file that the program opened, if it is the status of a process or thread, by a copy
    /// with the cpus and nodes of the emulated machine.
    pub(super) fn opened(&self, world: &World, descriptor: u64) {
        let Some(path) = guest_memory::file(descriptor) else { return };
        let Some(thread) = status_of(&path) else { return };
        let Ok(host) = std::fs::read_to_string(&path) else { return };
        let machine = &world.engine.arguments.machine;
        let order = self.turns.order();
        let cpus = match order.seat_of(thread) {
            Some(seat) => order.schedule.allowed(seat).collect(),
            None => (0..machine.cpus.len()).collect(),
        };
        drop(order);
        let nodes = world.with_memory().into_iter().map(|node| machine.nodes[node].id as usize);
        replace(descriptor, &shown(&host, cpus, nodes.collect()));
    }
}

/// Returns the thread or process for a path such as `/proc/42/status`.
fn status_of(path: &str) -> Option<u64> {
    let of = path.strip_prefix("/proc/")?.strip_suffix("/status")?;
    of.rsplit('/').next()?.parse().ok()
}

/// Returns a status with these cpus and nodes.
fn shown(host: &str, mut cpus: Vec<usize>, nodes: Vec<usize>) -> String {
    cpus.sort_unstable();
    let line = |line: &str| {
        let (name, _) = line.split_once(':').unwrap_or((line, ""));
        let text = match name {
            "Cpus_allowed" => mask(&cpus),
            "Cpus_allowed_list" => list(&cpus),
            "Mems_allowed" => mask(&nodes),
            "Mems_allowed_list" => list(&nodes),
            _ => return format!("{line}\n"),
        };
        format!("{name}:\t{text}\n")
    };
    host.lines().map(line).collect()
}

/// Formats numbers like the kernel's masks: 32-bit words in hexadecimal, the highest first.
fn mask(numbers: &[usize]) -> String {
    let mut words = vec![0_u32; numbers.iter().max().map_or(1, |most| most / 32 + 1)];
    numbers.iter().for_each(|number| words[number / 32] |= 1 << (number % 32));
    let words: Vec<String> = words.iter().rev().map(|word| format!("{word:08x}")).collect();
    words.join(",")
}

/// Formats ascending numbers as ranges: `0-2,5`.
fn list(numbers: &[usize]) -> String {
    let follows = |one: &usize, next: &usize| one + 1 == *next;
    let range = |run: &[usize]| match run {
        [first, .., last] => format!("{first}-{last}"),
        run => run.iter().map(usize::to_string).collect(),
    };
    numbers.chunk_by(follows).map(range).collect::<Vec<_>>().join(",")
}

/// Makes a descriptor one of a file with this text.
fn replace(descriptor: u64, text: &str) {
    let Ok(descriptor) = i32::try_from(descriptor) else { return };
    // SAFETY: the name is a C string; a valid descriptor is ours alone.
    let file = unsafe {
        let made = libc::memfd_create(c"status".as_ptr(), libc::MFD_CLOEXEC);
        if made < 0 {
            return;
        }
        File::from_raw_fd(made)
    };
    if file.write_all_at(text.as_bytes(), 0).is_err() {
        return;
    }
    // SAFETY: the calls take only numbers. The descriptor is the program's, which has just opened it.
    unsafe {
        let closes = libc::fcntl(descriptor, libc::F_GETFD) & libc::FD_CLOEXEC != 0;
        libc::dup3(file.as_raw_fd(), descriptor, if closes { libc::O_CLOEXEC } else { 0 });
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_status_shows_the_emulated_machine_and_is_otherwise_the_hosts() {
        let host = "Name:\tcat\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\nMems_allowed:\t00000000,1\n\
                    Mems_allowed_list:\t0\nVmRSS:\t7 kB\n";
        let expected = "Name:\tcat\nCpus_allowed:\t00000001,0000000b\nCpus_allowed_list:\t0-1,3,32\n\
                        Mems_allowed:\t00000003\nMems_allowed_list:\t0-1\nVmRSS:\t7 kB\n";
        assert_eq!(shown(host, vec![3, 32, 0, 1], vec![0, 1]), expected);
        assert_eq!((mask(&[]), list(&[])), ("00000000".to_owned(), String::new()));
    }

    #[test]
    fn the_status_of_processes_and_threads_is_distinguished_from_other_files() {
        assert_eq!(status_of("/proc/12/status"), Some(12));
        assert_eq!(status_of("/proc/12/task/34/status"), Some(34));
        let others =
            ["/proc/12/stat", "/var/lib/dpkg/status", "/proc/tty/status", "/tmp/proc/1/status"];
        assert!(others.iter().all(|path| status_of(path).is_none()));
    }

    #[test]
    fn a_descriptor_becomes_one_of_the_text_from_its_beginning() {
        let mut opened = File::open("/dev/null").unwrap();
        replace(u64::try_from(opened.as_raw_fd()).unwrap(), "as emulated");
        let mut text = String::new();
        opened.read_to_string(&mut text).unwrap();
        assert_eq!(text, "as emulated");
    }
}
