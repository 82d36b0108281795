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
//! as they are read. So nothing here waits for a disk; the only waits are for other programs (pipes, locks),
//! for the console and for time.
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
mod entry;
pub mod epoll;
mod event_counter;
mod file;
pub mod filesystem;
mod generated;
mod inode;
pub mod lock;
mod open;
mod pipe;
pub mod poll;
mod populate;
mod procfs;
mod readiness;
mod socket;
mod sysfs;
mod table;
mod timer_file;
pub mod transfer;
pub mod tree;
mod waiting;
pub mod walk;

pub use console::input_arrived;
pub use content::{FileContent, MOST_SIZE, Mapping, unnamed_file};
pub use context::{Caller, Context};
pub use control::answer_available;
pub use description::Description;
pub use device::Device;
pub use directory::{Directory, Listed, Listing};
pub use entry::Entry;
pub use event_counter::EventCounter;
pub use file::{File, Patience, Positions};
pub use filesystem::FileSystem;
pub use inode::{Access, Attributes, Content, Generated, Inode, Jump, Status, Timestamp};
pub use open::{anonymous, check_executable, find, open, open_entry, open_executable};
pub use pipe::{Pipe, PipeEnd};
pub use populate::{initial_table, initialize, root};
pub use readiness::{Observer, Observers, Readiness};
pub use socket::Socket;
pub use table::FileTable;
pub use timer_file::{Setting as TimerSetting, TimerFile};
pub use transfer::{Destination, Source, UserMemory};
