//! The host's side of the result channel.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use numalab_guest_agent::protocol::{
    Exit, FrameError, FrameReader, FrameWriter, Hello, Job, Message, Stream, TransferError,
    VERSION, send_file,
};

use super::collected::{CollectError, Collected};

/// Receives the output of the command in the guest as it arrives.
pub trait Sink {
    fn output(&mut self, stream: Stream, bytes: &[u8]);

    /// Returns the command's next input; called after each piece of its output. An empty vector is
    /// end of file. May block.
    fn input(&mut self) -> Option<Vec<u8>> {
        None
    }
}

impl<F: FnMut(Stream, &[u8])> Sink for F {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        self(stream, bytes);
    }
}

/// A job with the files to send and the directory for those that come back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    pub job: Job,
    /// Files of the host with their absolute paths in the guest, sent before the job begins.
    pub send: Vec<(PathBuf, String)>,
    /// The directory for collected files; each has its guest path below it.
    pub results: Option<PathBuf>,
}

/// The result received over the channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestResult {
    /// The exit status of the command.
    pub exit: Exit,
    pub complaints: Vec<String>,
    pub files: Vec<PathBuf>,
}

/// Reason why the channel gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// A frame or file failed.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    #[error("result channel: the guest speaks version {0}, expected {VERSION}: rebuild its image")]
    Version(u32),
    /// An unexpected message arrived.
    #[error("result channel: {found}, expected {expected}")]
    Unexpected { found: String, expected: &'static str },
    #[error("result channel: the checksum of the end marker does not match what was received")]
    Checksum,
    /// A file of the guest was refused.
    #[error(transparent)]
    Collect(CollectError),
    #[error("result channel: the guest sent file {0}, but no directory for results was given")]
    NoPlace(String),
    /// A file could not be sent to the guest.
    #[error("{path}: {source}")]
    Send { path: PathBuf, source: io::Error },
}

impl From<FrameError> for SessionError {
    fn from(error: FrameError) -> Self {
        Self::Transfer(error.into())
    }
}

impl From<CollectError> for SessionError {
    fn from(error: CollectError) -> Self {
        match error {
            CollectError::Transfer(error) => Self::Transfer(error),
            other => Self::Collect(other),
        }
    }
}

pub struct Session<R, W> {
    input: FrameReader<R>,
    output: FrameWriter<W>,
}

impl<R: Read, W: Write> Session<R, W> {
    /// Creates a conversation over these two streams.
    pub fn new(input: R, output: W) -> Self {
        Self { input: FrameReader::new(input), output: FrameWriter::new(output) }
    }

    /// Waits for the guest's first message.
    pub fn hello(&mut self) -> Result<Hello, SessionError> {
        match Message::receive(&mut self.input)? {
            Message::Hello(hello) if hello.version == VERSION => Ok(hello),
            Message::Hello(hello) => Err(SessionError::Version(hello.version)),
            other => Err(unexpected(&other, "the guest's hello")),
        }
    }

    /// Sends the files and the job; `charged` makes a memory emulator charge the job's accesses.
    pub fn begin(&mut self, task: &Task, charged: bool) -> Result<(), SessionError> {
        for (file, path) in &task.send {
            send_file(&mut self.output, file, path)
                .map_err(|source| SessionError::Send { path: file.clone(), source })?;
        }
        let job = Job { charged, ..task.job.clone() };
        Message::Job(job).send(&mut self.output).map_err(FrameError::from)?;
        Ok(())
    }

    /// Follows the job to its end marker; the guest then waits to be ended.
    pub fn follow(
        &mut self,
        task: &Task,
        sink: &mut dyn Sink,
    ) -> Result<GuestResult, SessionError> {
        let mut complaints = Vec::new();
        let mut collected = collected(task)?;
        let mut exit = None;
        loop {
            // The end marker carries the checksum of everything before it.
            let before = self.input.checksum();
            match Message::receive(&mut self.input)? {
                Message::Output(stream, bytes) => {
                    sink.output(stream, &bytes);
                    if let Some(bytes) = sink.input() {
                        Message::Input(bytes).send(&mut self.output).map_err(FrameError::from)?;
                    }
                }
                Message::Complaint(text) => complaints.push(text),
                Message::File(header) => {
                    let nowhere = || SessionError::NoPlace(header.path.clone());
                    collected.as_mut().ok_or_else(nowhere)?.receive(&mut self.input, &header)?;
                }
                Message::Exit(how) => exit = Some(how),
                Message::End(sum) if sum != before => return Err(SessionError::Checksum),
                Message::End(_) => break,
                other => return Err(unexpected(&other, "output, a file, or the end")),
            }
        }
        let exit = exit.ok_or_else(|| SessionError::Unexpected {
            found: "the end marker".to_owned(),
            expected: "how the command ended",
        })?;
        let files = collected.map(|collected| collected.files).unwrap_or_default();
        Ok(GuestResult { exit, complaints, files })
    }
}

