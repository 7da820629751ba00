//! The 64-bit FNV-1a hash: small, and the same on every machine.

/// The hash of no bytes.
pub(crate) const EMPTY: u64 = 0xcbf2_9ce4_8422_2325;

/// The hash after one more byte.
pub(crate) const fn add(hash: u64, byte: u8) -> u64 {
    (hash ^ byte as u64).wrapping_mul(0x0000_0100_0000_01b3)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference values of the FNV specification.
    #[test]
    fn known_texts_have_their_published_hashes() {
        let hash = |text: &str| text.bytes().fold(EMPTY, add);
        assert_eq!((hash(""), hash("a")), (0xcbf2_9ce4_8422_2325, 0xaf63_dc4c_8601_ec8c));
        assert_eq!(hash("foobar"), 0x8594_4171_f739_67e8);
    }
}
