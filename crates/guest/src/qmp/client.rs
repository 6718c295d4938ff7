//! A client of the QEMU Machine Protocol (QEMU `docs/interop/qmp-spec.rst`).

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Limit of an answer in bytes; longer ones are refused.
const MAX_LINE_BYTES: u64 = 16 << 20;

/// The address of a QEMU's QMP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QmpAddress {
    Socket(PathBuf),
    /// A host and a port.
    Tcp(String, u16),
}

/// The text is not the address of a QMP server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?}: expected the path of a socket (/run/vm.qmp), HOST:PORT, or a PORT of this machine"
)]
pub struct QmpAddressError {
    text: String,
}

/// Reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum QmpError {
    #[error("{address}: {source}")]
    Connect { address: QmpAddress, source: io::Error },
    /// The connection failed, or no answer came in time.
    #[error("QMP {command}: {source}")]
    Io {
        /// The command, or `greeting` before the first.
        command: String,
        source: io::Error,
    },
    #[error("QMP {command}: answer {answer:?}, expected {expected}")]
    Answer {
        command: String,
        /// The first 200 characters of the answer.
        answer: String,
        expected: &'static str,
    },
    #[error("QMP {command}: {class}: {description}")]
    Refused { command: String, class: String, description: String },
}

/// A connection that is ready for commands.
pub struct QmpClient {
    input: BufReader<Input>,
    output: Box<dyn Write + Send>,
    limit: Duration,
    /// True if this QEMU may run on this machine; thread ids of a QEMU elsewhere are those of
    /// unrelated threads here.
    pub(super) is_here: bool,
    shutdown_reason: Option<String>,
}

/// Reads from QEMU up to a deadline, which received bytes do not extend.
struct Input {
    socket: Socket,
    deadline: Instant,
}

enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    /// Returns true if the other end is on this machine, as far as the connection shows: a tunnel
    /// from another one ends here, too.
    fn is_here(&self) -> bool {
        let Self::Tcp(stream) = self else { return true };
        let (Ok(own), Ok(peer)) = (stream.local_addr(), stream.peer_addr()) else { return false };
        own.ip() == peer.ip() || peer.ip().is_loopback()
    }
}

impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match &mut self.socket {
            Socket::Unix(stream) => {
                stream.set_read_timeout(Some(left))?;
                stream.read(into)
            }
            Socket::Tcp(stream) => {
                stream.set_read_timeout(Some(left))?;
                stream.read(into)
            }
        }
    }
}

impl fmt::Debug for QmpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QmpClient")
    }
}

impl fmt::Display for QmpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => path.display().fmt(f),
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

impl FromStr for QmpAddress {
    type Err = QmpAddressError;

    /// Parses `/path`, `unix:/path`, `host:port`, `tcp:host:port`, or a bare port.
    fn from_str(text: &str) -> Result<Self, QmpAddressError> {
        let wrong = || QmpAddressError { text: text.to_owned() };
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Self::Socket(PathBuf::from(path)));
        }
        // A number alone is a port of this machine.
        if let Ok(port) = text.parse() {
            return Ok(Self::Tcp("localhost".to_owned(), port));
        }
        if text.contains('/') {
            return Ok(Self::Socket(PathBuf::from(text)));
        }
        let place = text.strip_prefix("tcp:").unwrap_or(text);
        let (host, port) = place.rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().map_err(|_| wrong())?;
        let host = if host.is_empty() { "localhost" } else { host };
        // IPv6 addresses are written in brackets.
        Ok(Self::Tcp(host.trim_matches(['[', ']']).to_owned(), port))
    }
}

impl QmpClient {
    /// Connects to a listening QEMU; `limit` applies to each whole answer.
    pub fn connect(address: &QmpAddress, limit: Duration) -> Result<Self, QmpError> {
        let failed = |source| QmpError::Connect { address: address.clone(), source };
        match address {
            QmpAddress::Socket(path) => {
                Self::over_socket(UnixStream::connect(path).map_err(failed)?, limit)
            }
            QmpAddress::Tcp(host, port) => {
                let places = (host.as_str(), *port).to_socket_addrs().map_err(failed)?;
                let stream = first_that_answers(places, limit).map_err(failed)?;
                let setup = || {
                    stream.set_write_timeout(Some(limit))?;
                    Ok((stream.try_clone()?, stream))
                };
                let (input, output) = setup().map_err(failed)?;
                Self::greeted(Socket::Tcp(input), Box::new(output), limit)
            }
        }
    }

