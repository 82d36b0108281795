//! What the model knows of one page.

/// What `mmap` and `madvise` have said of a page beside its rights.
pub(crate) mod marks {
    pub(crate) const GROWS_DOWN: u32 = 1;
    pub(crate) const LOCKED: u32 = 2;
    pub(crate) const NO_RESERVE: u32 = 4;
    pub(crate) const DONT_FORK: u32 = 8;
    pub(crate) const WIPE_ON_FORK: u32 = 16;
    pub(crate) const DONT_DUMP: u32 = 32;
    pub(crate) const RANDOM: u32 = 64;
    pub(crate) const SEQUENTIAL: u32 = 128;
    pub(crate) const MERGEABLE: u32 = 256;
    pub(crate) const HUGE: u32 = 512;
    pub(crate) const NO_HUGE: u32 = 1024;
}

/// Where its content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    Private,
    Shared { object: u64, index: u64 },
}

/// A mapped page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Page {
    pub(crate) rights: u64,
    pub(crate) marks: u32,
    pub(crate) source: Source,
    /// Which calls made it what it is. Linux may keep areas apart whose pages have different histories.
    pub(crate) piece: u64,
    /// What it holds, if it is private.
    pub(crate) value: u64,
    /// `MADV_FREE`: it may hold zero as well.
    pub(crate) is_loose: bool,
    /// Something was written to it, so it is no page of zeroes.
    pub(crate) is_written: bool,
    /// Whether it is in memory, if that is certain.
    pub(crate) present: Option<bool>,
}

impl Page {
    pub(crate) fn has(&self, mark: u32) -> bool {
        self.marks & mark != 0
    }

    /// Its content is gone.
    pub(crate) fn drop_content(&mut self) {
        (self.value, self.is_loose, self.is_written, self.present) = (0, false, false, Some(false));
    }

    /// Whether the next page, being like this, can be of the same area.
    pub(crate) fn continues_with(&self, next: &Page) -> bool {
        let is_same_source = match (self.source, next.source) {
            (Source::Private, Source::Private) => true,
            (Source::Shared { object, index }, Source::Shared { object: other, index: following }) => {
                object == other && following == index + 1
            }
            _ => false,
        };
        self.rights == next.rights && self.marks == next.marks && is_same_source
    }
}
