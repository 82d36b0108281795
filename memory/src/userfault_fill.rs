//! Pages that a monitor fills in where they are missing: `UFFDIO_COPY`, `UFFDIO_ZEROPAGE`, `UFFDIO_CONTINUE`.
//!
//! A page is there with all its contents, or not at all: the frame is filled while nobody else can find it, and installed in an empty entry
//! under its table's lock. So nothing is flushed. What the contents are read from may itself fault and wait, so no lock is held meanwhile. The area may
//! be another one afterwards: everything is looked at again under the lock under which the page is installed.

use coherence::Cause;

use crate::address_space::{AddressSpace, Layout};
use crate::area::{Area, AreaFlags, Source, object_page};
use crate::backing::{BackingError, BackingRef};
use crate::entry::{Bits, Entry};
use crate::environment::Environment;
use crate::error::Error;
use crate::frame::FrameRef;
use crate::mistake::{Mistake, is_made};
use crate::monitor::Monitor;
use crate::object::MemoryObject;
use crate::range::{PAGE_SIZE, PageRange};

/// What pages are filled with.
enum Content<E: Environment> {
    /// A frame that is ready.
    Frame(FrameRef<E>),
    Zeroes,
    /// What their object has there.
    Own,
}

/// A page that is ready to be installed.
struct Ready<E: Environment> {
    /// `None` for the page of zeroes.
    frame: Option<FrameRef<E>>,
    /// Whether the mapping may write it.
    is_own: bool,
}

impl<E: Environment> AddressSpace<E> {
    /// Fills pages in; says how many bytes, which are fewer than wanted if an error was met later. `read` fills a frame with what belongs at a
    /// distance from the start, and may sleep. With `guarded`, stores to them are told before they are made.
    ///
    /// # Errors
    /// Those of the first page: [`Error::NotFound`] if the range is not all in one area that is watched, [`Error::Again`] while the
    /// monitor has not heard of a change, [`Error::Exists`] if something is there, [`Error::Invalid`] for guarded pages where stores are not
    /// watched, [`Error::NotMapped`] behind the end of an object, or from `read`; [`Error::Ended`], [`Error::OutOfMemory`].
    pub fn fill_with_copies(
        &self,
        monitor: &E::Monitor,
        range: PageRange,
        guarded: bool,
        mut read: impl FnMut(u64, &FrameRef<E>) -> Result<(), Error>,
    ) -> Result<u64, Error> {
        // Before anything is read: a bad place is told before a bad source.
        self.watched_area(&self.shared(), monitor, range, guarded)?;
        self.fill(monitor, range, guarded, |distance| {
            let frame = FrameRef::allocate(&self.environment)?;
            read(distance, &frame)?;
            Ok(Content::Frame(frame))
        })
    }

    /// Fills zeroes in; else as [`AddressSpace::fill_with_copies`].
    ///
    /// # Errors
    /// As there.
    pub fn fill_with_zeroes(&self, monitor: &E::Monitor, range: PageRange) -> Result<u64, Error> {
        self.fill(monitor, range, false, |_| Ok(Content::Zeroes))
    }

    /// Maps the pages that the area's object has there; else as [`AddressSpace::fill_with_copies`].
    ///
    /// # Errors
    /// As there, and [`Error::Invalid`] where there is no object and behind its end, [`Error::NotMapped`] where it has no page.
    pub fn fill_with_own(&self, monitor: &E::Monitor, range: PageRange) -> Result<u64, Error> {
        self.fill(monitor, range, false, |_| Ok(Content::Own))
    }

