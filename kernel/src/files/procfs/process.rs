//! Directories of processes and threads.
//!
//! An inode here remembers ids only, and looks the process up each time: a directory that somebody keeps open
//! does not keep the process, and what is asked after its end is ESRCH.

use super::super::directory::{Directory, Listing};
use super::super::filesystem::PROC;
use super::super::inode::{Content, Generated, Inode, Jump};
use super::super::{Caller, Description, Entry, ProcessFile, root};
use super::{process_memory, process_status};
use crate::process::{self, Process, Thread};
use crate::syscall::Errno;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A process, or one of its threads.
#[derive(Clone, Copy)]
pub(crate) struct Subject {
    pub(crate) process: u32,
    pub(crate) thread: u32,
    /// Reached through `task/`: numbers are of the thread alone where there is a difference.
    pub(crate) is_thread: bool,
}

impl Subject {
    pub(crate) fn process(&self) -> Result<Arc<Process>, Errno> {
        process::find_process(self.process).ok_or(Errno::ESRCH)
    }

    /// The thread, or whichever still lives for a process.
    pub(crate) fn thread(&self) -> Result<Arc<Thread>, Errno> {
        let process = self.process()?;
        let threads = process.threads();
        let exact = threads.iter().find(|thread| thread.id() == self.thread).cloned();
        exact.or_else(|| if self.is_thread { None } else { process.leader() }).ok_or(Errno::ESRCH)
    }

    /// An inode with a number that is the same each time: 2^20 of them for each id.
    fn inode(&self, index: u64, content: Content, permissions: u32) -> Arc<Inode> {
        let owner = self.process().map_or(Caller::root(), |process| {
            let credentials = process.credentials();
            Caller { user: credentials.user.effective, group: credentials.group.effective, ..Caller::root() }
        });
        let kind = u64::from(self.is_thread) << 63;
        Inode::with_number(&PROC, kind | u64::from(self.thread) << 20 | index, content, permissions, &owner)
    }

    /// The directory of the process or thread.
    fn directory(self) -> Arc<Inode> {
        let listing = Box::new(Files(self));
        self.inode(1, Content::Directory(Directory::with_listing(listing)), 0o555)
    }
}

/// Parses an id as it stands in a path: digits without a leading zero.
fn parse_id(name: &[u8]) -> Option<u32> {
    if name.first() == Some(&b'0') || !name.iter().all(u8::is_ascii_digit) {
        return None;
    }
    str::from_utf8(name).ok()?.parse().ok()
}

/// All processes by id.
struct Processes;

/// What the root of `/proc` lists besides its files.
pub(crate) fn processes() -> Box<dyn Listing> {
    Box::new(Processes)
}

impl Listing for Processes {
    fn find(&self, name: &[u8]) -> Option<Arc<Inode>> {
        let id = parse_id(name)?;
        // A thread's id is found as well, though it is not listed.
        let process = match process::find_process(id) {
            Some(process) => process,
            None => process::find_thread(id)?.process().clone(),
        };
        let subject = Subject { process: process.id(), thread: id, is_thread: false };
        Some(subject.directory())
    }

    fn names(&self) -> Vec<(u32, Vec<u8>)> {
        process::process_ids().into_iter().map(|id| (id, format!("{id}").into_bytes())).collect()
    }
}

/// The process whose directory an inode is; `None` if it is none.
pub(crate) fn process_of_directory(inode: &Inode) -> Option<u32> {
    let is_directory_of_one = core::ptr::eq(inode.filesystem(), &PROC) && inode.is_directory();
    // As `Subject::inode` makes them: neither of a thread (the top bit) nor a directory inside (another index than 1).
    let id = inode.number() >> 20;
    (is_directory_of_one && inode.number() & 0xf_ffff == 1 && (1..u64::from(process::ID_LIMIT)).contains(&id))
        .then_some(id as u32)
}

/// How the text of a file is made.
type Make = fn(&Subject) -> Result<Vec<u8>, Errno>;

