//! Files: a tree of names, what the names stand for, and openings of it.
//!
//! | noun | is | Linux calls it |
//! |---|---|---|
//! | `Entry` | a name in a directory | dentry |
//! | `Inode` | a file, whatever its names | inode |
//! | `Description` | one opening, with position and flags | struct file |
//! | `FileTable` | a process's descriptors | files_struct |
//! | `Context` | working directory, root, umask | fs_struct |
//! | `File` | what can be done with an opening | file_operations |
//!
//! All file systems live in memory: the root is filled from the initial archive, `/proc` and `/sys` are made
//! as they are read. What waits for a disk is `disk`, which shows it as a file; the other waits are for other programs
//! (pipes, locks), for the console and for time.
//!
//! Locks, outermost first: a description's position; the tree's lock for changes (`tree`); a file's lock for
//! writing; then spin locks, each held for a few steps and never while user memory is touched.

mod archive;
mod console;
mod content;
mod context;
mod control;
mod description;
mod device;
mod directory;
mod disk;
mod entry;
pub(crate) mod epoll;
mod event_counter;
mod file;
pub(crate) mod filesystem;
mod generated;
mod inode;
pub(crate) mod lock;
mod message;
mod message_queue;
mod open;
mod pipe;
pub(crate) mod poll;
mod populate;
mod process_file;
mod procfs;
mod readiness;
mod running;
mod signal_file;
mod sysfs;
mod table;
mod timer_file;
pub(crate) mod transfer;
pub(crate) mod tree;
mod userfault;
pub(crate) mod waiting;
pub(crate) mod walk;

pub(crate) use console::input_arrived;
pub(crate) use content::{FileContent, MOST_SIZE, Mapping, Seals, unnamed_file};
pub(crate) use context::{Caller, Context};
pub(crate) use control::answer_available;
pub(crate) use description::Description;
pub(crate) use device::Device;
pub(crate) use disk::{DiskFile, SwapFile, synchronize_disks};
pub(crate) use directory::{Directory, Listed};
pub(crate) use entry::Entry;
pub(crate) use event_counter::EventCounter;
pub(crate) use file::{File, Patience, Positions};
pub(crate) use filesystem::FileSystem;
pub(crate) use inode::{Access, Content, Inode, Status, Timestamp};
pub(crate) use message::Message;
pub(crate) use message_queue::{Making, MessageQueue, News, QUEUE_BOUNDS, QueueFile, Room};
pub(crate) use open::{anonymous, check_executable, find, open, open_entry, open_executable};
pub(crate) use pipe::{Pipe, broken};
pub(crate) use populate::{initial_table, initialize, root};
pub(crate) use process_file::ProcessFile;
pub(crate) use procfs::process_of_directory;
pub(crate) use readiness::{Observers, Readiness};
pub(crate) use running::Running;
pub(crate) use signal_file::SignalFile;
pub(crate) use table::{FileTable, Reserved, close};
pub(crate) use timer_file::{Setting as TimerSetting, TimerFile};
pub(crate) use transfer::{Destination, Source, UserMemory};
pub(crate) use walk::Walk;
pub(crate) use userfault::{Context as UserfaultContext, may_watch_the_kernel, userfault};
