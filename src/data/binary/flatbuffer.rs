//! Reading FlatBuffers, in which Arrow describes its data. Every offset is checked.

/// A table in a FlatBuffer.
#[derive(Clone, Copy)]
pub(super) struct Flat<'a> {
    bytes: &'a [u8],
    at: usize,
}

fn read<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.first_chunk().copied()
}

/// The place to which the offset at `at` points.
fn follow(bytes: &[u8], at: usize) -> Option<usize> {
    at.checked_add(u32::from_le_bytes(read(bytes, at)?) as usize)
}

impl<'a> Flat<'a> {
    /// The table at the root.
    pub(super) fn root(bytes: &'a [u8]) -> Option<Flat<'a>> {
        Some(Flat { bytes, at: follow(bytes, 0)? })
    }

    /// Where field `nth` is; `None` if it has its default.
    fn field(self, nth: usize) -> Option<usize> {
        let back = i32::from_le_bytes(read(self.bytes, self.at)?);
        let list = usize::try_from(i64::try_from(self.at).ok()? - i64::from(back)).ok()?;
        let size = u16::from_le_bytes(read(self.bytes, list)?) as usize;
        let entry = 4 + 2 * nth;
        if entry + 2 > size {
            return None;
        }
        let offset = u16::from_le_bytes(read(self.bytes, list.checked_add(entry)?)?) as usize;
        (offset > 0).then_some(self.at.checked_add(offset)?)
    }

    fn number<const N: usize>(self, nth: usize) -> Option<[u8; N]> {
        read(self.bytes, self.field(nth)?)
    }

    pub(super) fn byte(self, nth: usize) -> u8 {
        self.number(nth).map_or(0, |[byte]| byte)
    }

    pub(super) fn short(self, nth: usize) -> Option<i16> {
        self.number(nth).map(i16::from_le_bytes)
    }

    pub(super) fn int(self, nth: usize) -> Option<i32> {
        self.number(nth).map(i32::from_le_bytes)
    }

    pub(super) fn long(self, nth: usize) -> i64 {
        self.number(nth).map_or(0, i64::from_le_bytes)
    }

    pub(super) fn table(self, nth: usize) -> Option<Flat<'a>> {
        Some(Flat { bytes: self.bytes, at: follow(self.bytes, self.field(nth)?)? })
    }

    pub(super) fn text(self, nth: usize) -> Option<&'a str> {
        let (begin, length) = self.list(nth)?;
        std::str::from_utf8(self.bytes.get(begin..begin.checked_add(length)?)?).ok()
    }

    /// The tables of a list.
    pub(super) fn tables(self, nth: usize) -> Option<Vec<Flat<'a>>> {
        let Some((begin, length)) = self.list(nth) else { return Some(Vec::new()) };
        self.bytes.get(begin..begin.checked_add(length.checked_mul(4)?)?)?;
        let table = |i| Some(Flat { bytes: self.bytes, at: follow(self.bytes, begin + 4 * i)? });
        (0..length).map(table).collect()
    }

    /// The integers of a list of structs of `width` integers.
    pub(super) fn longs(self, nth: usize, width: usize) -> Option<Vec<i64>> {
        let Some((begin, length)) = self.list(nth) else { return Some(Vec::new()) };
        let bytes = length.checked_mul(8 * width)?;
        let items = self.bytes.get(begin..begin.checked_add(bytes)?)?.as_chunks().0;
        Some(items.iter().map(|item| i64::from_le_bytes(*item)).collect())
    }

    /// Where the items of a list begin, and how many there are.
    fn list(self, nth: usize) -> Option<(usize, usize)> {
        let at = follow(self.bytes, self.field(nth)?)?;
        Some((at.checked_add(4)?, u32::from_le_bytes(read(self.bytes, at)?) as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_and_no_offset_leads_outside() {
        // The root, a list of two fields, and a table with an integer and a text.
        let mut bytes = vec![16, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend([8, 0, 12, 0, 4, 0, 8, 0]);
        bytes.extend([8, 0, 0, 0, 7, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, b'a', b'b']);
        let table = Flat::root(&bytes).unwrap();
        assert_eq!((table.int(0), table.text(1), table.int(2)), (Some(7), Some("ab"), None));
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                if let Some(table) = Flat::root(&damaged) {
                    let _ = (table.int(0), table.text(1), table.tables(1), table.longs(1, 2), table.table(1));
                }
            }
            let _ = Flat::root(&bytes[..at]).map(|table| (table.text(1), table.longs(0, 1)));
        }
    }
}