/// The files of each process and each thread.
const TEXTS: [(&str, u32, Make); 17] = [
    ("auxv", 0o400, process_memory::auxiliary_vector),
    ("cgroup", 0o444, |_| Ok(Vec::new())),
    ("cmdline", 0o444, process_memory::command_line),
    ("comm", 0o644, process_status::name),
    ("environ", 0o400, process_memory::environment),
    ("io", 0o400, process_status::transfers),
    ("limits", 0o444, process_status::limits),
    ("maps", 0o444, process_memory::maps),
    ("mountinfo", 0o444, |_| Ok(super::system::mounts())),
    ("mounts", 0o444, |_| Ok(super::system::mounts())),
    ("oom_score", 0o444, |_| Ok(b"0\n".to_vec())),
    ("oom_score_adj", 0o644, process_status::out_of_memory_adjustment),
    ("smaps", 0o444, process_memory::detailed_maps),
    ("stat", 0o444, process_status::stat),
    ("statm", 0o444, process_memory::sizes),
    ("status", 0o444, process_status::status),
    ("wchan", 0o444, |_| Ok(b"0".to_vec())),
];

/// Names that are not text, with the number that follows those of the texts.
const DIRECTORIES: [&str; 3] = ["fd", "fdinfo", "task"];
const LINKS: [&str; 3] = ["cwd", "exe", "root"];

/// The files of one subject.
struct Files(Subject);

impl Listing for Files {
    fn find(&self, name: &[u8]) -> Option<Arc<Inode>> {
        let subject = self.0;
        subject.process().ok()?;
        let name = str::from_utf8(name).ok()?;
        if let Some(index) = TEXTS.iter().position(|(text, ..)| *text == name) {
            let (_, permissions, make) = TEXTS[index];
            let content = Content::Generated(Box::new(Text { subject, name: TEXTS[index].0, make }));
            return Some(subject.inode(16 + index as u64, content, permissions));
        }
        let directory = |listing| Content::Directory(Directory::with_listing(listing));
        let link = |which| Content::Jump(Box::new(Link { subject, which }));
        match name {
            "fd" => Some(subject.inode(2, directory(Box::new(Descriptors(subject))), 0o500)),
            "fdinfo" => Some(subject.inode(3, directory(Box::new(DescriptorFacts(subject))), 0o500)),
            "task" if !subject.is_thread => {
                Some(subject.inode(4, directory(Box::new(Threads(subject.process))), 0o555))
            }
            "cwd" => Some(subject.inode(5, link(Which::Working), 0o777)),
            "exe" => Some(subject.inode(6, link(Which::Program), 0o777)),
            "root" => Some(subject.inode(7, link(Which::Root), 0o777)),
            _ => None,
        }
    }

    fn names(&self) -> Vec<(u32, Vec<u8>)> {
        let texts = TEXTS.iter().map(|(name, ..)| *name);
        let names = texts.chain(DIRECTORIES).chain(LINKS);
        (1..).zip(names.map(|name| name.as_bytes().to_vec())).collect()
    }
}

/// A file of one subject.
struct Text {
    subject: Subject,
    name: &'static str,
    make: Make,
}

impl Generated for Text {
    fn text(&self) -> Result<Vec<u8>, Errno> {
        (self.make)(&self.subject)
    }

    fn store(&self, text: &[u8]) -> Result<(), Errno> {
        match self.name {
            "comm" => {
                self.subject.thread()?.set_name(text.strip_suffix(b"\n").unwrap_or(text));
                Ok(())
            }
            "oom_score_adj" => {
                let value: i32 = str::from_utf8(text)
                    .ok()
                    .and_then(|text| text.trim().parse().ok())
                    .filter(|value| (-1000..=1000).contains(value))
                    .ok_or(Errno::EINVAL)?;
                self.subject.process()?.set_out_of_memory_adjustment(value);
                Ok(())
            }
            _ => Err(Errno::EACCES),
        }
    }
}

enum Which {
    Working,
    Program,
    Root,
}

/// `cwd`, `exe`, `root`.
struct Link {
    subject: Subject,
    which: Which,
}

impl Jump for Link {
    fn target(&self) -> Result<Arc<Entry>, Errno> {
        let thread = self.subject.thread()?;
        let context = || thread.context().ok_or(Errno::ENOENT);
        match self.which {
            Which::Working => Ok(context()?.working()),
            Which::Root => Ok(context()?.root()),
            Which::Program => {
                let memory = self.subject.process()?.memory().ok_or(Errno::ENOENT)?;
                Ok(memory.program().file.ok_or(Errno::ENOENT)?.entry().clone())
            }
        }
    }

    fn text(&self) -> Result<Vec<u8>, Errno> {
        Ok(self.target()?.shown_path(root()))
    }
}

/// `fd/`: one link for each descriptor.
struct Descriptors(Subject);

