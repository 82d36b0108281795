//! A device that walks page tables through an IOMMU, and caches translations and upper levels as a CPU does.
//!
//! Its caches are the last ones of the machine, behind the CPUs'. It works whenever it likes, at pages that the scenario names, on one
//! space at a time. It takes no interrupts: an order to drop something goes into a queue, and is carried out when the device gets to it.

use super::caches::DIRTY;
use super::machine::{Hidden, Machine, SimulatedEnvironment};
use super::oracle::Use;
use super::remote::OnItsWay;

impl Machine {
    /// The place of the device's caches, if there is a device.
    pub(super) fn device(&self) -> Option<usize> {
        (!self.build.device.is_empty()).then_some(self.build.cpus)
    }

    /// The pages at which the device could do something now that matters: walk, or use what it should not.
    pub(super) fn device_work(&self, hidden: &Hidden) -> Vec<usize> {
        let Some(device) = self.device() else { return Vec::new() };
        let caches = &hidden.caches[device];
        let matters = |page: u64| match caches.translations.get(&(caches.tag, page)) {
            Some(translation) => translation.is_suspect(),
            None => self.could_walk(caches, page),
        };
        let pages = self.build.device.iter().enumerate();
        pages.filter(|(_, page)| matters(**page)).map(|(index, _)| index).collect()
    }

    /// The device accesses a page, if it can: it stores where it has stored before, and loads elsewhere.
    pub(super) fn device_accesses(&self, page: u64) {
        let Some(device) = self.device() else { return };
        let mut guard = self.hidden();
        let hidden = &mut *guard;
        if hidden.caches[device].translation(page).is_none() {
            let found = self.walk(hidden, device, page, false);
            drop(guard);
            return explorer::narrate(|| format!("(the device walks for {page:#x}: {found:?})"));
        }
        let Hidden { caches, oracle, .. } = hidden;
        let translation = caches[device].translation(page).expect("it is cached").clone();
        let access = Use { cpu: device, page, write: translation.entry & DIRTY != 0 };
        if let Some(sentence) =
            oracle.judge(access, &translation, self.entry_in_memory(translation.root, page))
        {
            hidden.found(sentence);
        }
        drop(guard);
        explorer::narrate(|| format!("(the device uses {page:#x})"));
    }
}

impl SimulatedEnvironment {
    /// A driver lets the device walk a space's tables.
    pub(super) fn attach_device(&self, number: usize) {
        let space = self.space(number);
        self.0.coherence.attach_device(space.space());
        let device = self.0.device().expect("the scenario has a device");
        let root = space.space().root();
        let caches = &mut self.0.hidden().caches[device];
        (caches.root, caches.walked) = (root, root);
        explorer::narrate(|| "lets the device begin".to_owned());
    }

    /// A driver stops the device, which drops everything, and takes it off the space.
    pub(super) fn detach_device(&self, number: usize) {
        explorer::step(super::platform::machine_step());
        let device = self.0.device().expect("the scenario has a device");
        {
            let mut hidden = self.0.hidden();
            let caches = &mut hidden.caches[device];
            caches.drop_all_under(None);
            (caches.root, caches.walked, caches.root_freed) = (0, 0, None);
        }
        explorer::narrate(|| "has stopped the device".to_owned());
        self.0.coherence.detach_device(self.space(number).space());
    }

    /// While a run is set up: the device walks for a page, and stores to it.
    pub(super) fn device_uses(&self, page: u64) {
        self.0.device_accesses(page);
    }

    /// The end of a run: whatever space still has the device lets go of it.
    pub(super) fn detach_last_device(&self) {
        let Some(device) = self.0.device() else { return };
        let root = self.0.hidden().caches[device].root;
        let spaces = self.0.hidden().spaces.clone();
        if let Some(number) = spaces.iter().position(|space| root != 0 && space.space().root() == root) {
            self.detach_device(number);
        }
    }
}

impl Machine {
    /// The root of the space for which a CPU loads this one.
    pub(super) fn space_loaded_by(&self, root: u64) -> u64 {
        let hidden = self.hidden();
        let space = hidden.spaces.iter().find(|space| space.is_loaded_by(root));
        space.map_or(root, |space| space.space().root())
    }

    /// This CPU orders the device to drop something, and waits until it has.
    pub(super) fn order_device(&self, root: u64, flush: &coherence::Flush) {
        let Some(device) = self.device() else { return };
        let order = OnItsWay::for_the_device(flush, root, explorer::current_cpu(), device);
        self.begin_remote(order);
        self.wait_for_remote();
    }
}
