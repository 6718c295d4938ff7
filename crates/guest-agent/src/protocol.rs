//! The messages between the host and process 1 of the guest on the result channel.
//!
//! The guest begins with [`Message::Hello`]; the host answers with the job and its files; the guest
//! streams output, then sends files, the exit and [`Message::End`], which contains the checksum of
//! everything it sent, and waits for the host to end it. Anything else, and an end of the stream
//! before the end marker, is an error.

mod frame;
mod job;
mod message;
mod transfer;

pub use frame::{FrameError, FrameReader, FrameWriter, MAX_PAYLOAD_BYTES};
pub use job::{Exit, Job};
pub use message::{FileHeader, Hello, Message, Stream};
pub use transfer::{TransferError, receive_content, receive_file, safe_relative, send_file};

/// The name of the virtio port of the result channel.
pub const PORT_NAME: &str = "numalab.result";
/// The version of this protocol; both sides must have the same.
pub const VERSION: u32 = 2;
