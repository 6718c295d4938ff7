//! A client of xenstore, the small tree of values that domains share
//! (Xen `docs/misc/xenstore.txt`, `xen/include/public/io/xs_wire.h`): over the socket of
//! xenstored in the first domain, over `/dev/xen/xenbus` in the others.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

pub const DEVICE: &str = "/dev/xen/xenbus";
/// The socket in the first domain.
pub const SOCKET: &str = "/run/xenstored/socket";
/// The largest length of a domain's values in bytes, as xenstored is configured.
pub const MAX_VALUE_BYTES: usize = 1800;

const HEADER_BYTES: usize = 16;
/// Time limit for an answer, on a stream whose reads have a limit themselves.
const LONGEST_ANSWER: Duration = Duration::from_secs(60);
/// The largest length of a message (`XENSTORE_PAYLOAD_MAX`).
const MAX_PAYLOAD_BYTES: usize = 4096;

/// The type of a message (`enum xsd_sockmsg_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MessageType {
    Directory = 1,
    Read = 2,
    Watch = 4,
    Write = 11,
    SetPermissions = 14,
}
pub(super) const WATCH_EVENT: u32 = 15;
const ERROR: u32 = 16;

/// Reasons why xenstore gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum XenstoreError {
    /// The connection failed.
    #[error("xenstore: {0}")]
    Io(#[from] io::Error),
    /// xenstore refused the request; `ENOENT` for a value that does not exist.
    #[error("xenstore: {path}: {code}")]
    Refused { path: String, code: String },
    #[error("xenstore: a reply of {0} bytes, expected at most {MAX_PAYLOAD_BYTES}")]
    TooLong(usize),
}

impl XenstoreError {
    fn is_absent(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "ENOENT")
    }

    /// True if the stream's own read timeout passed.
    fn is_timeout(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

/// A change of a watched path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub path: String,
    pub token: String,
}

#[derive(Debug)]
pub struct Xenstore<S> {
    stream: S,
    received: Vec<u8>,
    changes: VecDeque<Change>,
    requests: u32,
    longest_answer: Duration,
}

struct Message {
    kind: u32,
    request: u32,
    payload: Vec<u8>,
}

impl<S: Read + Write> Xenstore<S> {
    /// Creates a connection over this stream.
    pub fn over(stream: S) -> Self {
        let (received, changes) = (Vec::new(), VecDeque::new());
        Self { stream, received, changes, requests: 0, longest_answer: LONGEST_ANSWER }
    }

