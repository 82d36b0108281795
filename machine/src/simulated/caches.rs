//! What one CPU has cached of the tables. It keeps everything until it is told to drop it.

use std::collections::BTreeMap;

use explorer::Digest;
use memory::PAGE_SIZE;

use super::operation::OperationId;

pub(super) const PRESENT: u64 = 1;
pub(super) const WRITABLE: u64 = 1 << 1;
pub(super) const USER: u64 = 1 << 2;
pub(super) const ACCESSED: u64 = 1 << 5;
pub(super) const DIRTY: u64 = 1 << 6;
pub(super) const LARGE: u64 = 1 << 7;
/// How many bytes a leaf table maps, or a large page.
pub(super) const TABLE_REACH: u64 = PAGE_SIZE << 9;
pub(super) const FRAME: u64 = 0x000f_ffff_ffff_f000;

/// A translation as it was when it was walked, and what has become of it since.
#[derive(Clone, Debug)]
pub(super) struct Translation {
    /// The root of the space that it is of.
    pub(super) root: u64,
    /// The entry.
    pub(super) entry: u64,
    /// It is a piece of a large page's translation, of which one is cached for each page in play: they are there, and go, together.
    pub(super) large: bool,
    /// Why it may not be used any more, for anything, in words.
    pub(super) dead: Option<String>,
    /// Why it may not be used for stores any more.
    pub(super) dead_for_stores: Option<String>,
    /// Its frame was copied since, and another one may be mapped in its place; by whom.
    pub(super) copied: Option<String>,
    /// Operations that have begun since and not ended.
    pub(super) older_than: Vec<OperationId>,
    /// Another frame has been mapped in this one's place since.
    pub(super) outdated: bool,
}

impl Translation {
    pub(super) fn frame(&self) -> u64 {
        self.entry & FRAME
    }

    /// Whether there is a use to which it may not be put any more, perhaps.
    pub(super) fn is_suspect(&self) -> bool {
        self.dead.is_some() || self.dead_for_stores.is_some() || self.copied.is_some() || self.outdated
    }

    fn state(&self) -> Digest {
        let flags = u64::from(self.dead.is_some())
            | u64::from(self.dead_for_stores.is_some()) << 1
            | u64::from(self.copied.is_some()) << 2
            | u64::from(self.outdated) << 3
            | u64::from(self.large) << 4;
        let digest = Digest::EMPTY.with(self.root).with(self.entry).with(flags);
        self.older_than.iter().fold(digest, |digest, operation| digest.with(operation.number()))
    }
}

/// A table on the way to translations.
#[derive(Clone, Debug)]
pub(super) struct Upper {
    /// The root of the space that it is of.
    pub(super) root: u64,
    /// The root that it was found from.
    pub(super) walked: u64,
    /// Its address.
    pub(super) table: u64,
    /// Who freed it, if it has been.
    pub(super) freed: Option<String>,
    /// Why what is found through it may not be used, in words: it maps other addresses now.
    pub(super) moved: Option<String>,
}

/// A CPU's caches.
#[derive(Debug, Default)]
pub(super) struct Caches {
    /// The root of the space that is loaded; 0 is the kernel's, which maps nothing here.
    pub(super) root: u64,
    /// The root that is walked from: that, or one that the CPU has for itself.
    pub(super) walked: u64,
    /// The tag under which is cached.
    pub(super) tag: u16,
    /// Who freed the root, if it has been.
    pub(super) root_freed: Option<String>,
    /// By tag and page.
    pub(super) translations: BTreeMap<(u16, u64), Translation>,
    /// By tag, level of the table (0 is the leaf) and address divided by the reach of a table of that level.
    pub(super) uppers: BTreeMap<(u16, usize, u64), Upper>,
}

impl Caches {
    /// The translation of a page under the present tag.
    pub(super) fn translation(&mut self, page: u64) -> Option<&mut Translation> {
        self.translations.get_mut(&(self.tag, page))
    }

    /// Whether there is a translation of a page under the present tag, and whether there is a way to its table.
    pub(super) fn knows(&self, page: u64) -> (bool, bool) {
        let translation = self.translations.contains_key(&(self.tag, page));
        (translation, self.uppers.contains_key(&(self.tag, 0, page / TABLE_REACH)))
    }

