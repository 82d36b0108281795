//! The sanitizer: a plugin of QEMU that stops a guest at the first access through a stale translation.
//!
//! QEMU calls it after every load and store, and before every block of instructions, of the emulated CPUs (`plugin`, over the
//! interface in `emulator`). It learns the address that the program used and the frame that the CPU's own translation cache led
//! to, stale or not. The kernel has declared where its tables and the metadata of its frames are (`protocol::sanitizer`;
//! `declared` reads them, out of the guest's memory, which lies in this process). `judge` compares:
//!
//! 1. A frame that nobody owns must not be reached, whatever the tables say (D1).
//! 2. What the tables have for the address, and allow, may be done.
//! 3. Everything else is stale. It is allowed as long as somebody is changing the address space and has not finished: the
//!    flush is still to come. When nobody is, the flush is over, or never came, and this CPU should have no such translation (D2,
//!    D3).
//!
//! **Why this gives no false alarm.** The judgement is made on the CPU's own thread, directly after the access, so the CPU can
//! acknowledge nothing in between. An operation that takes something away is announced before it changes an entry (by the count
//! of its space, or by the lock of the page's table), and stays so until every CPU that runs the space has acknowledged its flush. Whoever
//! comes by the reverse way holds that lock until the space has its batch's mark, which stays until the batch is flushed; so the lock is looked at first.
//! So whoever finds an entry changed, after an access that was right, finds it announced. And a frame is given up after that. The
//! entry is read before the announcement.
//!
//! `docs/design/0011-sanitizer.md` has the argument in full, and what cannot be seen this way.
#![deny(unsafe_code)]

mod declared;
#[cfg(not(test))]
mod emulator;
mod guest_memory;
mod judge;
mod owners;
#[cfg(not(test))]
mod plugin;
mod tables;
#[cfg(test)]
mod test_machine;