impl Listing for Descriptors {
    fn find(&self, name: &[u8]) -> Option<Arc<Inode>> {
        let (descriptor, description) = descriptor_of(self.0, name)?;
        // The link's permissions say how the file was opened.
        let mut permissions = 0o100;
        permissions |= if description.is_readable() { 0o400 } else { 0 };
        permissions |= if description.is_writable() { 0o200 } else { 0 };
        let link = Box::new(DescriptorLink { subject: self.0, descriptor });
        Some(self.0.inode(0x1_0000 + descriptor as u64, Content::Jump(link), permissions))
    }

    fn names(&self) -> Vec<(u32, Vec<u8>)> {
        descriptor_names(self.0)
    }
}

/// The descriptor called `name`, if it is open, and what it stands for.
fn descriptor_of(subject: Subject, name: &[u8]) -> Option<(i32, Arc<Description>)> {
    let descriptor = if name == b"0" { 0 } else { i32::try_from(parse_id(name)?).ok()? };
    let description = subject.thread().ok()?.files()?.get(descriptor).ok()?;
    Some((descriptor, description))
}

fn descriptor_names(subject: Subject) -> Vec<(u32, Vec<u8>)> {
    let table = subject.thread().ok().and_then(|thread| thread.files());
    let numbers = table.map(|table| table.numbers()).unwrap_or_default();
    numbers.into_iter().map(|number| (number as u32 + 1, format!("{number}").into_bytes())).collect()
}

struct DescriptorLink {
    subject: Subject,
    descriptor: i32,
}

impl Jump for DescriptorLink {
    fn target(&self) -> Result<Arc<Entry>, Errno> {
        let table = self.subject.thread()?.files().ok_or(Errno::ENOENT)?;
        let description = table.get(self.descriptor).map_err(|_| Errno::ENOENT)?;
        Ok(description.entry().clone())
    }

    fn text(&self) -> Result<Vec<u8>, Errno> {
        Ok(self.target()?.shown_path(root()))
    }
}

/// `fdinfo/`: position and flags of each descriptor.
struct DescriptorFacts(Subject);

impl Listing for DescriptorFacts {
    fn find(&self, name: &[u8]) -> Option<Arc<Inode>> {
        let (descriptor, _) = descriptor_of(self.0, name)?;
        let text = Box::new(DescriptorText { subject: self.0, descriptor });
        Some(self.0.inode(0x2_0000 + descriptor as u64, Content::Generated(text), 0o444))
    }

    fn names(&self) -> Vec<(u32, Vec<u8>)> {
        descriptor_names(self.0)
    }
}

struct DescriptorText {
    subject: Subject,
    descriptor: i32,
}

impl Generated for DescriptorText {
    fn text(&self) -> Result<Vec<u8>, Errno> {
        let table = self.subject.thread()?.files().ok_or(Errno::ENOENT)?;
        let description = table.get(self.descriptor).map_err(|_| Errno::ENOENT)?;
        let position = description.seek(Ok).unwrap_or(0);
        let inode = description.inode().number();
        let mut text = format!("pos:\t{position}\nflags:\t0{:o}\nino:\t{inode}\n", description.flags());
        if let Some(file) = description.file_as::<ProcessFile>() {
            // As on Linux, a process that is gone has no id any more.
            let id = file.process().map_or(-1, |process| process.id() as i32);
            text += &format!("Pid:\t{id}\nNSpid:\t{id}\n");
        }
        Ok(text.into_bytes())
    }
}

/// `task/`: one directory for each thread.
struct Threads(u32);

impl Listing for Threads {
    fn find(&self, name: &[u8]) -> Option<Arc<Inode>> {
        let thread = parse_id(name)?;
        let subject = Subject { process: self.0, thread, is_thread: true };
        subject.thread().ok()?;
        Some(subject.directory())
    }

    fn names(&self) -> Vec<(u32, Vec<u8>)> {
        let Some(process) = process::find_process(self.0) else { return Vec::new() };
        let mut ids: Vec<u32> = process.threads().iter().map(|thread| thread.id()).collect();
        ids.sort_unstable();
        ids.into_iter().map(|id| (id, format!("{id}").into_bytes())).collect()
    }
}

/// The name of a thread, as text.
pub(crate) fn name_text(thread: &Thread) -> String {
    let name = thread.name();
    let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..length]).into_owned()
}