    fn fill(
        &self,
        monitor: &E::Monitor,
        range: PageRange,
        guarded: bool,
        mut content: impl FnMut(u64) -> Result<Content<E>, Error>,
    ) -> Result<u64, Error> {
        let mut done = 0;
        while done < range.length() {
            let filled =
                content(done).and_then(|content| self.fill_page(monitor, range, done, (&content, guarded)));
            match filled {
                Ok(()) => done += PAGE_SIZE,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
            self.environment.yield_if_needed();
        }
        Ok(done)
    }

    fn fill_page(
        &self,
        monitor: &E::Monitor,
        range: PageRange,
        distance: u64,
        (content, guarded): (&Content<E>, bool),
    ) -> Result<(), Error> {
        let page = range.start() + distance;
        loop {
            let layout = self.shared();
            let area = if is_made(Mistake::FilledWithoutLookingAgain) {
                layout.areas.overlapping(range).next().ok_or(Error::NotFound)?
            } else {
                self.watched_area(&layout, monitor, range, guarded)?
            };
            let object = area.backing().and_then(|backing| backing.object());
            let cuts = object.map(MemoryObject::cuts);
            let ready = self.ready(area, page, content)?;
            let Some(mut leaf) = layout.tables.leaf_or_create(page)? else { return Err(Error::Exists) };
            let there = leaf.entry(page);
            // Linux takes a guard for a page, too, where it would map the page of zeroes. Else what is filled in replaces it.
            if there.holds_page() || there.is_swapped() || (ready.frame.is_none() && !there.is_empty()) {
                return Err(Error::Exists);
            }
            if object.map(MemoryObject::cuts) != cuts {
                // As in `bring_in`: the page may have been cut off since it was got.
                continue;
            }
            let mut entry = self.entry_of(area, &ready);
            if guarded {
                entry = entry.guarded();
            }
            if !area.is_shared() {
                // As in `bring_in`: a batch may have taken another page out here.
                self.environment.coherence().settle(self.space(), Cause::Reclaim);
            }
            if ready.is_own && !area.is_shared() {
                area.note_private_page();
            }
            // No flush: the entry was not present.
            leaf.replace(page, entry);
            if let Some(frame) = ready.frame {
                frame.into_number();
                self.note_resident(1);
            }
            return Ok(());
        }
    }

    fn entry_of(&self, area: &Area<E>, ready: &Ready<E>) -> Entry {
        let number = ready.frame.as_ref().map_or(self.environment.frames().zero_frame(), FrameRef::number);
        let entry = Entry::page(number, area.rights(), ready.is_own);
        // What was filled in counts as stored; nobody marks the page of zeroes.
        if ready.is_own { entry.with(Bits::DIRTY) } else { entry }
    }

    /// Gets the page that the content makes in this area.
    fn ready(&self, area: &Area<E>, page: u64, content: &Content<E>) -> Result<Ready<E>, Error> {
        let is_shared = area.is_shared();
        let Source::Object { backing, distance } = &area.source else {
            return match content {
                Content::Frame(frame) => Ok(Ready { frame: Some(frame.clone()), is_own: true }),
                Content::Zeroes => Ok(Ready { frame: None, is_own: false }),
                Content::Own => Err(Error::Invalid),
            };
        };
        let index = object_page(page, *distance);
        let is_inside = index < backing.size().div_ceil(PAGE_SIZE);
        match content {
            Content::Own if !is_inside => Err(Error::Invalid),
            _ if !is_inside => Err(Error::NotMapped),
            Content::Own => {
                let has_page = backing.object().is_some_and(|object| object.has_page(index));
                let frame = if has_page { Some(backing.frame(index).map_err(error_of)?) } else { None };
                Ok(Ready { frame: Some(frame.ok_or(Error::NotMapped)?), is_own: is_shared })
            }
            Content::Frame(frame) if is_shared => provided(backing, index, frame),
            Content::Zeroes if is_shared => provided(backing, index, &FrameRef::zeroed(&self.environment)?),
            // A private page of its own; the hole in the object stays.
            Content::Frame(frame) => Ok(Ready { frame: Some(frame.clone()), is_own: true }),
            Content::Zeroes => Ok(Ready { frame: None, is_own: false }),
        }
    }

    /// The one area that holds a range and is watched.
    pub(crate) fn watched_area<'a>(
        &self,
        layout: &'a Layout<E>,
        monitor: &E::Monitor,
        range: PageRange,
        guarded: bool,
    ) -> Result<&'a Area<E>, Error> {
        if layout.has_ended {
            return Err(Error::Ended);
        }
        if monitor.is_changing() {
            return Err(Error::Again);
        }
        let area = layout.areas.find(range.start()).ok_or(Error::NotFound)?;
        if range.end() > area.end() || !area.is_watched() {
            return Err(Error::NotFound);
        }
        if guarded && !area.has_flag(AreaFlags::WATCHED_STORES) {
            return Err(Error::Invalid);
        }
        Ok(area)
    }
}

/// The frame as the object's page from now on.
fn provided<E: Environment>(
    backing: &BackingRef<E>,
    index: u64,
    frame: &FrameRef<E>,
) -> Result<Ready<E>, Error> {
    let object = backing.object().ok_or(Error::Invalid)?;
    object.provide(index, frame)?;
    Ok(Ready { frame: Some(frame.clone()), is_own: true })
}

fn error_of(error: BackingError) -> Error {
    match error {
        // Cut off since it was looked at.
        BackingError::PastEnd | BackingError::NotYet | BackingError::Failed => Error::Invalid,
        BackingError::OutOfMemory => Error::OutOfMemory,
    }
}
