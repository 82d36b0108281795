//! Devices that walk a space's page tables by themselves (through an IOMMU that shares them) and cache what they find.
//!
//! A device is not a CPU. It takes no interrupt, joins no set, compares no generation and is never elsewhere: it uses what it has
//! cached until it is told otherwise. So each request for a space that has devices tells them, always, and waits:
//!
//! ```text
//!  initiator                                        who attaches a device
//!  change the entries                               count the device
//!  advance the generation                           fence
//!  fence                                            let the device walk
//!  read the count: not 0
//!  tell the devices, and wait
//! ```
//!
//! * **After the entries are changed.** A device that is told before walks again at once, and caches the old entry again.
//! * **Of freed tables** separately: many IOMMUs keep upper levels unless they are asked to drop them too.
//! * **The two fences** are ordered one way or the other. If the initiator's comes first, the device's walks find the changed entries;
//!   if the other does, the initiator finds the device counted.
//! * **Who detaches a device** has stopped it before, and has had it drop everything. It leaves the count with a release, so that an
//!   initiator which finds 0 (acquire) finds what the device wrote.
//!
//! A device that stores through what it has cached need not mark the entry dirty first. So on a machine that has devices the mechanism
//! `clean` skips nothing (`gather.rs`).
//!
//! What a device has cached may allow less than the entry in memory, since added permission is not flushed. So only a device that can
//! fault and ask again may be attached.

use crate::fault::Fault;
use crate::sync::{AtomicU64, Ordering, constructor, fence};
use crate::{Coherence, CpuId, Event, Flush, Platform, Row, Space};

/// How many devices are attached to a space.
#[derive(Debug)]
pub(crate) struct Devices(AtomicU64);

impl Devices {
    constructor! {
        pub(crate) fn new() -> Self {
            Devices(AtomicU64::new(0))
        }
    }

    /// Acquire: if a device is not counted any more, what it wrote is visible.
    pub(crate) fn are_attached(&self) -> bool {
        self.0.load(Ordering::Acquire) != 0
    }
}

impl<P: Platform> Coherence<P> {
    /// Announces a device that is going to walk the space's tables. When this has returned the device may begin, and not earlier.
    ///
    /// # Panics
    /// If the platform [has no devices](Platform::has_devices).
    pub fn attach_device(&self, space: &Space) {
        assert!(self.platform.has_devices(), "a device was attached on a machine that says it has none");
        space.devices.0.fetch_add(1, Ordering::Relaxed);
        // Full fence, between counting the device and its first walk. It pairs with the one in `Coherence::flush`
        // (shootdown.rs), between the changes and reading the count. Without either, the device could walk to an old entry,
        // and the initiator read that there is no device. Then nobody would tell it.
        if !self.has_fault(Fault::NoFenceAttaching) {
            fence(Ordering::SeqCst);
        }
    }

    /// Says that a device walks the space's tables no more: it has been stopped, has finished what it had begun, and has dropped
    /// everything that it had cached of them.
    pub fn detach_device(&self, space: &Space) {
        let relaxed = self.has_fault(Fault::RelaxedDetaching);
        space.devices.0.fetch_sub(1, if relaxed { Ordering::Relaxed } else { Ordering::Release });
    }

    /// Tells the devices of a space, if it has any, and waits until they have dropped what a request covers. To be called after the
    /// fence that follows the changes.
    pub(crate) fn tell_devices(&self, me: CpuId, space: &Space, flush: Flush) {
        if !self.platform.has_devices() || !space.devices.are_attached() {
            return;
        }
        if self.has_fault(Fault::DevicesNotTold) || self.has_fault(Fault::DevicesToldFirst) {
            return;
        }
        let keeps = self.has_fault(Fault::DevicesKeepFreedTables);
        let told = if keeps { Flush { tables_freed: false, ..flush } } else { flush };
        self.platform.invalidate_devices(space, &told);
        self.count(me, Row::Event(Event::DeviceFlush));
    }

    /// `tell_devices` before the changes: wrong, and kept so that the explorer shows that it can tell.
    #[cfg(simulated)]
    pub(crate) fn tell_devices_first(&self, space: &Space) {
        if self.has_fault(Fault::DevicesToldFirst) && space.devices.are_attached() {
            self.platform.invalidate_devices(space, &Flush::all().freeing_tables());
        }
    }
}