/// Creates the directory for results.
pub fn prepare_results(task: &Task) -> Result<(), SessionError> {
    collected(task).map(drop)
}

fn collected(task: &Task) -> Result<Option<Collected<'_>>, SessionError> {
    let Some(directory) = &task.results else { return Ok(None) };
    let opened = Collected::open(directory, &task.job.collect);
    Ok(Some(opened.map_err(|source| SessionError::Send { path: directory.clone(), source })?))
}

fn unexpected(found: &Message, expected: &'static str) -> SessionError {
    let mut found = format!("{found:?}");
    // Cut at a character boundary, since `truncate` panics within a character.
    found.truncate(found.char_indices().nth(100).map_or(found.len(), |(at, _)| at));
    SessionError::Unexpected { found, expected }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    /// Creates a conversation with a guest that sends these messages and then disconnects.
    fn with_guest(messages: &[Message]) -> Session<UnixStream, UnixStream> {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut guest = FrameWriter::new(theirs);
        for message in messages {
            let message = match message {
                Message::End([0, ..]) => Message::End(guest.checksum()),
                other => other.clone(),
            };
            message.send(&mut guest).unwrap();
        }
        Session::new(ours.try_clone().unwrap(), ours)
    }

    const END: Message = Message::End([0; 32]);

    #[test]
    fn output_and_exit_come_through_to_the_end_marker() {
        let mut session = with_guest(&[
            Message::Output(Stream::Out, b"one".to_vec()),
            Message::Output(Stream::Err, b"two".to_vec()),
            Message::Complaint("no file".to_owned()),
            Message::Exit(Exit::Code(4)),
            END,
        ]);
        let mut seen = Vec::new();
        let mut sink = |stream: Stream, bytes: &[u8]| seen.push((stream, bytes.to_vec()));
        let answer = session.follow(&Task::default(), &mut sink).unwrap();
        assert_eq!(answer.exit, Exit::Code(4));
        assert_eq!(answer.complaints, ["no file"]);
        assert_eq!(seen, [(Stream::Out, b"one".to_vec()), (Stream::Err, b"two".to_vec())]);
    }

    #[test]
    fn an_exit_without_end_marker_is_not_a_success() {
        let mut session = with_guest(&[Message::Exit(Exit::Code(0))]);
        let error = session.follow(&Task::default(), &mut |_, _: &[u8]| {}).unwrap_err();
        assert!(error.to_string().contains("before the end marker"), "{error}");
    }

    #[test]
    fn a_wrong_checksum_is_an_error() {
        let mut session = with_guest(&[Message::Exit(Exit::Code(0)), Message::End([1; 32])]);
        let error = session.follow(&Task::default(), &mut |_, _: &[u8]| {}).unwrap_err();
        assert!(matches!(error, SessionError::Checksum), "{error}");
    }

    #[test]
    fn an_end_without_exit_and_a_foreign_message_are_errors() {
        let mut session = with_guest(&[END]);
        let error = session.follow(&Task::default(), &mut |_, _: &[u8]| {}).unwrap_err();
        assert!(matches!(error, SessionError::Unexpected { .. }), "{error}");
        let mut session = with_guest(&[Message::Exit(Exit::Code(0))]);
        assert!(matches!(session.hello(), Err(SessionError::Unexpected { .. })));
    }

    #[test]
    fn another_version_is_refused() {
        let hello = Hello { version: 99, kernel: String::new() };
        let mut session = with_guest(&[Message::Hello(hello)]);
        assert!(matches!(session.hello(), Err(SessionError::Version(99))));
    }

    #[test]
    fn a_file_cannot_leave_the_directory_for_results() {
        let directory = tempfile::tempdir().unwrap();
        let header = numalab_guest_agent::protocol::FileHeader {
            path: "../out".to_owned(),
            permissions: 0o644,
            size_bytes: 0,
        };
        let mut session = with_guest(&[Message::File(header)]);
        let task = Task { results: Some(directory.path().to_path_buf()), ..Task::default() };
        let error = session.follow(&task, &mut |_, _: &[u8]| {}).unwrap_err();
        assert!(error.to_string().contains("../out"), "{error}");
    }
}
