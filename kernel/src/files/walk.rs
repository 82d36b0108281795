//! From a path to a place in the tree.
//!
//! A walk goes from directory to directory, one name at a time, without recursion: the target of a symbolic
//! link is put in front of what is still to be walked. It ends at the last name, which may or may not exist;
//! the caller decides which of the two it needs. Forty links end the walk with ELOOP.

use super::{Access, Caller, Content, Context, Entry};
use crate::syscall::Errno;
use alloc::sync::Arc;
use alloc::vec::Vec;

const MOST_LINKS: usize = 40;
/// Bytes in one name, without the terminating zero.
pub(crate) const MOST_NAME: usize = 255;
/// Bytes in a path, with the terminating zero.
pub(crate) const MOST_PATH: usize = 4096;

/// What a walk starts from.
#[derive(Clone)]
pub(crate) struct Walk {
    root: Arc<Entry>,
    start: Arc<Entry>,
    caller: Caller,
    at_last: AtLast,
}

/// What a walk does about the last name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AtLast {
    /// Follows it if it is a link.
    Follow,
    /// Follows it only if a slash stands behind it.
    Stop,
    /// Looks it up and leaves the rest to the caller, who is going to make or remove it.
    Look,
}

/// The last name of a path.
pub(crate) enum Last {
    Name(Vec<u8>),
    /// The path ends in `.` or is the root itself.
    Dot,
    DotDot,
}

/// Where a walk ended.
pub(crate) struct Place {
    /// The directory in which the last name was looked up.
    pub(crate) parent: Arc<Entry>,
    pub(crate) last: Last,
    /// What has the name, if anything does.
    pub(crate) entry: Option<Arc<Entry>>,
    /// The path ended in a slash: only a directory will do.
    pub(crate) slash: bool,
}

impl Place {
    /// What is there: ENOENT if nothing.
    pub(crate) fn existing(self) -> Result<Arc<Entry>, Errno> {
        self.entry.ok_or(Errno::ENOENT)
    }
}

impl Walk {
    /// Starts at the working directory.
    pub(crate) fn new(context: &Context, caller: Caller) -> Self {
        Self { root: context.root(), start: context.working(), caller, at_last: AtLast::Follow }
    }

    /// Starts relative paths at `start` instead.
    pub(crate) fn from(self, start: Arc<Entry>) -> Self {
        Self { start, ..self }
    }

    /// Stops at a symbolic link in the last place instead of following it.
    pub(crate) fn follow_last(self, follow_last: bool) -> Self {
        Self { at_last: if follow_last { AtLast::Follow } else { AtLast::Stop }, ..self }
    }

    /// For calls that change names: whatever has the last name is meant itself, even with a slash behind it.
    pub(crate) fn for_change(self) -> Self {
        Self { at_last: AtLast::Look, ..self }
    }

