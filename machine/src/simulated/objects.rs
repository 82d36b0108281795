//! Objects on this machine: what programs map of them, and what a kernel's own threads do with their pages.

use std::sync::Arc;

use memory::{
    AreaFlags, Environment, FrameRef, Identity, MapRequest, MemoryObject, PAGE_SIZE, PageRange, Place, Rights,
};

use super::machine::{SimulatedEnvironment, SimulatedObject};
use super::operation::Promise;
use super::user::READ_WRITE;

/// What objects start as. Its pages can be made again.
static ORIGINAL: [u8; 2 * PAGE_SIZE as usize] = [0; 2 * PAGE_SIZE as usize];

fn first_word(frame: &FrameRef<SimulatedEnvironment>) -> u64 {
    let mut bytes = [0; 8];
    frame.read(0, &mut bytes);
    u64::from_ne_bytes(bytes)
}

impl SimulatedEnvironment {
    /// An object of two pages; says its number.
    pub(super) fn new_object(&self) -> usize {
        let mut hidden = self.0.hidden();
        let inode = hidden.objects.len();
        let identity = Identity { device: 0, inode: inode as u64 };
        let object = MemoryObject::from_bytes(self, identity, String::new(), &ORIGINAL);
        hidden.objects.push(Arc::new(object));
        inode
    }

    fn object(&self, number: usize) -> Arc<SimulatedObject> {
        self.0.hidden().objects[number].clone()
    }

    /// Maps one page of an object shared, or else private.
    pub(super) fn map_object(&self, number: usize, page: u64, range: PageRange, is_shared: bool) {
        self.map_object_with(number, page, range, READ_WRITE, is_shared);
    }

    /// As `map_object`, with these rights.
    pub(super) fn map_object_with(
        &self,
        number: usize,
        page: u64,
        range: PageRange,
        rights: Rights,
        is_shared: bool,
    ) {
        let (space, object) = (self.loaded(), self.object(number));
        let request = MapRequest {
            place: Place::Fixed(range.start()),
            length: range.length(),
            rights,
            may: Rights::all(),
            flags: if is_shared { AreaFlags::SHARED } else { AreaFlags::empty() },
            object: Some((object, page)),
            populate: false,
        };
        let mapped = self.call("mmap", &space, range, Promise::Removal, || space.map(request));
        mapped.expect("a scenario maps what can be mapped");
    }

    /// `ftruncate` to nothing. `space` has all of it mapped at `range`.
    pub(super) fn truncate(&self, number: usize, space: usize, range: PageRange) {
        let (object, space) = (self.object(number), self.space(space));
        self.call("ftruncate", &space, range, Promise::Removal, || {
            object.truncate(0);
            object.forget_mapped(0);
        });
    }

    /// `ftruncate` to the size that it had at first.
    pub(super) fn grow(&self, number: usize) {
        self.object(number).truncate(ORIGINAL.len() as u64);
    }

    /// `fallocate(FALLOC_FL_PUNCH_HOLE)` of a page, which space 0 has mapped at `range`.
    pub(super) fn punch(&self, number: usize, page: u64, range: PageRange) {
        let (object, space) = (self.object(number), self.space(0));
        let punched =
            self.call("fallocate", &space, range, Promise::Removal, || object.punch(page..page + 1));
        punched.expect("there is memory for the page of zeroes");
    }

    /// The first word of a page, as `read` has it.
    pub(super) fn read_object(&self, number: usize, page: u64) -> u64 {
        let mut bytes = [0; 8];
        self.object(number).read_at(page * PAGE_SIZE, &mut bytes);
        u64::from_ne_bytes(bytes)
    }

    /// `write` to the first word of a page.
    pub(super) fn write_object(&self, number: usize, page: u64, value: u64) {
        let written = self.object(number).write_at(page * PAGE_SIZE, &value.to_ne_bytes());
        assert_eq!(written, Ok(8), "there is memory for the page");
    }

    /// A kernel thread writes out what is dirty of an object.
    pub(super) fn write_out(&self, number: usize) {
        let object = self.object(number);
        self.as_agent(|| {
            object.clean(0..2, |page, frame| {
                self.0.hidden().disk.insert((number, page), first_word(frame));
            });
        });
    }

    /// The first word of a page as it was written out last.
    pub(super) fn written_out(&self, number: usize, page: u64) -> Option<u64> {
        self.0.hidden().disk.get(&(number, page)).copied()
    }

    /// A kernel thread takes back what it can of an object.
    pub(super) fn reclaim(&self, number: usize) {
        let object = self.object(number);
        self.as_agent(|| object.reclaim(0..2));
    }

    /// A kernel thread takes pages of an object out of all entries, and lets the flush wait.
    pub(super) fn put_by(&self, number: usize) {
        let object = self.object(number);
        self.as_agent(|| object.put_by(0..2));
    }

    /// A kernel thread needs the frames of pages that wait.
    pub(super) fn release_waiting(&self) {
        self.as_agent(|| self.waiting().release(self, usize::MAX));
    }

    /// A kernel thread would take what it gets for nothing.
    pub(super) fn redeem_waiting(&self) {
        self.as_agent(|| self.waiting().release(self, 0));
    }

    /// A kernel thread looks which pages of an object have been used, and takes the marks of that.
    pub(super) fn age(&self, number: usize) {
        let object = self.object(number);
        self.as_agent(|| object.age(0..2));
    }

    /// The end of a run: what nothing says is dirty must have been written out.
    pub(super) fn check_objects(&self) -> Result<(), String> {
        let count = self.0.hidden().objects.len();
        (0..count).try_for_each(|number| {
            self.write_out(number);
            (0..2).try_for_each(|page| {
                let mut bytes = [0; 8];
                self.object(number).read_at(page * PAGE_SIZE, &mut bytes);
                let (found, written) = (u64::from_ne_bytes(bytes), self.0.hidden().disk.get(&(number, page)).copied());
                if found == written.unwrap_or(0) {
                    return Ok(());
                }
                Err(format!(
                    "D2, write integrity: page {page} of an object holds {found}, {written:?} was written out, and nothing says that it is dirty"
                ))
            })
        })
    }

    /// The end of a run: nothing maps them any more.
    pub(super) fn forget_objects(&self) {
        let objects = std::mem::take(&mut self.0.hidden().objects);
        drop(objects);
    }
}