    /// Uses an existing connection.
    pub fn over_socket(stream: UnixStream, limit: Duration) -> Result<Self, QmpError> {
        let setup = || {
            stream.set_write_timeout(Some(limit))?;
            stream.try_clone()
        };
        let input =
            setup().map_err(|source| QmpError::Io { command: "greeting".to_owned(), source })?;
        Self::greeted(Socket::Unix(input), Box::new(stream), limit)
    }

    /// Executes a command and returns its answer. Events in between are dropped, except the guest's
    /// shutdown.
    pub fn execute(&mut self, command: &str, arguments: &Value) -> Result<Value, QmpError> {
        let mut request = json!({ "execute": command });
        if !arguments.is_null() {
            request["arguments"] = arguments.clone();
        }
        let line = format!("{request}\r\n");
        self.input.get_mut().deadline = Instant::now() + self.limit;
        self.output
            .write_all(line.as_bytes())
            .map_err(|source| QmpError::Io { command: command.to_owned(), source })?;
        loop {
            let mut answer = self.line(command)?;
            if let Some(value) = answer.get_mut("return") {
                return Ok(value.take());
            }
            if let Some(error) = answer.get("error") {
                let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
                return Err(QmpError::Refused {
                    command: command.to_owned(),
                    class: text("class"),
                    description: text("desc"),
                });
            }
            match answer.get("event").and_then(Value::as_str) {
                Some("SHUTDOWN") => {
                    self.shutdown_reason = answer["data"]["reason"].as_str().map(str::to_owned);
                }
                Some(_) => {}
                None => {
                    let expected = "return, error or event";
                    return Err(not_understood(command, &answer.to_string(), expected));
                }
            }
        }
    }

    /// Returns the guest's state in QEMU's words (`running`, `shutdown`, ...).
    pub fn state(&mut self) -> Result<String, QmpError> {
        let answer = self.execute("query-status", &Value::Null)?;
        let state = answer["status"].as_str().map(str::to_owned);
        state.ok_or_else(|| not_understood("query-status", &answer.to_string(), "a status"))
    }

    /// Returns the reason of the guest's shutdown in QEMU's words (`guest-reset`, ...), if one has
    /// been reported.
    pub fn shutdown_reason(&self) -> Option<&str> {
        self.shutdown_reason.as_deref()
    }

    fn greeted(
        socket: Socket,
        output: Box<dyn Write + Send>,
        limit: Duration,
    ) -> Result<Self, QmpError> {
        let input = BufReader::new(Input { socket, deadline: Instant::now() + limit });
        let is_here = input.get_ref().socket.is_here();
        let mut client = Self { input, output, limit, is_here, shutdown_reason: None };
        let greeting = client.line("greeting")?;
        if greeting.get("QMP").is_none() {
            return Err(not_understood("greeting", &greeting.to_string(), "{\"QMP\": ...}"));
        }
        // QEMU rejects all other commands before this one (qmp-spec.rst, "Capabilities
        // Negotiation").
        client.execute("qmp_capabilities", &Value::Null)?;
        Ok(client)
    }

    fn line(&mut self, command: &str) -> Result<Value, QmpError> {
        let io = |source| QmpError::Io { command: command.to_owned(), source };
        let mut line = String::new();
        // Limited, since any program may listen there and send without end.
        let mut limited = (&mut self.input).take(MAX_LINE_BYTES);
        if limited.read_line(&mut line).map_err(io)? == 0 {
            return Err(io(io::ErrorKind::UnexpectedEof.into()));
        }
        serde_json::from_str(&line)
            .map_err(|_| not_understood(command, line.trim(), "one line of JSON"))
    }
}

