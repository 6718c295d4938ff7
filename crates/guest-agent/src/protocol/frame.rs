//! Frames: a kind, a length and a payload, with a checksum over all of them.

use std::io::{self, Read, Write};

use sha2::{Digest, Sha256};

/// The largest payload, in bytes.
pub const MAX_PAYLOAD_BYTES: usize = 64 * 1024;

/// Every frame begins with these two bytes.
const MAGIC: [u8; 2] = *b"NL";
const HEADER_BYTES: usize = 8;

/// Reasons why a frame cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The stream failed.
    #[error("result channel: {0}")]
    Io(#[from] io::Error),
    #[error("result channel: closed after {frames} frames, before the end marker")]
    Closed {
        /// Number of complete frames read before.
        frames: u64,
    },
    #[error(
        "result channel: frame {frames} begins with {found:02x?}, expected \"NL\" and a length of at most {MAX_PAYLOAD_BYTES}"
    )]
    Malformed {
        /// Number of complete frames read before.
        frames: u64,
        found: [u8; HEADER_BYTES],
    },
}

/// Writes frames and updates the checksum of everything written.
#[derive(Debug)]
pub struct FrameWriter<W> {
    out: W,
    sum: Sha256,
}

/// Reads frames and updates the checksum of everything read.
#[derive(Debug)]
pub struct FrameReader<R> {
    input: R,
    sum: Sha256,
    frames: u64,
}

impl<W: Write> FrameWriter<W> {
    /// Creates a writer of frames to `out`.
    pub fn new(out: W) -> Self {
        Self { out, sum: Sha256::new() }
    }

    /// Writes one frame immediately.
    ///
    /// # Errors
    /// The writer's errors; `InvalidInput` if the payload is larger than [`MAX_PAYLOAD_BYTES`].
    pub fn write(&mut self, kind: u8, payload: &[u8]) -> io::Result<()> {
        let too_long = || io::Error::new(io::ErrorKind::InvalidInput, "payload too long");
        if payload.len() > MAX_PAYLOAD_BYTES {
            return Err(too_long());
        }
        let length = u32::try_from(payload.len()).map_err(|_| too_long())?;
        let mut frame = Vec::with_capacity(HEADER_BYTES + payload.len());
        frame.extend_from_slice(&MAGIC);
        frame.extend_from_slice(&[kind, 0]);
        frame.extend_from_slice(&length.to_le_bytes());
        frame.extend_from_slice(payload);
        self.sum.update(&frame);
        self.out.write_all(&frame)?;
        self.out.flush()
    }

    /// Returns the SHA-256 of everything written.
    pub fn checksum(&self) -> [u8; 32] {
        self.sum.clone().finalize().into()
    }
}

impl<R: Read> FrameReader<R> {
    /// Creates a reader of frames from `input`.
    pub fn new(input: R) -> Self {
        Self { input, sum: Sha256::new(), frames: 0 }
    }

    /// Reads one frame, and returns its kind and payload.
    pub fn read(&mut self) -> Result<(u8, Vec<u8>), FrameError> {
        let mut header = [0; HEADER_BYTES];
        self.fill(&mut header)?;
        let [m0, m1, kind, _, l0, l1, l2, l3] = header;
        let length = u32::from_le_bytes([l0, l1, l2, l3]);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if [m0, m1] != MAGIC || length > MAX_PAYLOAD_BYTES {
            return Err(FrameError::Malformed { frames: self.frames, found: header });
        }
        let mut payload = vec![0; length];
        self.fill(&mut payload)?;
        self.sum.update(header);
        self.sum.update(&payload);
        self.frames += 1;
        Ok((kind, payload))
    }

    /// Returns the SHA-256 of everything read.
    pub fn checksum(&self) -> [u8; 32] {
        self.sum.clone().finalize().into()
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), FrameError> {
        self.input.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
                FrameError::Closed { frames: self.frames }
            }
            _ => FrameError::Io(error),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(frames: &[(u8, Vec<u8>)]) -> (Vec<u8>, [u8; 32]) {
        let mut writer = FrameWriter::new(Vec::new());
        for (kind, payload) in frames {
            writer.write(*kind, payload).unwrap();
        }
        let sum = writer.checksum();
        (writer.out, sum)
    }

    proptest! {
        #[test]
        fn written_frames_are_read_with_the_same_checksum(
            frames in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..300)), 0..8),
        ) {
            let (bytes, sum) = written(&frames);
            let mut reader = FrameReader::new(bytes.as_slice());
            for frame in frames {
                prop_assert_eq!(reader.read().unwrap(), frame);
            }
            prop_assert_eq!(reader.checksum(), sum);
            let closed = matches!(reader.read(), Err(FrameError::Closed { .. }));
            prop_assert!(closed);
        }

        #[test]
        fn every_truncation_is_an_error(cut in 0_usize..40) {
            let (bytes, _) = written(&[(1, vec![7; 10]), (2, vec![8; 14])]);
            let mut reader = FrameReader::new(&bytes[..cut]);
            let first = reader.read();
            prop_assert_eq!(first.is_ok(), cut >= 18);
            prop_assert!(reader.read().is_err());
        }
    }

    #[test]
    fn other_bytes_and_too_long_payloads_are_refused() {
        let mut reader = FrameReader::new(&b"Linux version 6"[..]);
        assert!(matches!(reader.read(), Err(FrameError::Malformed { frames: 0, .. })));
        let mut reader = FrameReader::new(&b"NL\x01\x00\x00\x00\x00\x01"[..]);
        assert!(matches!(reader.read(), Err(FrameError::Malformed { .. })));
        let mut writer = FrameWriter::new(Vec::new());
        assert!(writer.write(1, &vec![0; MAX_PAYLOAD_BYTES + 1]).is_err());
    }
}
