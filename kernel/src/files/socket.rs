//! Socket pairs: two streams, one in each direction.
//!
//! The only sockets here are pairs from `socketpair(AF_UNIX, SOCK_STREAM)`. Each direction is a pipe; what
//! one end writes the other reads.

use super::file::{File, Patience};
use super::pipe::{ATOMIC, PipeEnd};
use super::readiness::{Observers, Readiness};
use super::transfer::{Destination, Source};
use super::Pipe;
use crate::sync::SpinLock;
use crate::syscall::Errno;
use alloc::sync::Arc;

pub(crate) struct Socket {
    incoming: Arc<Pipe>,
    outgoing: Arc<Pipe>,
    /// The open ends; `shutdown` closes one or the other.
    receiving: SpinLock<Option<PipeEnd>>,
    sending: SpinLock<Option<PipeEnd>>,
}

impl Socket {
    /// Two connected ends.
    pub(crate) fn pair() -> (Self, Self) {
        let (there, back) = (Pipe::new(), Pipe::new());
        (Self::end(&there, &back), Self::end(&back, &there))
    }

    fn end(incoming: &Arc<Pipe>, outgoing: &Arc<Pipe>) -> Self {
        Self {
            incoming: incoming.clone(),
            outgoing: outgoing.clone(),
            receiving: SpinLock::new(Some(incoming.open(true, false))),
            sending: SpinLock::new(Some(outgoing.open(false, true))),
        }
    }

    /// `shutdown`: what is closed stays closed.
    pub(crate) fn shut_down(&self, receiving: bool, sending: bool) {
        let closed_receiving = if receiving { self.receiving.lock().take() } else { None };
        let closed_sending = if sending { self.sending.lock().take() } else { None };
        drop((closed_receiving, closed_sending));
    }

    /// Bytes that wait to be read.
    pub(crate) fn filled(&self) -> usize {
        self.incoming.filled()
    }
}

impl File for Socket {
    fn read(&self, _position: &mut u64, to: &mut dyn Destination, patience: Patience) -> Result<usize, Errno> {
        if to.remaining() == 0 || self.receiving.lock().is_none() {
            return Ok(0);
        }
        self.incoming.receive(to, patience)
    }

    fn write(
        &self,
        _position: &mut u64,
        _append: bool,
        from: &mut dyn Source,
        patience: Patience,
    ) -> Result<usize, Errno> {
        if self.sending.lock().is_none() {
            return Err(super::pipe::broken());
        }
        let atomic = from.remaining() <= ATOMIC;
        super::transfer::collect(from, |_, bytes| self.outgoing.put(bytes, atomic, patience))
    }

    fn readiness(&self) -> Readiness {
        let receiving = self.receiving.lock().as_ref().map(File::readiness);
        let sending = self.sending.lock().as_ref().map(File::readiness);
        let mut readiness = Readiness::empty();
        let ended = |end: Option<Readiness>, sign| end.is_none_or(|end| end.contains(sign));
        readiness |= receiving.unwrap_or(Readiness::empty()) & Readiness::READABLE;
        readiness |= sending.unwrap_or(Readiness::empty()) & Readiness::WRITABLE;
        if ended(receiving, Readiness::HANGUP) {
            // An end of file can be read.
            readiness |= Readiness::READABLE | Readiness::READ_HANGUP;
            if ended(sending, Readiness::ERROR) {
                readiness |= Readiness::HANGUP | Readiness::WRITABLE;
            }
        }
        readiness
    }

    fn observers(&self) -> [Option<&Observers>; 2] {
        [Some(self.incoming.observers()), Some(self.outgoing.observers())]
    }

    fn control(&self, request: u32, argument: u64) -> Result<usize, Errno> {
        super::control::answer_available(request, argument, self.filled())
    }
}