fn first_that_answers(
    places: impl Iterator<Item = std::net::SocketAddr>,
    limit: Duration,
) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for place in places {
        match TcpStream::connect_timeout(&place, limit) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Returns the error for an answer with unexpected content.
pub(super) fn not_understood(command: &str, answer: &str, expected: &'static str) -> QmpError {
    QmpError::Answer {
        command: command.to_owned(),
        answer: answer.chars().take(200).collect(),
        expected,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::thread;

    /// Creates a QEMU that answers with these lines, one per command after the greeting.
    pub fn scripted(answers: Vec<String>) -> QmpClient {
        let (ours, theirs) = UnixStream::pair().unwrap();
        thread::spawn(move || {
            let mut out = theirs.try_clone().unwrap();
            out.write_all(b"{\"QMP\": {\"version\": {}, \"capabilities\": []}}\r\n").unwrap();
            let mut input = BufReader::new(theirs);
            let all = std::iter::once("{\"return\": {}}".to_owned()).chain(answers);
            for answer in all {
                let mut line = String::new();
                if input.read_line(&mut line).unwrap_or(0) == 0 {
                    return;
                }
                out.write_all(answer.as_bytes()).unwrap();
                out.write_all(b"\r\n").unwrap();
            }
        });
        QmpClient::over_socket(ours, Duration::from_secs(10)).unwrap()
    }

    #[test]
    fn an_answer_is_found_after_events() {
        let event = "{\"event\": \"RESUME\", \"timestamp\": {}}\r\n{\"return\": {\"a\": 1}}";
        let mut qemu = scripted(vec![event.to_owned()]);
        let answer = qemu.execute("cont", &Value::Null).unwrap();
        assert_eq!(answer, json!({ "a": 1 }));
    }

    #[test]
    fn a_refusal_is_reported_in_qemus_words() {
        let refusal =
            "{\"error\": {\"class\": \"CommandNotFound\", \"desc\": \"no such command\"}}";
        let mut qemu = scripted(vec![refusal.to_owned()]);
        let error = qemu.execute("nonsense", &Value::Null).unwrap_err();
        assert_eq!(error.to_string(), "QMP nonsense: CommandNotFound: no such command");
    }

    #[test]
    fn a_closed_connection_and_other_protocols_are_errors() {
        let mut qemu = scripted(Vec::new());
        let error = qemu.execute("stop", &Value::Null).unwrap_err();
        assert!(matches!(error, QmpError::Io { .. }), "{error}");

        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(b"SSH-2.0-OpenSSH\r\n").unwrap();
        let error = QmpClient::over_socket(ours, Duration::from_secs(5)).unwrap_err();
        assert!(error.to_string().contains("SSH-2.0-OpenSSH"), "{error}");
    }

    #[test]
    fn waiting_for_a_silent_qemu_ends() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let error = QmpClient::over_socket(ours, Duration::from_millis(20)).unwrap_err();
        assert!(matches!(error, QmpError::Io { .. }), "{error}");
    }

    /// Regression: each byte restarted the limit, so that a peer could hold numalab forever.
    #[test]
    fn a_peer_that_sends_other_things_for_ever_is_given_up() {
        for (begins, goes_on) in [("{", "x"), ("", "{\"event\": \"STOP\"}\r\n")] {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            let peer = thread::spawn(move || {
                let sent = theirs.write_all(b"{\"QMP\": {}}\r\n{\"return\": {}}\r\n");
                sent.and_then(|()| theirs.write_all(begins.as_bytes())).unwrap();
                while theirs.write_all(goes_on.as_bytes()).is_ok() {
                    thread::sleep(Duration::from_millis(1));
                }
            });
            let mut qemu = QmpClient::over_socket(ours, Duration::from_secs(1)).unwrap();
            let error = qemu.execute("stop", &Value::Null).unwrap_err();
            assert!(matches!(error, QmpError::Io { .. }), "{error}");
            drop(qemu);
            peer.join().unwrap();
        }
    }

    #[test]
    fn addresses_are_paths_or_hosts_with_ports() {
        let tcp = |host: &str, port| QmpAddress::Tcp(host.to_owned(), port);
        let socket = QmpAddress::Socket(PathBuf::from("/run/vm"));
        assert_eq!("/run/vm".parse(), Ok(socket.clone()));
        assert_eq!("unix:/run/vm".parse(), Ok(socket));
        assert_eq!("9889".parse(), Ok(tcp("localhost", 9889)));
        assert_eq!("node7:4444".parse(), Ok(tcp("node7", 4444)));
        assert_eq!("[::1]:4444".parse(), Ok(tcp("::1", 4444)));
        assert!("node7".parse::<QmpAddress>().is_err());
        assert!("node7:port".parse::<QmpAddress>().is_err());
    }
}
