//! SHA-256, by which a page's policy names the one script that may run.

/// The first 32 bits of the fractional part of a root of each of the first primes: the square root if `cube` is false.
fn root_bits(prime: u64, cube: bool) -> u32 {
    // The largest r with r² ≤ prime·2⁶⁴, or r³ ≤ prime·2⁹⁶, of which the low 32 bits are the fraction.
    let fits = |root: u128| match cube {
        false => root * root <= u128::from(prime) << 64,
        true => root * root <= (u128::from(prime) << 96) / root.max(1),
    };
    let mut root = 0u128;
    for bit in (0..37).rev() {
        if fits(root | 1 << bit) {
            root |= 1 << bit;
        }
    }
    root as u32
}

/// The hash of a text.
pub(super) fn sha256(text: &[u8]) -> [u8; 32] {
    let primes: Vec<u64> = (2..312).filter(|n| (2..*n).all(|divisor| n % divisor != 0)).collect();
    let constants: Vec<u32> = primes.iter().take(64).map(|&prime| root_bits(prime, true)).collect();
    let mut state: Vec<u32> = primes.iter().take(8).map(|&prime| root_bits(prime, false)).collect();
    let mut padded = text.to_vec();
    padded.push(0x80);
    padded.resize((text.len() + 9).next_multiple_of(64) - 8, 0);
    padded.extend((8 * text.len() as u64).to_be_bytes());
    for block in padded.chunks_exact(64) {
        let mut words: Vec<u32> = block
            .chunks_exact(4)
            .map(|four| u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
            .collect();
        for i in 16..64 {
            let (a, b) = (words[i - 15], words[i - 2]);
            let s0 = a.rotate_right(7) ^ a.rotate_right(18) ^ (a >> 3);
            let s1 = b.rotate_right(17) ^ b.rotate_right(19) ^ (b >> 10);
            words.push(words[i - 16].wrapping_add(s0).wrapping_add(words[i - 7]).wrapping_add(s1));
        }
        let mut v = state.clone();
        for (constant, word) in constants.iter().zip(&words) {
            let s1 = v[4].rotate_right(6) ^ v[4].rotate_right(11) ^ v[4].rotate_right(25);
            let chosen = (v[4] & v[5]) ^ (!v[4] & v[6]);
            let one = v[7].wrapping_add(s1).wrapping_add(chosen).wrapping_add(*constant).wrapping_add(*word);
            let s0 = v[0].rotate_right(2) ^ v[0].rotate_right(13) ^ v[0].rotate_right(22);
            let most = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
            v.rotate_right(1);
            v[4] = v[4].wrapping_add(one);
            v[0] = one.wrapping_add(s0).wrapping_add(most);
        }
        state.iter_mut().zip(v).for_each(|(sum, add)| *sum = sum.wrapping_add(add));
    }
    let mut hash = [0; 32];
    hash.chunks_exact_mut(4).zip(state).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_be_bytes()));
    hash
}

#[cfg(test)]
mod tests {
    use super::sha256;

    fn hex(text: &str) -> String {
        sha256(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_hashes_of_the_standard_are_found() {
        assert_eq!(hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let long = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(hex(long), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    }
}
