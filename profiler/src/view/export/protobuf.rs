//! As much of protocol buffers and of TensorFlow's record files as an event file needs.

use std::io::{self, Write};

/// A message as it grows.
#[derive(Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    fn key(&mut self, field: u32, wire: u32) {
        self.varint(u64::from(field << 3 | wire));
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(super) fn integer(mut self, field: u32, value: u64) -> Message {
        self.key(field, 0);
        self.varint(value);
        self
    }

    pub(super) fn double(mut self, field: u32, value: f64) -> Message {
        self.key(field, 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(super) fn float(mut self, field: u32, value: f32) -> Message {
        self.key(field, 5);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(super) fn bytes(mut self, field: u32, value: &[u8]) -> Message {
        self.key(field, 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
        self
    }

    pub(super) fn message(self, field: u32, value: &Message) -> Message {
        self.bytes(field, &value.0)
    }

    /// Writes it as one record: length, its checksum, the bytes, their checksum.
    pub(super) fn write_record(&self, to: &mut dyn Write) -> io::Result<()> {
        let length = (self.0.len() as u64).to_le_bytes();
        to.write_all(&length)?;
        to.write_all(&masked(crc32c(&length)).to_le_bytes())?;
        to.write_all(&self.0)?;
        to.write_all(&masked(crc32c(&self.0)).to_le_bytes())
    }
}

/// A record file's checksums are turned, so that one of data that holds checksums is none of them.
fn masked(checksum: u32) -> u32 {
    checksum.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli), reflected, a byte at a time.
fn crc32c(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    let step = |crc: u32, byte: &u8| {
        let index = (crc ^ u32::from(*byte)) & 0xff;
        TABLE[index as usize] ^ (crc >> 8)
    };
    !bytes.iter().fold(!0, step)
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut crc = at as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        table[at] = crc;
        at += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_rfc_3720() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        let rising: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&rising), 0x46dd_794e);
    }

    #[test]
    fn numbers_are_coded_as_the_format_says() {
        let message = Message::default().integer(1, 150).bytes(2, b"testing");
        assert_eq!(message.0, [0x08, 0x96, 0x01, 0x12, 7, b't', b'e', b's', b't', b'i', b'n', b'g']);
        let message = Message::default().double(1, 1.0).float(2, 1.0);
        assert_eq!(message.0, [0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x15, 0, 0, 0x80, 0x3f]);
    }
}
