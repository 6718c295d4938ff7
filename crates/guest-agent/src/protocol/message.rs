//! The messages, and their encoding as frames.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::io::{self, Read, Write};

use super::frame::{FrameError, FrameReader, FrameWriter};
use super::job::{Exit, Job};

/// An output stream of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// The guest's first message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    pub version: u32,
    pub kernel: String,
}

/// A file's name and size; its content follows in [`Message::Data`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHeader {
    /// The path: in the guest, or relative to the directory for results.
    pub path: String,
    pub permissions: u32,
    pub size_bytes: u64,
}

/// A message from one side to the other.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Guest: process 1 is running and has the channel.
    Hello(Hello),
    /// Host: the job; files may have come before.
    Job(Job),
    /// In either direction: a file follows.
    File(FileHeader),
    /// In either direction: bytes of the file.
    Data(Vec<u8>),
    /// Host: input for the command; an empty message is its end.
    Input(Vec<u8>),
    /// Guest: output of the command.
    Output(Stream, Vec<u8>),
    /// Guest: a failed operation, such as collecting a file that does not exist.
    Complaint(String),
    /// Guest: the command ended.
    Exit(Exit),
    /// Guest: the last message, with the SHA-256 of every frame before.
    End([u8; 32]),
}

const HELLO: u8 = 1;
const JOB: u8 = 2;
const FILE: u8 = 3;
const DATA: u8 = 4;
const OUT: u8 = 5;
const ERR: u8 = 6;
const COMPLAINT: u8 = 7;
const EXIT: u8 = 8;
const END: u8 = 9;
const INPUT: u8 = 10;

impl Message {
    /// Sends the message.
    ///
    /// # Errors
    /// The writer's errors.
    pub fn send<W: Write>(&self, out: &mut FrameWriter<W>) -> io::Result<()> {
        match self {
            Self::Hello(hello) => out.write(HELLO, &to_json(hello)?),
            Self::Job(job) => out.write(JOB, &to_json(job)?),
            Self::File(header) => out.write(FILE, &to_json(header)?),
            Self::Data(bytes) => out.write(DATA, bytes),
            Self::Input(bytes) => out.write(INPUT, bytes),
            Self::Output(Stream::Out, bytes) => out.write(OUT, bytes),
            Self::Output(Stream::Err, bytes) => out.write(ERR, bytes),
            Self::Complaint(text) => out.write(COMPLAINT, text.as_bytes()),
            Self::Exit(exit) => out.write(EXIT, &to_json(exit)?),
            Self::End(sum) => out.write(END, sum),
        }
    }

    /// Receives the next message.
    ///
    /// # Errors
    /// [`FrameError`]; an unknown kind or a payload that does not fit it is
    /// `InvalidData`.
    pub fn receive<R: Read>(input: &mut FrameReader<R>) -> Result<Self, FrameError> {
        let (kind, payload) = input.read()?;
        let message = match kind {
            HELLO => Self::Hello(parsed("hello", &payload)?),
            JOB => Self::Job(parsed("job", &payload)?),
            FILE => Self::File(parsed("file", &payload)?),
            DATA => Self::Data(payload),
            INPUT => Self::Input(payload),
            OUT => Self::Output(Stream::Out, payload),
            ERR => Self::Output(Stream::Err, payload),
            COMPLAINT => Self::Complaint(String::from_utf8_lossy(&payload).into_owned()),
            EXIT => Self::Exit(parsed("exit", &payload)?),
            END => Self::End(checksum(&payload)?),
            other => return Err(invalid(format!("message of unknown kind {other}")).into()),
        };
        Ok(message)
    }
}

fn to_json(value: &impl Serialize) -> io::Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(io::Error::from)
}

fn parsed<T: DeserializeOwned>(what: &str, payload: &[u8]) -> io::Result<T> {
    numalab_host::from_json(payload).map_err(|error| invalid(format!("{what} message: {error}")))
}

fn checksum(payload: &[u8]) -> io::Result<[u8; 32]> {
    let wrong = |_| invalid(format!("end message of {} bytes, expected 32", payload.len()));
    payload.try_into().map_err(wrong)
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_message() -> Vec<Message> {
        let header = FileHeader { path: "a/b".to_owned(), permissions: 0o644, size_bytes: 3 };
        let hello = Hello { version: 1, kernel: "6.1".to_owned() };
        vec![
            Message::Hello(hello),
            Message::Job(Job::new(["echo", "a b"])),
            Message::File(header),
            Message::Data(vec![0, 255]),
            Message::Output(Stream::Out, b"out".to_vec()),
            Message::Output(Stream::Err, b"err".to_vec()),
            Message::Complaint("no file x".to_owned()),
            Message::Exit(Exit::Signal(9)),
            Message::End([7; 32]),
        ]
    }

    #[test]
    fn every_message_arrives_unchanged() {
        let mut bytes = Vec::new();
        let mut writer = FrameWriter::new(&mut bytes);
        for message in every_message() {
            message.send(&mut writer).unwrap();
        }
        let mut reader = FrameReader::new(bytes.as_slice());
        for message in every_message() {
            assert_eq!(Message::receive(&mut reader).unwrap(), message);
        }
    }

    #[test]
    fn unknown_kinds_and_wrong_payloads_are_reported() {
        for (kind, payload, words) in [
            (99, &b""[..], "unknown kind 99"),
            (EXIT, b"{}", "exit message"),
            (END, b"short", "end message of 5 bytes, expected 32"),
        ] {
            let mut bytes = Vec::new();
            FrameWriter::new(&mut bytes).write(kind, payload).unwrap();
            let error = Message::receive(&mut FrameReader::new(bytes.as_slice())).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
