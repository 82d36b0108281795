//! The initial archive: a reader for cpio's "newc" format.
//!
//! The boot loader hands the kernel one read-only stretch of memory. A record in it is a header of 110
//! ASCII characters (a magic number and thirteen fields of eight hexadecimal digits), the name with a
//! terminating zero, and the content; name and content are each padded to four bytes. A record named
//! `TRAILER!!!` ends an archive; zero bytes and a further archive may follow.
//!
//! The archive comes from outside, so nothing in it is believed: a record that does not fit the bytes at
//! hand ends the reading with a sentence that says where, and what was read before it stays.

/// One file of the archive. Borrowed from the archive's memory: nothing is copied.
pub(crate) struct Record {
    /// Path relative to the root, without leading slashes or `./`.
    pub(crate) name: &'static [u8],
    /// Type and permission bits as in `st_mode`.
    pub(crate) mode: u32,
    pub(crate) owner: u32,
    pub(crate) group: u32,
    /// Seconds since 1970.
    pub(crate) modified: u32,
    /// Number that the hard links of one file share, unique within the archive only.
    pub(crate) number: u32,
    pub(crate) links: u32,
    /// Major and minor number, for device files.
    pub(crate) device: (u32, u32),
    /// Content; the target for a symbolic link.
    pub(crate) content: &'static [u8],
}

/// Why reading stopped early: what is wrong, and at which byte of the archive.
#[derive(Debug)]
pub(crate) struct Damage {
    pub(crate) reason: &'static str,
    pub(crate) offset: usize,
}

/// Reads records one after the other; after a damaged one it yields nothing more.
pub(crate) struct Archive {
    bytes: &'static [u8],
    offset: usize,
}

const HEADER: usize = 110;
const TRAILER: &[u8] = b"TRAILER!!!";

impl Archive {
    pub(crate) fn new(bytes: &'static [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    /// Takes `length` bytes and moves on to the next multiple of four.
    fn take(&mut self, length: usize) -> Option<&'static [u8]> {
        let end = self.offset.checked_add(length)?;
        let taken = self.bytes.get(self.offset..end)?;
        self.offset = end.next_multiple_of(4);
        Some(taken)
    }

    fn record(&mut self) -> Result<Record, &'static str> {
        let header_end = self.offset.checked_add(HEADER).ok_or("offset overflow")?;
        let header = self.bytes.get(self.offset..header_end).ok_or("cut off inside a header")?;
        if !header.starts_with(b"070701") && !header.starts_with(b"070702") {
            return Err("not a newc header");
        }
        let mut fields = [0; 13];
        for (field, digits) in fields.iter_mut().zip(header[6..].chunks_exact(8)) {
            *field = hexadecimal(digits).ok_or("a header field is not a hexadecimal number")?;
        }
        let [number, mode, owner, group, links, modified, size, _, _, major, minor, name_size, _] = fields;
        // The name is padded together with the header, whose size is no multiple of four.
        let name = &self.take(HEADER + name_size as usize).ok_or("cut off inside a name")?[HEADER..];
        let content = self.take(size as usize).ok_or("cut off inside a file's content")?;
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        Ok(Record { name: relative(name), mode, owner, group, modified, number, links, device: (major, minor), content })
    }
}

impl Iterator for Archive {
    type Item = Result<Record, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = self.bytes.get(self.offset..)?;
            // Padding between concatenated archives, and after the last.
            self.offset += rest.iter().position(|&byte| byte != 0)?;
            let offset = self.offset;
            match self.record() {
                Ok(record) if record.name == TRAILER => continue,
                Ok(record) => return Some(Ok(record)),
                Err(reason) => {
                    self.offset = self.bytes.len();
                    return Some(Err(Damage { reason, offset }));
                }
            }
        }
    }
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0u32, |value, &digit| Some(value << 4 | (digit as char).to_digit(16)?))
}

fn relative(mut name: &'static [u8]) -> &'static [u8] {
    loop {
        name = match name {
            [b'/', rest @ ..] | [b'.', b'/', rest @ ..] => rest,
            [b'.'] => &[],
            _ => return name,
        }
    }
}
