//! Hashes of addresses, of which the writer asks for one a span.

use std::hash::Hasher;

/// Nobody chooses the addresses of call sites to make a table slow, so the standard hasher's care is not needed.
#[derive(Default)]
pub(super) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write_usize(&mut self, address: usize) {
        self.0 = (self.0 ^ address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize(usize::from(*byte));
        }
    }

    fn finish(&self) -> u64 {
        // Addresses end in zeros, and a product's low bits know only those of its factors.
        self.0 ^ (self.0 >> 32)
    }
}
