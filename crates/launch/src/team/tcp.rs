//! The transport between hosts: TCP from the first rank of each host to rank 0's host.

mod greeting;
mod listener;

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::TeamError;
use super::secret::{BYTES, SecretSource};
use greeting::Guests;

/// Maximum size of a message between hosts, since its length comes from the network.
const LONGEST: u64 = 1 << 30;
/// Time without data after which a connection is given up: far longer than building the largest
/// buffer.
const SILENCE: Duration = Duration::from_secs(1800);

/// The address of rank 0's host, and the identity of the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TcpEndpoint {
    /// True if rank 0 is on this host.
    pub is_root: bool,
    pub hosts: usize,
    /// Possible names of rank 0's host.
    pub names: Vec<String>,
    /// Ports to try, in this order.
    pub ports: Vec<u16>,
    /// The source of the secret with which ranks of this start authenticate.
    pub secret: SecretSource,
}

#[derive(Debug)]
pub(super) enum TcpTransport {
    /// On rank 0's host: a connection to every other host.
    Root(Vec<TcpStream>),
    /// On another host.
    Leaf(TcpStream),
}

impl TcpTransport {
    pub fn join(place: &TcpEndpoint, rank: usize, limit: Duration) -> Result<Self, TeamError> {
        let deadline = Instant::now() + limit;
        if place.is_root {
            accept_all(place, rank, deadline).map(Self::Root)
        } else {
            connect(place, rank, deadline).map(Self::Leaf)
        }
    }

    /// Sends this host's bytes and receives those of all hosts, concatenated.
    pub fn exchange(&mut self, bytes: &[u8]) -> Result<Vec<u8>, TeamError> {
        let exchanged = match self {
            Self::Root(streams) => exchange_at_root(streams, bytes),
            Self::Leaf(stream) => send(stream, bytes).and_then(|()| receive(stream)),
        };
        exchanged.map_err(|error| TeamError::Place {
            place: "the other hosts".to_owned(),
            reason: format!("{error}; a rank or a host is gone"),
        })
    }
}

fn exchange_at_root(streams: &mut [TcpStream], own: &[u8]) -> io::Result<Vec<u8>> {
    let mut all = own.to_vec();
    for stream in &mut *streams {
        all.extend(receive(stream)?);
    }
    streams.iter_mut().try_for_each(|stream| send(stream, &all))?;
    Ok(all)
}

fn accept_all(
    place: &TcpEndpoint,
    rank: usize,
    deadline: Instant,
) -> Result<Vec<TcpStream>, TeamError> {
    let at = || format!("{} port {:?}", place.names.join(" or "), place.ports);
    let listeners = listener::listen(&place.names, &place.ports);
    let listeners = listeners.map_err(|error| failed(at(), &error))?;
    let secret = place.secret.make();
    let secret = secret.map_err(|error| failed(format!("{:?}", place.secret), &error))?;
    let mut guests = Guests::new(secret, place.hosts - 1);
    let met = loop {
        if guests.are_complete() {
            break Ok(());
        }
        if Instant::now() > deadline {
            let (present, expected, what) = (guests.present() + 1, place.hosts, "hosts");
            break Err(TeamError::NotAllCame { rank, present, expected, what, place: at() });
        }
        for listener in &listeners {
            // A failure here is that of a peer's connection, or a lack of descriptors; both are
            // temporary.
            if let Ok((stream, _)) = listener.accept() {
                guests.enter(stream);
            }
        }
        if !guests.attend() {
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    place.secret.forget();
    met?;
    guests
        .into_streams()
        .into_iter()
        .map(settle)
        .collect::<io::Result<_>>()
        .map_err(|error| failed(at(), &error))
}

fn connect(place: &TcpEndpoint, rank: usize, deadline: Instant) -> Result<TcpStream, TeamError> {
    loop {
        let unread = match place.secret.read() {
            Ok(secret) => {
                for name in &place.names {
                    for &port in &place.ports {
                        if let Ok(stream) = call(name, port, &secret, rank) {
                            return Ok(stream);
                        }
                    }
                }
                None
            }
            Err(error) => Some(error),
        };
        if Instant::now() > deadline {
            if let Some(error) = unread {
                return Err(failed(format!("{:?}", place.secret), &error));
            }
            let at = format!("{} port {:?}", place.names.join(" or "), place.ports);
            let (present, expected) = (1, place.hosts);
            let what = "hosts";
            return Err(TeamError::NotAllCame { rank, present, expected, what, place: at });
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn call(name: &str, port: u16, secret: &[u8; BYTES], rank: usize) -> io::Result<TcpStream> {
    let mut last = io::Error::other("the name does not resolve to an address");
    for address in (name, port).to_socket_addrs()? {
        let called = TcpStream::connect_timeout(&address, Duration::from_secs(2))
            .and_then(|stream| greeting::introduce(stream, secret, rank as u64));
        match called {
            Ok(stream) => return settle(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn settle(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENCE))?;
    Ok(stream)
}

fn send(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(&(bytes.len() as u64).to_le_bytes())?;
    stream.write_all(bytes)
}

fn receive(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    stream.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > LONGEST {
        return Err(io::Error::other(format!("a message of {length} bytes")));
    }
    let mut bytes = Vec::new();
    let got = Read::by_ref(stream).take(length).read_to_end(&mut bytes)?;
    if got as u64 == length { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn failed(place: String, error: &io::Error) -> TeamError {
    TeamError::Place { place, reason: error.to_string() }
}