    /// Returns the value at a path; `None` if there is none.
    pub fn read(&mut self, path: &str) -> Result<Option<Vec<u8>>, XenstoreError> {
        match self.ask(MessageType::Read, path, &[path.as_bytes(), b"\0"]) {
            Err(error) if error.is_absent() => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// Returns the value at a path as text.
    pub fn text(&mut self, path: &str) -> Result<Option<String>, XenstoreError> {
        let value = self.read(path)?;
        Ok(value.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Returns the names below a path; empty if it does not exist.
    pub fn names(&mut self, path: &str) -> Result<Vec<String>, XenstoreError> {
        let payload = match self.ask(MessageType::Directory, path, &[path.as_bytes(), b"\0"]) {
            Err(error) if error.is_absent() => return Ok(Vec::new()),
            answer => answer?,
        };
        let names = payload.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    /// Writes a value, and creates its parents if necessary.
    pub fn write(&mut self, path: &str, value: &[u8]) -> Result<(), XenstoreError> {
        self.ask(MessageType::Write, path, &[path.as_bytes(), b"\0", value]).map(drop)
    }

    /// Allows every domain to read a value of the first domain.
    pub fn let_all_read(&mut self, path: &str) -> Result<(), XenstoreError> {
        self.ask(MessageType::SetPermissions, path, &[path.as_bytes(), b"\0r0\0"]).map(drop)
    }

    /// Watches a path and everything below it; the first change comes immediately.
    pub fn watch(&mut self, path: &str, token: &str) -> Result<(), XenstoreError> {
        let parts = [path.as_bytes(), b"\0", token.as_bytes(), b"\0"];
        self.ask(MessageType::Watch, path, &parts).map(drop)
    }

    /// Returns the next change; `None` after the stream's own read timeout.
    pub fn change(&mut self) -> Result<Option<Change>, XenstoreError> {
        loop {
            if let Some(change) = self.changes.pop_front() {
                return Ok(Some(change));
            }
            match self.receive() {
                Ok(message) => self.keep_change(&message),
                Err(error) if error.is_timeout() => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    fn ask(
        &mut self,
        kind: MessageType,
        path: &str,
        parts: &[&[u8]],
    ) -> Result<Vec<u8>, XenstoreError> {
        self.requests = self.requests.wrapping_add(1);
        let payload = parts.concat();
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        let mut message = Vec::with_capacity(HEADER_BYTES + payload.len());
        for word in [kind as u32, self.requests, 0, length] {
            message.extend_from_slice(&word.to_le_bytes());
        }
        message.extend_from_slice(&payload);
        self.stream.write_all(&message)?;
        let asked = Instant::now();
        loop {
            let waits = asked.elapsed() < self.longest_answer;
            let answer = match self.receive() {
                Err(error) if waits && error.is_timeout() => continue,
                answer => answer?,
            };
            if answer.kind == WATCH_EVENT {
                self.keep_change(&answer);
            } else if answer.request == self.requests {
                return judged(answer, path);
            }
        }
    }

    fn keep_change(&mut self, message: &Message) {
        let mut parts = message.payload.split(|byte| *byte == 0);
        let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
        if message.kind == WATCH_EVENT {
            let (path, token) = (text(), text());
            self.changes.push_back(Change { path, token });
        }
    }

    /// Returns the next message; an incomplete one is kept for the next call.
    fn receive(&mut self) -> Result<Message, XenstoreError> {
        loop {
            if let Some(message) = take_message(&mut self.received)? {
                return Ok(message);
            }
            let mut bytes = [0; MAX_PAYLOAD_BYTES];
            match self.stream.read(&mut bytes)? {
                0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                count => self.received.extend_from_slice(&bytes[..count]),
            }
        }
    }
}

fn judged(answer: Message, path: &str) -> Result<Vec<u8>, XenstoreError> {
    if answer.kind != ERROR {
        return Ok(answer.payload);
    }
    let code = String::from_utf8_lossy(&answer.payload);
    let code = code.trim_end_matches('\0').to_owned();
    Err(XenstoreError::Refused { path: path.to_owned(), code })
}

/// Takes the first message off the bytes, if it is complete.
fn take_message(received: &mut Vec<u8>) -> Result<Option<Message>, XenstoreError> {
    let word = |index: usize| {
        let bytes = received.get(index * 4..index * 4 + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let (Some(kind), Some(request), Some(length)) = (word(0), word(1), word(3)) else {
        return Ok(None);
    };
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > MAX_PAYLOAD_BYTES {
        return Err(XenstoreError::TooLong(length));
    }
    if received.len() < HEADER_BYTES + length {
        return Ok(None);
    }
    let payload = received[HEADER_BYTES..HEADER_BYTES + length].to_vec();
    received.drain(..HEADER_BYTES + length);
    Ok(Some(Message { kind, request, payload }))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::net::UnixStream;
    use std::thread;

    /// Returns a message to a client: 2 answers a read, 4 a watch, 11 a write.
    pub(crate) fn message(kind: u32, request: u32, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap();
        let words = [kind, request, 0, length];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend_from_slice(payload);
        bytes
    }

    /// Returns a xenstored that answers the requests with these messages, whatever they are.
    pub(crate) fn answered_by(
        answers: Vec<Vec<u8>>,
    ) -> (Xenstore<UnixStream>, thread::JoinHandle<Vec<u8>>) {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let server = thread::spawn(move || {
            let mut asked = Vec::new();
            for answer in answers {
                let mut header = [0; HEADER_BYTES];
                theirs.read_exact(&mut header).unwrap();
                let length = u32::from_le_bytes(header[12..].try_into().unwrap());
                let mut payload = vec![0; usize::try_from(length).unwrap()];
                theirs.read_exact(&mut payload).unwrap();
                asked.extend_from_slice(&payload);
                theirs.write_all(&answer).unwrap();
            }
            asked
        });
        (Xenstore::over(ours), server)
    }

    #[test]
    fn values_are_read_and_absent_ones_stay_absent() {
        let (mut store, server) =
            answered_by(vec![message(2, 1, b"ready"), message(ERROR, 2, b"ENOENT\0")]);
        assert_eq!(store.text("data/state").unwrap().unwrap(), "ready");
        assert_eq!(store.read("data/none").unwrap(), None);
        assert_eq!(server.join().unwrap(), b"data/state\0data/none\0");
    }

    #[test]
    fn changes_between_answers_are_kept() {
        let mut both = message(WATCH_EVENT, 0, b"/a/b\0token\0");
        both.extend(message(4, 1, b"OK\0"));
        let (mut store, _server) = answered_by(vec![both]);
        store.watch("/a", "token").unwrap();
        let change = store.change().unwrap().unwrap();
        assert_eq!((change.path.as_str(), change.token.as_str()), ("/a/b", "token"));
    }

    #[test]
    fn a_refusal_gives_the_path_and_a_missing_change_is_an_error() {
        let (mut store, _server) = answered_by(vec![message(ERROR, 1, b"EACCES\0")]);
        let error = store.write("/numalab/job", b"{}").unwrap_err();
        assert_eq!(error.to_string(), "xenstore: /numalab/job: EACCES");
        let (ours, _theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        assert_eq!(Xenstore::over(ours).change().unwrap(), None);
    }

    #[test]
    fn a_xenstored_that_never_answers_is_an_error() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        let mut store = Xenstore::over(ours);
        store.longest_answer = Duration::from_millis(50);
        let error = store.read("data/state").unwrap_err();
        assert!(error.is_timeout(), "{error}");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut received = bytes.clone();
            let mut messages = 0;
            while let Ok(Some(message)) = take_message(&mut received) {
                prop_assert!(message.payload.len() <= MAX_PAYLOAD_BYTES);
                messages += 1;
            }
            prop_assert!(messages * HEADER_BYTES + received.len() <= bytes.len());
        }

        #[test]
        fn a_truncated_message_waits_for_the_rest(cut in 0_usize..24) {
            let whole = message(2, 9, b"12345678");
            let mut received = whole[..cut.min(whole.len() - 1)].to_vec();
            prop_assert!(take_message(&mut received).unwrap().is_none());
        }
    }
}
