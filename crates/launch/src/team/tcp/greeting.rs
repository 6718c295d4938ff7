//! Authenticates the hosts of one start to each other: both prove by HMAC-SHA256 over two nonces
//! that they know the secret, and neither sends it.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::super::secret::{BYTES, proof, random, same};

/// The beginning of a caller's first message, followed by its nonce.
const HELLO: &[u8; 16] = b"numalab-ranks/2\n";
/// Time limit of the whole greeting, however the peer spreads its bytes.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum number of greetings in progress; one more ends the oldest.
const MOST: usize = 256;
/// Length of a caller's first message; the second has its rank and proof.
const FIRST: usize = HELLO.len() + BYTES;
const SECOND: usize = 8 + BYTES;

type Bytes = [u8; BYTES];

/// Authenticates this host to the called one, and verifies that the latter is rank 0's host.
pub(super) fn introduce(mut stream: TcpStream, secret: &Bytes, rank: u64) -> io::Result<TcpStream> {
    let deadline = Instant::now() + PATIENCE;
    stream.set_write_timeout(Some(PATIENCE))?;
    let own = random()?;
    stream.write_all(&[&HELLO[..], &own].concat())?;
    let mut answer = [0; 2 * BYTES];
    read_until(&mut stream, &mut answer, deadline)?;
    let (theirs, shown) = answer.split_at(BYTES);
    if !same(shown, &proof(secret, &[b"root", &own, theirs])) {
        return Err(io::Error::other("it does not have the secret of this launch"));
    }
    let rank = rank.to_le_bytes();
    let shown = proof(secret, &[b"leaf", &own, theirs, &rank]);
    stream.write_all(&[&rank[..], &shown].concat())?;
    // A rejected caller must not wait for messages.
    let mut welcome = [0; BYTES];
    read_until(&mut stream, &mut welcome, deadline)?;
    match same(&welcome, &proof(secret, &[b"done", &own, theirs, &rank])) {
        true => stream.set_write_timeout(None).map(|()| stream),
        false => Err(io::Error::other("it does not have the secret of this launch")),
    }
}

/// Reads all bytes before the deadline, which received bytes do not extend.
fn read_until(stream: &mut TcpStream, bytes: &mut [u8], deadline: Instant) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut bytes[filled..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => filled += read,
        }
    }
    Ok(())
}

/// The callers of rank 0's host, greeted concurrently.
pub(super) struct Guests {
    secret: Bytes,
    wanted: usize,
    pending: Vec<Caller>,
    /// By rank: a second caller cannot take a rank's place.
    known: Vec<(u64, TcpStream)>,
}

struct Caller {
    stream: TcpStream,
    until: Instant,
    heard: Vec<u8>,
    /// This host's nonce, after it was sent.
    own: Option<Bytes>,
}

impl Guests {
    pub fn new(secret: Bytes, wanted: usize) -> Self {
        Self { secret, wanted, pending: Vec::new(), known: Vec::new() }
    }

    pub fn are_complete(&self) -> bool {
        self.known.len() >= self.wanted
    }

    pub fn present(&self) -> usize {
        self.known.len()
    }

    /// Returns the streams in order of rank.
    pub fn into_streams(mut self) -> Vec<TcpStream> {
        self.known.sort_by_key(|(rank, _)| *rank);
        self.known.into_iter().map(|(_, stream)| stream).collect()
    }

    pub fn enter(&mut self, stream: TcpStream) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        if self.pending.len() >= MOST {
            self.pending.remove(0);
        }
        let until = Instant::now() + PATIENCE;
        self.pending.push(Caller { stream, until, heard: Vec::new(), own: None });
    }

    /// Reads available data; reports whether there was any.
    pub fn attend(&mut self) -> bool {
        let mut heard = false;
        for mut caller in std::mem::take(&mut self.pending) {
            match caller.listen(&self.secret) {
                Ok(Heard::Nothing) if Instant::now() < caller.until => self.pending.push(caller),
                Ok(Heard::Part) => {
                    heard = true;
                    self.pending.push(caller);
                }
                Ok(Heard::Rank(rank, welcome)) => {
                    heard = true;
                    let is_new = self.known.iter().all(|(known, _)| *known != rank);
                    if is_new && caller.stream.write_all(&welcome).is_ok() {
                        self.known.push((rank, caller.stream));
                    }
                }
                // Strangers, ranks of other starts, and callers that take too long.
                Ok(Heard::Nothing) | Err(_) => {}
            }
        }
        heard
    }
}

enum Heard {
    Nothing,
    Part,
    Rank(u64, Bytes),
}

