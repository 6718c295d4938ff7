//! Extracts the uncompressed kernel from a bootable image: `xl` maps it into a domain without a
//! decompressor (Linux `Documentation/arch/x86/boot.rst`).

use std::io::{self, Read};

use flate2::read::GzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::StreamingDecoder;

const SETUP_SECTORS: usize = 0x1f1;
const MAGIC: usize = 0x202;
const PROTOCOL: usize = 0x206;
const PAYLOAD_OFFSET: usize = 0x248;
const PAYLOAD_LENGTH: usize = 0x24c;
/// The first boot protocol that gives the position of the payload.
const LEAST_PROTOCOL: u16 = 0x0208;
const SECTOR_BYTES: usize = 512;
/// Maximum size of a kernel; with all drivers it has a tenth of that.
const MOST_BYTES: u64 = 1 << 30;

/// Reasons why no kernel can be extracted from a kernel image.
#[derive(Debug, thiserror::Error)]
pub enum VmlinuxError {
    /// The file is not a bootable image.
    #[error("no \"HdrS\" at byte 514: expected a Linux bzImage")]
    NoImage,
    /// The image does not give the position of the kernel.
    #[error("boot protocol {found:#06x}, expected 0x0208 or later")]
    Protocol { found: u16 },
    #[error("the kernel is at bytes {start} to {end}, but the file has {length}")]
    Outside { start: usize, end: usize, length: usize },
    #[error("the kernel begins with {found:02x?}, expected xz, zstd or gzip")]
    Compression {
        /// First bytes of the kernel's payload.
        found: Vec<u8>,
    },
    #[error("the kernel has more than {most_bytes} bytes when decompressed")]
    TooLarge { most_bytes: u64 },
    #[error("cannot decompress the kernel: {0}")]
    Damaged(io::Error),
}

/// Returns the kernel, an ELF file, that a bzImage would decompress when it boots.
pub fn of_bzimage(image: &[u8]) -> Result<Vec<u8>, VmlinuxError> {
    kernel(image, MOST_BYTES)
}

fn kernel(image: &[u8], most_bytes: u64) -> Result<Vec<u8>, VmlinuxError> {
    let payload = payload(image)?;
    let reader: Box<dyn Read + '_> = match payload {
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Box::new(XzReader::new(payload, false)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(
            StreamingDecoder::new(payload)
                .map_err(|error| VmlinuxError::Damaged(io::Error::other(error.to_string())))?,
        ),
        [0x1f, 0x8b, ..] => Box::new(GzDecoder::new(payload)),
        other => {
            let found = other.iter().copied().take(6).collect();
            return Err(VmlinuxError::Compression { found });
        }
    };
    let mut kernel = Vec::new();
    reader.take(most_bytes + 1).read_to_end(&mut kernel).map_err(VmlinuxError::Damaged)?;
    if kernel.len() as u64 > most_bytes {
        return Err(VmlinuxError::TooLarge { most_bytes });
    }
    Ok(kernel)
}

fn payload(image: &[u8]) -> Result<&[u8], VmlinuxError> {
    let bytes = |at: usize, length: usize| image.get(at..at + length);
    if bytes(MAGIC, 4) != Some(b"HdrS") {
        return Err(VmlinuxError::NoImage);
    }
    let number = |at: usize, length: usize| {
        let digits = bytes(at, length).unwrap_or_default();
        digits.iter().rev().fold(0_usize, |value, byte| value << 8 | usize::from(*byte))
    };
    let protocol = u16::try_from(number(PROTOCOL, 2)).unwrap_or_default();
    if protocol < LEAST_PROTOCOL {
        return Err(VmlinuxError::Protocol { found: protocol });
    }
    // Zero means four, for compatibility with the first protocol.
    let sectors = match number(SETUP_SECTORS, 1) {
        0 => 4,
        sectors => sectors,
    };
    let start = (sectors + 1) * SECTOR_BYTES + number(PAYLOAD_OFFSET, 4);
    let end = start + number(PAYLOAD_LENGTH, 4);
    let outside = || VmlinuxError::Outside { start, end, length: image.len() };
    image.get(start..end).ok_or_else(outside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    /// Builds a bzImage with this payload, one setup sector, and the payload 16 bytes in.
    fn image_of(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 2 * SECTOR_BYTES + 16];
        image[SETUP_SECTORS] = 1;
        image[MAGIC..MAGIC + 4].copy_from_slice(b"HdrS");
        image[PROTOCOL..PROTOCOL + 2].copy_from_slice(&0x020f_u16.to_le_bytes());
        image[PAYLOAD_OFFSET] = 16;
        let length = u32::try_from(payload.len()).unwrap();
        image[PAYLOAD_LENGTH..PAYLOAD_LENGTH + 4].copy_from_slice(&length.to_le_bytes());
        image.extend_from_slice(payload);
        image
    }

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn the_payload_is_found_and_decompressed() {
        assert_eq!(of_bzimage(&image_of(&gzip(b"\x7fELF kernel"))).unwrap(), b"\x7fELF kernel");
    }

    #[test]
    fn a_payload_that_becomes_larger_than_any_kernel_is_refused() {
        let image = image_of(&gzip(&[0; 5000]));
        assert_eq!(kernel(&image, 5000).unwrap().len(), 5000);
        let refused = kernel(&image, 4999).unwrap_err().to_string();
        assert!(refused.contains("more than 4999 bytes"), "{refused}");
    }

    #[test]
    fn files_that_are_not_kernel_images_are_refused_with_the_reason() {
        assert!(matches!(of_bzimage(b"\x7fELF"), Err(VmlinuxError::NoImage)));
        let mut old = image_of(b"");
        old[PROTOCOL] = 7;
        old[PROTOCOL + 1] = 2;
        assert!(matches!(of_bzimage(&old), Err(VmlinuxError::Protocol { found: 0x0207 })));
        let lz4 = of_bzimage(&image_of(&[0x02, 0x21, 0x4c, 0x18])).unwrap_err();
        assert!(lz4.to_string().contains("[02, 21, 4c, 18]"), "{lz4}");
    }

    proptest! {
        #[test]
        fn no_truncated_image_makes_it_panic(end in 0_usize..1200) {
            let image = image_of(&gzip(&[7; 400]));
            let cut = &image[..end.min(image.len() - 1)];
            prop_assert!(of_bzimage(cut).is_err());
        }
    }
}