    /// Checks permissions as `caller` instead.
    pub(crate) fn with_caller(self, caller: Caller) -> Self {
        Self { caller, ..self }
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Walks to something that exists.
    pub(crate) fn find(&self, path: &[u8]) -> Result<Arc<Entry>, Errno> {
        self.place(path)?.existing()
    }

    /// Walks to the last name of `path`.
    pub(crate) fn place(&self, path: &[u8]) -> Result<Place, Errno> {
        if path.is_empty() {
            return Err(Errno::ENOENT);
        }
        let mut current = if path[0] == b'/' { self.root.clone() } else { self.start.clone() };
        let mut ahead = Ahead::new(path);
        let mut links = 0;
        let mut slash = false;
        loop {
            let Some(name) = ahead.next_name()? else {
                // Nothing but slashes, or a link to such a path.
                current.inode().directory()?;
                return Ok(Place { entry: Some(current.clone()), parent: current, last: Last::Dot, slash: true });
            };
            let is_last = ahead.is_empty();
            slash = slash || (is_last && ahead.ended_in_slash);
            current.inode().directory()?;
            current.inode().check(&self.caller, Access::SEARCH)?;
            let (last, found) = self.step(&current, name)?;
            if let Some(entry) = &found
                && entry.inode().is_symlink()
                && (!is_last || self.follows_last(slash))
            {
                links += 1;
                if links > MOST_LINKS {
                    return Err(Errno::ELOOP);
                }
                match Target::of(entry)? {
                    Target::Path(target) => {
                        if target.is_empty() {
                            return Err(Errno::ENOENT);
                        }
                        if target[0] == b'/' {
                            current = self.root.clone();
                        }
                        ahead.put_in_front(target);
                        continue;
                    }
                    Target::Entry(target) if is_last => {
                        return self.end(Place { parent: current, last, entry: Some(target), slash });
                    }
                    Target::Entry(target) => {
                        current = target;
                        continue;
                    }
                }
            }
            if is_last {
                return self.end(Place { parent: current, last, entry: found, slash });
            }
            current = found.ok_or(Errno::ENOENT)?;
        }
    }

    fn follows_last(&self, slash: bool) -> bool {
        match self.at_last {
            AtLast::Follow => true,
            AtLast::Stop => slash,
            AtLast::Look => false,
        }
    }

    fn end(&self, place: Place) -> Result<Place, Errno> {
        if let Some(entry) = &place.entry
            && place.slash
            && self.at_last != AtLast::Look
        {
            entry.inode().directory()?;
        }
        Ok(place)
    }

    /// Looks one name up.
    fn step(&self, current: &Arc<Entry>, name: Vec<u8>) -> Result<(Last, Option<Arc<Entry>>), Errno> {
        match name.as_slice() {
            b"." => Ok((Last::Dot, Some(current.clone()))),
            b".." if Arc::ptr_eq(current, &self.root) => Ok((Last::DotDot, Some(current.clone()))),
            b".." => Ok((Last::DotDot, Some(current.parent().unwrap_or_else(|| current.clone())))),
            _ => {
                let found = current.inode().directory()?.find(current, &name);
                Ok((Last::Name(name), found))
            }
        }
    }
}

/// Where a link leads.
enum Target {
    Path(Vec<u8>),
    Entry(Arc<Entry>),
}

impl Target {
    fn of(link: &Entry) -> Result<Self, Errno> {
        match link.inode().content() {
            Content::Jump(jump) => Ok(Self::Entry(jump.target()?)),
            Content::Symlink(target) => Ok(Self::Path(target.to_vec())),
            Content::GeneratedLink(text) => Ok(Self::Path(text())),
            _ => Err(Errno::EINVAL),
        }
    }
}

/// What is still to be walked: the rest of the path on top of the rests that links interrupted.
struct Ahead {
    rests: Vec<(Vec<u8>, usize)>,
    /// Whether the outermost path ended in a slash after its last name.
    ended_in_slash: bool,
}

impl Ahead {
    fn new(path: &[u8]) -> Self {
        let mut ahead = Self { rests: Vec::new(), ended_in_slash: false };
        ahead.put_in_front(path.to_vec());
        ahead
    }

    fn put_in_front(&mut self, path: Vec<u8>) {
        self.rests.push((path, 0));
        self.skip_slashes();
    }

    /// Leaves the next name, if there is one, at the top.
    fn skip_slashes(&mut self) {
        while let Some((path, at)) = self.rests.last_mut() {
            let before = *at;
            while path.get(*at) == Some(&b'/') {
                *at += 1;
            }
            if *at < path.len() {
                return;
            }
            // A slash at the very end of a path, or of a link's target in last place, asks for a directory.
            self.ended_in_slash |= *at > before;
            self.rests.pop();
        }
    }

    fn is_empty(&self) -> bool {
        self.rests.is_empty()
    }

    fn next_name(&mut self) -> Result<Option<Vec<u8>>, Errno> {
        let Some((path, at)) = self.rests.last_mut() else { return Ok(None) };
        let rest = &path[*at..];
        let length = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
        if length > MOST_NAME {
            return Err(Errno::ENAMETOOLONG);
        }
        let name = rest[..length].to_vec();
        *at += length;
        self.ended_in_slash = false;
        self.skip_slashes();
        Ok(Some(name))
    }
}
