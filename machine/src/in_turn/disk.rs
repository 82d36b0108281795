//! A disk for tests: what it is asked to carry is carried when somebody waits, so that a test decides what comes between.
//!
//! Whoever waits for one transfer has all of them carried, in the order in which they were begun. A disk made with
//! [`prompt`](TurnDisk::prompt) carries at once. What was begun, and how often each page has come in, is there to be asked for.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use memory::{Direction, FrameRef, Identity, MemoryObject, PAGE_SIZE, Store, StoreFailed, Transfer};

use super::TurnEnvironment;

/// Pages that one transfer carries at most.
const MOST: u64 = 8;

type Hook = Box<dyn FnOnce() + Send>;

/// The disk.
pub struct TurnDisk {
    bytes: Mutex<Vec<u8>>,
    waiting: Mutex<Vec<Waiting>>,
    begun: Mutex<Vec<(Direction, Range<u64>)>>,
    /// By page: how often it was to come in.
    asked_for: Mutex<Vec<u64>>,
    is_prompt: bool,
    is_broken: AtomicBool,
    on_begin: Mutex<Option<(Direction, Hook)>>,
}

struct Waiting {
    direction: Direction,
    first: u64,
    frames: Vec<FrameRef<TurnEnvironment>>,
    transfer: Arc<Transfer>,
}

impl TurnDisk {
    /// A disk with these contents. The last page may be a part of one.
    pub fn new(bytes: Vec<u8>) -> Arc<Self> {
        Self::with(bytes, false)
    }

    /// A disk that carries at once, whose pages begin with these words.
    pub fn prompt(words: Range<u64>) -> Arc<Self> {
        let page = |word: u64| {
            let mut page = vec![0; PAGE_SIZE as usize];
            page[..8].copy_from_slice(&word.to_ne_bytes());
            page
        };
        Self::with(words.flat_map(page).collect(), true)
    }

    fn with(bytes: Vec<u8>, is_prompt: bool) -> Arc<Self> {
        let pages = bytes.len().div_ceil(PAGE_SIZE as usize);
        Arc::new(Self {
            bytes: Mutex::new(bytes),
            waiting: Mutex::default(),
            begun: Mutex::default(),
            asked_for: Mutex::new(vec![0; pages]),
            is_prompt,
            is_broken: AtomicBool::new(false),
            on_begin: Mutex::new(None),
        })
    }

    /// The object whose pages it has.
    pub fn object(self: &Arc<Self>, environment: &TurnEnvironment) -> Arc<MemoryObject<TurnEnvironment>> {
        let identity = Identity { device: 254, inode: 0 };
        let size = self.bytes.lock().unwrap().len() as u64;
        Arc::new(MemoryObject::with_store(environment, identity, "disk".into(), size, self.clone()))
    }

    /// The first word of a page.
    pub fn word(&self, page: u64) -> u64 {
        let at = (page * PAGE_SIZE) as usize;
        u64::from_ne_bytes(self.bytes.lock().unwrap()[at..at + 8].try_into().unwrap())
    }

    /// The pages of each transfer in that direction that was begun since the last time. Those in the other one are forgotten.
    pub fn take_begun(&self, direction: Direction) -> Vec<Range<u64>> {
        let begun = std::mem::take(&mut *self.begun.lock().unwrap());
        begun.into_iter().filter(|(begun, _)| *begun == direction).map(|(_, pages)| pages).collect()
    }

    /// How often pages of these were to come in since the beginning.
    pub fn asked_for(&self, pages: Range<u64>) -> u64 {
        self.asked_for.lock().unwrap()[pages.start as usize..pages.end as usize].iter().sum()
    }

    /// From now on transfers fail, or do not.
    pub fn set_broken(&self, is_broken: bool) {
        self.is_broken.store(is_broken, Relaxed);
    }

    /// Calls this once, when the next transfer in that direction has begun.
    pub fn on_begin(&self, direction: Direction, hook: impl FnOnce() + Send + 'static) {
        *self.on_begin.lock().unwrap() = Some((direction, Box::new(hook)));
    }

    fn carry(&self, Waiting { direction, first, frames, .. }: &Waiting) {
        let mut bytes = self.bytes.lock().unwrap();
        for (page, frame) in (*first..).zip(frames) {
            let start = (page * PAGE_SIZE) as usize;
            let end = bytes.len().min(start + PAGE_SIZE as usize);
            match direction {
                Direction::In => frame.write(0, &bytes[start..end]),
                Direction::Out => frame.read(0, &mut bytes[start..end]),
            }
        }
    }

    fn carry_all(&self) {
        for waiting in std::mem::take(&mut *self.waiting.lock().unwrap()) {
            let is_broken = self.is_broken.load(Relaxed);
            if !is_broken {
                self.carry(&waiting);
            }
            let Waiting { frames, transfer, .. } = waiting;
            // The disk lets go of them first.
            drop(frames);
            transfer.end(if is_broken { Err(StoreFailed) } else { Ok(()) });
        }
    }
}

impl Store<TurnEnvironment> for TurnDisk {
    fn most_pages(&self) -> u64 {
        MOST
    }

    fn begin(
        &self,
        direction: Direction,
        first: u64,
        frames: Vec<FrameRef<TurnEnvironment>>,
        transfer: &Arc<Transfer>,
    ) {
        let count = frames.len() as u64;
        assert!((1..=MOST).contains(&count), "a transfer of {count} pages");
        let pages = first..first + count;
        if direction == Direction::In {
            let mut asked_for = self.asked_for.lock().unwrap();
            asked_for[first as usize..][..count as usize].iter_mut().for_each(|times| *times += 1);
        }
        self.begun.lock().unwrap().push((direction, pages));
        self.waiting.lock().unwrap().push(Waiting { direction, first, frames, transfer: transfer.clone() });
        let hook = self.on_begin.lock().unwrap().take_if(|(way, _)| *way == direction);
        if let Some((_, hook)) = hook {
            hook();
        }
        if self.is_prompt {
            self.carry_all();
        }
    }

    fn wait(&self, transfer: &Transfer) -> Result<(), StoreFailed> {
        self.carry_all();
        transfer.outcome().expect("what is waited for was begun")
    }

    fn make_lasting(&self) -> Result<(), StoreFailed> {
        Ok(())
    }
}
