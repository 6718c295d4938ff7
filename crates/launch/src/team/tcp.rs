//! The transport between hosts: TCP from the first rank of each to rank 0's host.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::TeamError;

/// A message between hosts is never longer: what comes from elsewhere is not believed.
const LONGEST: u64 = 1 << 30;
/// Silence after which a connection is given up: far beyond the largest buffer's making.
const SILENCE: Duration = Duration::from_secs(1800);

/// Where rank 0's host listens, and what the others are told apart by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TcpEndpoint {
    /// Whether rank 0 is on this host.
    pub is_root: bool,
    /// How many hosts there are.
    pub hosts: usize,
    /// Names that rank 0's host may go by.
    pub names: Vec<String>,
    /// Ports to try, in this order.
    pub ports: Vec<u16>,
    /// What tells this start from any other.
    pub token: String,
}

#[derive(Debug)]
pub(super) enum TcpTransport {
    /// Rank 0's host: a connection to every other one.
    Root(Vec<TcpStream>),
    /// Another host.
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

    /// Gives this host's bytes and gets those of all hosts, one after the other.
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
    let listener = listen(&place.ports)
        .map_err(|error| failed(format!("TCP ports {:?}", place.ports), &error))?;
    let wanted = place.hosts - 1;
    let mut streams = Vec::new();
    while streams.len() < wanted {
        if Instant::now() > deadline {
            return Err(TeamError::NotAllCame {
                rank,
                present: streams.len() + 1,
                expected: place.hosts,
                what: "hosts",
                place: format!("{listener:?}"),
            });
        }
        match listener.accept() {
            // Strangers and ranks of other starts are refused.
            Ok((stream, _)) => streams.extend(greet(stream, &place.token).ok()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(failed(format!("{listener:?}"), &error)),
        }
    }
    Ok(streams)
}

fn listen(ports: &[u16]) -> io::Result<TcpListener> {
    let mut last = io::Error::other("no port was named");
    for &port in ports {
        let any = [
            SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)),
            SocketAddr::from(([0, 0, 0, 0], port)),
        ];
        match TcpListener::bind(&any[..]) {
            Ok(listener) => {
                listener.set_nonblocking(true)?;
                return Ok(listener);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Checks that a peer belongs to this start, and confirms it.
fn greet(mut stream: TcpStream, token: &str) -> io::Result<TcpStream> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let said = line(&stream)?;
    if said != greeting(token) {
        return Err(io::Error::other("a stranger"));
    }
    stream.write_all(format!("welcome {token}\n").as_bytes())?;
    settle(stream)
}

fn greeting(token: &str) -> String {
    format!("numalab-ranks/1 {token}")
}

fn connect(place: &TcpEndpoint, rank: usize, deadline: Instant) -> Result<TcpStream, TeamError> {
    loop {
        for name in &place.names {
            for &port in &place.ports {
                if let Ok(stream) = call(name, port, &place.token) {
                    return Ok(stream);
                }
            }
        }
        if Instant::now() > deadline {
            let at = format!("{} port {:?}", place.names.join(" or "), place.ports);
            let (present, expected) = (1, place.hosts);
            let what = "hosts";
            return Err(TeamError::NotAllCame { rank, present, expected, what, place: at });
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn call(name: &str, port: u16, token: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::other("the name has no address");
    for address in (name, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, Duration::from_secs(2)) {
            Ok(mut stream) => {
                stream.set_read_timeout(Some(Duration::from_secs(5)))?;
                stream.write_all(format!("{}\n", greeting(token)).as_bytes())?;
                if line(&stream)? == format!("welcome {token}") {
                    return settle(stream);
                }
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A line of at most 256 bytes, without reading beyond it.
fn line(stream: &TcpStream) -> io::Result<String> {
    let mut text = String::new();
    // One byte at a time: what follows belongs to the messages.
    BufReader::with_capacity(1, stream).take(256).read_line(&mut text)?;
    Ok(text.trim_end().to_owned())
}

fn settle(stream: TcpStream) -> io::Result<TcpStream> {
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
