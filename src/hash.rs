//! Hashes that are the same on every machine: fingerprints, a mixer of bits, and FNV-1a.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A 64-bit hash of rows or of text, written as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// Adds a row. The order of rows does not matter, so that a shard is recognised if it is read in another order.
    pub fn add_row(&mut self, row: &[f64]) {
        let hash = row.iter().fold(SEED, |hash, value| mix_bits(hash ^ value.to_bits()));
        self.0 = self.0.wrapping_add(hash);
    }

    /// From its bits.
    pub(crate) fn of_bits(bits: u64) -> Self {
        Fingerprint(bits)
    }

    /// Its bits.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// The fingerprint of some bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let word = |chunk: &[u8]| chunk.iter().fold(0u64, |word, &byte| word << 8 | u64::from(byte));
        let hash = bytes
            .chunks(8)
            .fold(mix_bits(SEED ^ bytes.len() as u64), |hash, chunk| mix_bits(hash ^ word(chunk)));
        Fingerprint(hash)
    }
}

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of splitmix64: every input bit reaches every output bit.
pub(crate) fn mix_bits(value: u64) -> u64 {
    let value = value.wrapping_add(SEED);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> String {
        fingerprint.to_string()
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match u64::from_str_radix(&text, 16) {
            Ok(value) if text.len() == 16 => Ok(Fingerprint(value)),
            _ => Err(format!("'{text}' is not a fingerprint of 16 hexadecimal digits")),
        }
    }
}

/// The 64-bit FNV-1a hash of no bytes.
pub(crate) const FNV_EMPTY: u64 = 0xcbf2_9ce4_8422_2325;

/// The FNV-1a hash after one more byte.
pub(crate) const fn fnv_add(hash: u64, byte: u8) -> u64 {
    (hash ^ byte as u64).wrapping_mul(0x0000_0100_0000_01b3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_count_and_their_order_does_not() {
        let of = |rows: &[[f64; 2]]| {
            let mut fingerprint = Fingerprint::default();
            rows.iter().for_each(|row| fingerprint.add_row(row));
            fingerprint
        };
        assert_eq!(of(&[[1.0, 2.0], [3.0, 4.0]]), of(&[[3.0, 4.0], [1.0, 2.0]]));
        assert_ne!(of(&[[1.0, 2.0], [3.0, 4.0]]), of(&[[2.0, 1.0], [3.0, 4.0]]));
        assert_ne!(of(&[[1.0, 2.0]]), of(&[[1.0, 2.0], [1.0, 2.0]]));
    }

    #[test]
    fn text_form_is_exact() {
        let fingerprint = Fingerprint::of_bytes(b"some text");
        assert_eq!(Fingerprint::try_from(fingerprint.to_string()), Ok(fingerprint));
        assert!(Fingerprint::try_from("12".to_string()).is_err());
    }

    /// Reference values of the FNV specification.
    #[test]
    fn known_texts_have_their_published_hashes() {
        let hash = |text: &str| text.bytes().fold(FNV_EMPTY, fnv_add);
        assert_eq!((hash(""), hash("a")), (0xcbf2_9ce4_8422_2325, 0xaf63_dc4c_8601_ec8c));
        assert_eq!(hash("foobar"), 0x8594_4171_f739_67e8);
    }
}