impl Caller {
    /// Reads available data, and answers a complete message. All answers fit into the socket's
    /// buffer, so writing cannot block.
    fn listen(&mut self, secret: &Bytes) -> io::Result<Heard> {
        let wanted = if self.own.is_some() { FIRST + SECOND } else { FIRST };
        let mut bytes = [0; FIRST + SECOND];
        let room = &mut bytes[..wanted - self.heard.len()];
        match self.stream.read(room) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => self.heard.extend_from_slice(&room[..read]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Heard::Nothing),
            Err(error) => return Err(error),
        }
        let is_hello = self.heard.iter().zip(HELLO).all(|(said, expected)| said == expected);
        if !is_hello || Instant::now() > self.until {
            return Err(io::Error::other("a stranger"));
        }
        if self.heard.len() < wanted {
            return Ok(Heard::Part);
        }
        let theirs = &self.heard[HELLO.len()..FIRST];
        let Some(own) = self.own else {
            let own = random()?;
            let shown = proof(secret, &[b"root", theirs, &own]);
            self.stream.write_all(&[own, shown].concat())?;
            self.own = Some(own);
            return Ok(Heard::Part);
        };
        let (rank, shown) = self.heard[FIRST..].split_at(8);
        if !same(shown, &proof(secret, &[b"leaf", theirs, &own, rank])) {
            return Err(io::Error::other("a stranger"));
        }
        let welcome = proof(secret, &[b"done", theirs, &own, rank]);
        let number = rank.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        Ok(Heard::Rank(number, welcome))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const SECRET: Bytes = [3; BYTES];

    /// Connects a caller to rank 0's host.
    fn connected() -> (TcpStream, Guests) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let caller = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut guests = Guests::new(SECRET, 2);
        guests.enter(listener.accept().unwrap().0);
        (caller, guests)
    }

    fn enter(guests: &mut Guests) -> TcpStream {
        let (caller, mut other) = connected();
        guests.pending.append(&mut other.pending);
        caller
    }

    /// Serves callers until none is waiting.
    fn settle(guests: &mut Guests) {
        while !guests.pending.is_empty() {
            guests.attend();
        }
    }

    /// Returns the second message of a rank that has sent its first.
    fn second(caller: &mut TcpStream, guests: &mut Guests, rank: u64) -> Vec<u8> {
        let own = [5; BYTES];
        caller.write_all(&[&HELLO[..], &own].concat()).unwrap();
        while guests.pending.last().is_some_and(|caller| caller.own.is_none()) {
            guests.attend();
        }
        let mut answer = [0; 2 * BYTES];
        caller.read_exact(&mut answer).unwrap();
        let rank = rank.to_le_bytes();
        let shown = proof(&SECRET, &[b"leaf", &own, &answer[..BYTES], &rank]);
        [&rank[..], &shown].concat()
    }

    #[test]
    fn a_replayed_proof_and_a_wrong_one_are_refused_and_a_place_is_taken_once() {
        let (mut caller, mut guests) = connected();
        let said = second(&mut caller, &mut guests, 1);
        caller.write_all(&said).unwrap();
        settle(&mut guests);
        assert_eq!(guests.present(), 1);
        let mut replaying = enter(&mut guests);
        let _ = second(&mut replaying, &mut guests, 2);
        replaying.write_all(&said).unwrap();
        let mut guessing = enter(&mut guests);
        let mut wrong = second(&mut guessing, &mut guests, 2);
        wrong[0] = 3;
        guessing.write_all(&wrong).unwrap();
        let mut second_one = enter(&mut guests);
        let same_place = second(&mut second_one, &mut guests, 1);
        second_one.write_all(&same_place).unwrap();
        settle(&mut guests);
        assert_eq!(guests.present(), 1);
    }

    #[test]
    fn bytes_do_not_extend_the_time_of_a_greeting() {
        let (mut caller, mut guests) = connected();
        guests.pending[0].until = Instant::now();
        caller.write_all(&HELLO[..1]).unwrap();
        settle(&mut guests);
        assert_eq!(guests.present(), 0);
    }

    #[test]
    fn too_many_callers_end_the_oldest() {
        let (mut first, mut guests) = connected();
        let _others: Vec<TcpStream> = (1..MOST).map(|_| enter(&mut guests)).collect();
        let (_last, mut other) = connected();
        guests.enter(other.pending.remove(0).stream);
        assert_eq!(guests.pending.len(), MOST);
        assert_eq!(first.read(&mut [0]).unwrap(), 0, "it is hung up on");
    }
}
