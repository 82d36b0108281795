//! An address space in the model: what each page is. Areas are runs of pages that are alike.

use std::collections::BTreeMap;

use super::Page;

/// An address space.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Space {
    /// By page number.
    pub(crate) pages: BTreeMap<u64, Page>,
}

impl Space {
    pub(crate) fn remove(&mut self, first: u64, end: u64) {
        let gone: Vec<u64> = self.pages.range(first..end).map(|(page, _)| *page).collect();
        for page in gone {
            self.pages.remove(&page);
        }
    }

    /// Where the area of a mapped page begins: how far down its like goes, as Linux joins areas.
    pub(crate) fn area_start(&self, page: u64) -> u64 {
        let mut start = page;
        while start > 0 && self.are_alike(start - 1) {
            start -= 1;
        }
        start
    }

    /// Where the area of a mapped page ends: the page behind its last.
    pub(crate) fn area_end(&self, page: u64) -> u64 {
        let mut end = page + 1;
        while self.are_alike(end - 1) {
            end += 1;
        }
        end
    }

    /// Whether a page and the next one can be of one area.
    pub(crate) fn are_alike(&self, page: u64) -> bool {
        match (self.pages.get(&page), self.pages.get(&(page + 1))) {
            (Some(one), Some(next)) => one.continues_with(next),
            _ => false,
        }
    }
}
