//! The open file of an endpoint. Dropping it closes the endpoint.

use super::{Endpoint, Kind, Receiving, Rights, Sender, Sending};
use crate::files::filesystem::SOCKETS;
use crate::files::{
    Caller, Content, Description, Destination, Entry, File, Inode, Observers, Patience, Readiness, Source, answer_available,
};
use crate::memory::user;
use crate::syscall::Errno;
use alloc::boxed::Box;
use alloc::format;
use alloc::sync::{Arc, Weak};
use linux_raw_sys::general as abi;
use linux_raw_sys::ioctl::{FIONREAD, TIOCOUTQ};

pub(crate) struct Socket(Arc<Endpoint>);

impl Socket {
    pub(crate) fn new(endpoint: Arc<Endpoint>) -> Self {
        Self(endpoint)
    }

    pub(crate) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.0
    }

    /// Opens it, for reading and writing, with those of `flags` that are of the opening.
    pub(crate) fn open(self, flags: u32) -> Arc<Description> {
        let inode = Inode::new(&SOCKETS, Content::Socket(Weak::new()), 0o777, &Caller::root());
        let entry = Entry::unplaced(format!("socket:[{}]", inode.number()).as_bytes(), inode);
        let endpoint = self.0.clone();
        let description = Description::new(entry, Box::new(self), abi::O_RDWR | flags & abi::O_NONBLOCK);
        endpoint.note_description(&description);
        description
    }
}

impl File for Socket {
    fn read(&self, _position: &mut u64, to: &mut dyn Destination, patience: Patience) -> Result<usize, Errno> {
        if to.remaining() == 0 && self.0.kind() == Kind::Stream {
            return Ok(0);
        }
        let receipt = self.0.receive(to, Receiving { patience, peek: false, all: false })?;
        Ok(receipt.count)
    }

    fn write(
        &self,
        _position: &mut u64,
        _append: bool,
        from: &mut dyn Source,
        patience: Patience,
    ) -> Result<usize, Errno> {
        let sending = Sending { to: None, sender: Sender::real(), rights: Rights::none(), patience, quiet: false };
        self.0.send(from, sending)
    }

    fn readiness(&self) -> Readiness {
        self.0.readiness()
    }

    fn observers(&self) -> [Option<&Observers>; 2] {
        [Some(&self.0.observers), None]
    }

    fn control(&self, request: u32, argument: u64) -> Result<usize, Errno> {
        match request {
            FIONREAD => answer_available(request, argument, self.0.available()?),
            TIOCOUTQ => {
                user::write(argument, &(self.0.unreceived()? as i32))?;
                Ok(0)
            }
            _ => super::interface::control(request, argument),
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.0.close(false);
    }
}
