//! Entries: the names in the tree.
//!
//! An entry ties a name in a directory to an inode. A file has as many entries as it has hard links; a
//! directory has exactly one. The directory's list holds its children strongly and each child holds its
//! parent strongly; removing a name cuts the first link, so what is removed goes away with its last user,
//! and until then it still knows what its path was. A rename changes name and parent in place: open
//! files and working directories follow.

use super::{Content, Directory, Inode};
use crate::sync::SpinLock;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

pub(crate) struct Entry {
    inode: Arc<Inode>,
    place: SpinLock<Place>,
}

struct Place {
    /// None for the root of the tree and for files that were never in it.
    parent: Option<Arc<Entry>>,
    name: Box<[u8]>,
    removed: bool,
}

impl Entry {
    pub(crate) fn new(parent: Option<Arc<Entry>>, name: &[u8], inode: Arc<Inode>) -> Arc<Self> {
        Arc::new(Self { inode, place: SpinLock::new(Place { parent, name: name.into(), removed: false }) })
    }

    /// For a file that has no place in the tree; `name` is what `/proc/PID/fd` shows.
    pub(crate) fn unplaced(name: &[u8], inode: Arc<Inode>) -> Arc<Self> {
        Self::new(None, name, inode)
    }

    pub(crate) fn inode(&self) -> &Arc<Inode> {
        &self.inode
    }

    pub(crate) fn parent(&self) -> Option<Arc<Entry>> {
        self.place.lock().parent.clone()
    }

    pub(crate) fn name(&self) -> Box<[u8]> {
        self.place.lock().name.clone()
    }

    /// Whether the name has been taken out of its directory.
    pub(crate) fn is_removed(&self) -> bool {
        self.place.lock().removed
    }

    pub(super) fn mark_removed(&self) {
        self.place.lock().removed = true;
    }

    pub(super) fn move_to(&self, parent: Arc<Entry>, name: &[u8]) {
        let name = name.into();
        let mut place = self.place.lock();
        let former = (place.parent.replace(parent), core::mem::replace(&mut place.name, name));
        drop(place);
        drop(former);
    }

    /// The directory in this entry, if it is one.
    pub(crate) fn directory(&self) -> Option<&Directory> {
        match self.inode.content() {
            Content::Directory(directory) => Some(directory),
            _ => None,
        }
    }

    /// Whether `self` is `ancestor` or lies below it.
    pub(crate) fn is_below(self: &Arc<Self>, ancestor: &Arc<Entry>) -> bool {
        let mut current = Some(self.clone());
        while let Some(entry) = current {
            if Arc::ptr_eq(&entry, ancestor) {
                return true;
            }
            current = entry.parent();
        }
        false
    }

    /// The path from `root`, or None if the entry is not below it.
    pub(crate) fn path_from(self: &Arc<Self>, root: &Arc<Entry>) -> Option<Vec<u8>> {
        let mut names = Vec::new();
        let mut current = self.clone();
        while !Arc::ptr_eq(&current, root) {
            let parent = current.parent()?;
            names.push(current.name());
            current = parent;
        }
        let mut path = Vec::new();
        for name in names.iter().rev() {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        if path.is_empty() {
            path.push(b'/');
        }
        Some(path)
    }

    /// What the links below `/proc` show: the path, with ` (deleted)` after it if the name is gone.
    pub(crate) fn shown_path(self: &Arc<Self>, root: &Arc<Entry>) -> Vec<u8> {
        let mut path = self.path_from(root).unwrap_or_else(|| self.name().into_vec());
        if self.is_removed() {
            path.extend_from_slice(b" (deleted)");
        }
        path
    }
}

impl Drop for Entry {
    /// Takes a chain of removed parents apart one by one: dropping it link by link inside each other would
    /// take a stack as deep as the chain, whose length a program chooses.
    fn drop(&mut self) {
        let mut parent = self.place.get_mut().parent.take();
        while let Some(mut entry) = parent.and_then(Arc::into_inner) {
            parent = entry.place.get_mut().parent.take();
        }
    }
}
