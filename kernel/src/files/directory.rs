//! Directories: a list of names that can be read while it changes.
//!
//! Each name gets a position that only ever grows. `getdents` goes on after the position where it stopped,
//! so a program that removes what it has read, as `rm -r` does, misses nothing and sees nothing twice.
//! Lookups take the list's lock alone. Changes are made under the tree's lock as well (see `tree`), so that
//! a change of two directories has no order to get wrong.

use super::{Entry, Inode};
use crate::sync::SpinLock;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Names that a directory has besides its list, made when somebody looks (the processes in `/proc`).
pub(crate) trait Listing: Send + Sync {
    fn find(&self, name: &[u8]) -> Option<Arc<Inode>>;
    /// The names with a number below 2^32 for each, in ascending order of these numbers.
    fn names(&self) -> Vec<(u32, Vec<u8>)>;
}

/// One name as `getdents` shows it.
pub(crate) struct Listed {
    /// Where the list goes on after this name.
    pub(crate) position: u64,
    pub(crate) name: Vec<u8>,
    pub(crate) inode: Arc<Inode>,
}

pub(crate) struct Directory {
    list: SpinLock<List>,
    listing: Option<Box<dyn Listing>>,
}

#[derive(Default)]
struct List {
    by_name: BTreeMap<Box<[u8]>, (u64, Arc<Entry>)>,
    by_position: BTreeMap<u64, Arc<Entry>>,
    last_position: u64,
}

/// Positions 1 and 2 are those of `.` and `..`.
const DOT_DOT: u64 = 2;
/// Positions of the names that a `Listing` adds start here.
const LISTED: u64 = 1 << 32;

impl Directory {
    pub(crate) fn new() -> Self {
        let list = List { last_position: DOT_DOT, ..List::default() };
        Self { list: SpinLock::new(list), listing: None }
    }

    pub(crate) fn with_listing(listing: Box<dyn Listing>) -> Self {
        Self { listing: Some(listing), ..Self::new() }
    }

    /// Looks a name up. `this` is the directory's own entry, the parent of what is found.
    pub(crate) fn find(&self, this: &Arc<Entry>, name: &[u8]) -> Option<Arc<Entry>> {
        if let Some((_, entry)) = self.list.lock().by_name.get(name) {
            return Some(entry.clone());
        }
        let inode = self.listing.as_ref()?.find(name)?;
        Some(Entry::new(Some(this.clone()), name, inode))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.lock().by_name.is_empty()
    }

    /// What `st_size` shows: something that grows with the number of names.
    pub(crate) fn size(&self) -> u64 {
        40 + 20 * self.list.lock().by_name.len() as u64
    }

    /// Adds an entry under `name`, in place of one that has the name already; that one is returned.
    pub(super) fn insert(&self, name: &[u8], entry: Arc<Entry>) -> Option<Arc<Entry>> {
        let mut list = self.list.lock();
        list.last_position += 1;
        let position = list.last_position;
        let former = list.by_name.insert(name.into(), (position, entry.clone()));
        list.by_position.insert(position, entry);
        let (position, former) = former?;
        list.by_position.remove(&position);
        Some(former)
    }

    pub(super) fn remove(&self, name: &[u8]) -> Option<Arc<Entry>> {
        let mut list = self.list.lock();
        let (position, entry) = list.by_name.remove(name)?;
        list.by_position.remove(&position);
        Some(entry)
    }

    /// Up to `most` names after `position`, which is 0 or that of a name returned before.
    pub(crate) fn list(&self, this: &Arc<Entry>, position: u64, most: usize) -> Vec<Listed> {
        let mut names = Vec::new();
        let above = this.parent().unwrap_or_else(|| this.clone());
        for (at, name, entry) in [(1, ".", this), (DOT_DOT, "..", &above)] {
            if position < at && names.len() < most {
                names.push(Listed { position: at, name: name.into(), inode: entry.inode().clone() });
            }
        }
        let room = most - names.len();
        let after = position.max(DOT_DOT) + 1;
        for (&position, entry) in self.list.lock().by_position.range(after..).take(room) {
            names.push(Listed { position, name: entry.name().into_vec(), inode: entry.inode().clone() });
        }
        if let Some(listing) = &self.listing {
            let room = most - names.len();
            let rest = listing.names().into_iter().filter(|(at, _)| LISTED + u64::from(*at) > position);
            let found = rest.filter_map(|(at, name)| {
                let inode = listing.find(&name)?;
                Some(Listed { position: LISTED + u64::from(at), name, inode })
            });
            names.extend(found.take(room));
        }
        names
    }
}
