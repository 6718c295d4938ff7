//! Teams of threads, each of which represents a rank's process.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::secret::SecretSource;
use super::shared_memory::SharedMemoryEndpoint;
use super::tcp::TcpEndpoint;
use super::*;

fn endpoints(
    directory: &Path,
    hosts: usize,
    per_host: usize,
) -> Vec<(usize, SharedMemoryEndpoint)> {
    (0..hosts * per_host)
        .map(|rank| {
            let path = directory.join(format!("host{}", rank / per_host));
            (rank, SharedMemoryEndpoint { path, local_rank: rank % per_host, local_size: per_host })
        })
        .collect()
}

/// Returns a port that is unused now.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn team_of(hosts: usize, per_host: usize, act: impl Fn(&mut Team) + Sync) {
    let directory = tempfile::tempdir().unwrap();
    let ports = vec![free_port()];
    std::thread::scope(|scope| {
        for (rank, place) in endpoints(directory.path(), hosts, per_host) {
            let (act, ports) = (&act, ports.clone());
            scope.spawn(move || {
                let tcp = TcpEndpoint {
                    is_root: rank < per_host,
                    hosts,
                    names: vec!["localhost".to_owned()],
                    ports,
                    secret: SecretSource::Given([7; 32]),
                };
                let shared_memory = SharedMemoryTransport::attach(&place, rank, ARRIVAL).unwrap();
                let tcp = (hosts > 1 && shared_memory.is_first())
                    .then(|| TcpTransport::join(&tcp, rank, ARRIVAL).unwrap());
                let size = hosts * per_host;
                act(&mut Team { rank, size, transport: Transport::Hosts { shared_memory, tcp } });
            });
        }
    });
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn ranks_of_one_host_gather_messages_longer_than_their_slots() {
    team_of(1, 4, |team| {
        let own = vec![u8::try_from(team.rank()).unwrap(); team.rank() * 20_000];
        let all = team.all_gather(&own).unwrap();
        let lengths: Vec<usize> = all.iter().map(Vec::len).collect();
        assert_eq!(lengths, [0, 20_000, 40_000, 60_000]);
        assert!(all[3].iter().all(|&byte| byte == 3));
        for _ in 0..100 {
            team.barrier().unwrap();
        }
    });
}

#[test]
fn ranks_of_several_hosts_gather_over_tcp() {
    team_of(3, 2, |team| {
        for round in 0..3 {
            let own = format!("rank {} round {round}", team.rank());
            let all = team.all_gather(own.as_bytes()).unwrap();
            let expected: Vec<_> =
                (0..6).map(|rank| format!("rank {rank} round {round}").into_bytes()).collect();
            assert_eq!(all, expected);
        }
        team.barrier().unwrap();
    });
}

#[test]
fn no_rank_waits_for_one_that_aborted() {
    let begun = Instant::now();
    team_of(1, 3, |team| {
        if team.rank() == 1 {
            team.give_up();
        } else {
            assert!(matches!(team.barrier(), Err(TeamError::GaveUp)));
        }
    });
    assert!(begun.elapsed() < ARRIVAL);
}

#[test]
fn a_lost_host_is_noticed_by_the_others() {
    team_of(2, 1, |team| {
        if team.rank() == 1 {
            team.give_up();
        } else {
            let error = team.all_gather(b"x").unwrap_err().to_string();
            assert!(error.contains("gone"), "{error}");
        }
    });
}

#[test]
fn work_continues_until_the_last_rank_is_done() {
    let turns = AtomicU64::new(0);
    team_of(1, 2, |team| {
        while team.rank() == 0 && turns.load(Ordering::Relaxed) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let turn = || _ = turns.fetch_add(1, Ordering::Relaxed);
        team.work_until_all_are_done(turn).unwrap();
        team.work_until_all_are_done(|| ()).unwrap();
    });
}

#[test]
fn ranks_that_never_come_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shared_memory");
    let place = SharedMemoryEndpoint { path: path.clone(), local_rank: 0, local_size: 3 };
    let error = SharedMemoryTransport::attach(&place, 0, Duration::from_millis(50)).unwrap_err();
    assert!(error.to_string().contains("only 1 of 3 ranks arrived"), "{error}");
    assert!(!path.exists());
}

/// Returns one of two hosts at a port of this machine: rank 0's, or the other one.
fn host(is_root: bool, port: u16, secret: u8) -> TcpEndpoint {
    TcpEndpoint {
        is_root,
        hosts: 2,
        names: vec!["localhost".to_owned()],
        ports: vec![port],
        secret: SecretSource::Given([secret; 32]),
    }
}

#[test]
fn a_stranger_is_rejected() {
    let port = free_port();
    std::thread::scope(|scope| {
        let root = scope.spawn(|| TcpTransport::join(&host(true, port, 1), 0, ARRIVAL).is_ok());
        let stranger = TcpTransport::join(&host(false, port, 2), 9, Duration::from_millis(300));
        assert!(stranger.is_err());
        assert!(TcpTransport::join(&host(false, port, 1), 1, ARRIVAL).is_ok());
        assert!(root.join().unwrap());
    });
}

/// Connects to a listener that may not listen yet.
fn call(port: u16) -> TcpStream {
    loop {
        match TcpStream::connect(("localhost", port)) {
            Ok(stream) => return stream,
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

#[test]
fn silent_or_slow_strangers_delay_no_rank() {
    let port = free_port();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let root = scope.spawn(|| TcpTransport::join(&host(true, port, 1), 0, ARRIVAL).is_ok());
        let mut strangers: Vec<TcpStream> = (0..50).map(|_| call(port)).collect();
        for stranger in &mut strangers[..25] {
            stranger.write_all(b"n").unwrap();
        }
        assert!(TcpTransport::join(&host(false, port, 1), 1, ARRIVAL).is_ok());
        assert!(root.join().unwrap());
    });
    assert!(begun.elapsed() < ARRIVAL / 2);
}

#[test]
fn a_false_listener_in_the_place_of_rank_0_learns_nothing() {
    let listener = TcpListener::bind("localhost:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::scope(|scope| {
        let limit = Duration::from_millis(200);
        let leaf =
            scope.spawn(move || TcpTransport::join(&host(false, port, 1), 1, limit).is_err());
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&[0; 64]).unwrap();
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard);
        assert!(heard.len() < 64 && !heard.windows(32).any(|part| part == [1; 32]));
        drop((stream, listener));
        assert!(leaf.join().unwrap());
    });
}