    /// Loses a page's translation, and nothing else.
    pub(super) fn forget_page(&mut self, page: u64) {
        self.drop_translation(Some(self.tag), page);
    }

    /// Whether a page's translation under the present tag is a piece of a large one.
    pub(super) fn is_large(&self, page: u64) -> bool {
        self.translations.get(&(self.tag, page)).is_some_and(|translation| translation.large)
    }

    /// Whether anything of the other size is cached for the large page around this one.
    pub(super) fn has_other_size(&self, page: u64, large: bool) -> bool {
        self.translations.iter().any(|((tag, other), translation)| {
            *tag == self.tag && other / TABLE_REACH == page / TABLE_REACH && translation.large != large
        })
    }

    /// Drops a page's translation, and all of the large page that it is part of.
    fn drop_translation(&mut self, tag: Option<u16>, page: u64) {
        self.translations.retain(|(other, cached), translation| {
            let is_in_it = translation.large && *cached / TABLE_REACH == page / TABLE_REACH;
            tag.is_some_and(|tag| tag != *other) || !(*cached == page || is_in_it)
        });
    }

    /// Loses the way to a page's table, and nothing else.
    pub(super) fn forget_table(&mut self, page: u64) {
        self.uppers.remove(&(self.tag, 0, page / TABLE_REACH));
    }

    /// Drops a page's translation, and all upper levels under the tag.
    pub(super) fn drop_page(&mut self, address: u64) {
        self.drop_page_under(Some(self.tag), address);
    }

    /// Drops everything under a tag.
    pub(super) fn drop_tag(&mut self, tag: u16) {
        self.drop_all_under(Some(tag));
    }

    /// `drop_page`, under any tag or under all.
    pub(super) fn drop_page_under(&mut self, tag: Option<u16>, address: u64) {
        let page = address & !(PAGE_SIZE - 1);
        let is_meant = |other: u16| tag.is_none_or(|tag| tag == other);
        self.drop_translation(tag, page);
        self.uppers.retain(|key, _| !is_meant(key.0));
    }

    /// `drop_tag`, for any tag or for all.
    pub(super) fn drop_all_under(&mut self, tag: Option<u16>) {
        let is_meant = |other: u16| tag.is_none_or(|tag| tag == other);
        self.translations.retain(|key, _| !is_meant(key.0));
        self.uppers.retain(|key, _| !is_meant(key.0));
    }

    pub(super) fn state(&self) -> Digest {
        let mut digest = Digest::EMPTY.with(self.root).with(self.walked).with(u64::from(self.tag));
        digest = digest.with(u64::from(self.root_freed.is_some()));
        for ((tag, page), translation) in &self.translations {
            digest = digest.with(u64::from(*tag)).with(*page).with(translation.state().number());
        }
        for ((tag, level, reach), upper) in &self.uppers {
            let place = u64::from(*tag) | (*level as u64) << 16;
            let flags = u64::from(upper.freed.is_some()) | u64::from(upper.moved.is_some()) << 1;
            digest = digest.with(place).with(*reach).with(upper.root).with(upper.table | flags);
        }
        digest
    }

    /// In a few words, for the reader of a schedule.
    pub(super) fn describe(&self) -> String {
        let translations = self.translations.iter().map(|((tag, page), translation)| {
            let entry = translation.entry;
            let rights = if entry & WRITABLE != 0 { "w" } else { "r" };
            let dirty = if entry & DIRTY != 0 { "d" } else { "" };
            let stale = if translation.dead.is_some() { "!" } else { "" };
            let tag = if *tag <= 1 { String::new() } else { format!("#{tag}:") };
            format!("{tag}{page:x}->{:x}{rights}{dirty}{stale}", translation.frame() >> 12)
        });
        let uppers = self.uppers.iter().filter(|(key, _)| key.1 == 0).map(|((_, _, _), upper)| {
            let stale = if upper.freed.is_some() || upper.moved.is_some() { "!" } else { "" };
            format!("({:x}{stale})", upper.table >> 12)
        });
        let words: Vec<_> = translations.chain(uppers).collect();
        let root = if self.root == 0 { "-".to_owned() } else { format!("@{:x}", self.root >> 12) };
        format!("{root}[{}]", words.join(" "))
    }
}
