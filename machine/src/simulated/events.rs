//! What the hardware does by itself, at moments of its own: as numbers, for the explorer.

use super::machine::Machine;
use super::remote::Remote;

/// One such thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// A CPU's walker goes ahead to one of the scenario's pages.
    WalkAhead { cpu: usize, page: usize },
    /// An invalidation, the how-manieth that is on its way, arrives at a CPU.
    Arrival { index: usize, cpu: usize },
    /// The hypervisor is going to refuse the next call.
    Refusal,
    /// A CPU fetches one of the scenario's instructions ahead.
    Fetch { cpu: usize, code: usize },
    /// A CPU loses the translation of a page.
    ForgetPage { cpu: usize, page: usize },
    /// A CPU loses the way to a page's table.
    ForgetTable { cpu: usize, page: usize },
    /// The hypervisor deschedules a CPU.
    Deschedule { cpu: usize },
    /// A CPU that is marked as descheduled stops.
    Stop { cpu: usize },
    /// A descheduled CPU runs again.
    Run { cpu: usize },
    /// The device accesses one of its pages.
    DeviceAccess { page: usize },
}

impl Event {
    fn number(self) -> u64 {
        let (kind, one, two) = match self {
            Event::WalkAhead { cpu, page } => (0, cpu, page),
            Event::Arrival { index, cpu } => (1, index, cpu),
            Event::Refusal => (2, 0, 0),
            Event::DeviceAccess { page } => (3, page, 0),
            Event::Fetch { cpu, code } => (4, cpu, code),
            Event::Deschedule { cpu } => (5, cpu, 0),
            Event::Stop { cpu } => (6, cpu, 0),
            Event::Run { cpu } => (7, cpu, 0),
            Event::ForgetPage { cpu, page } => (8, cpu, page),
            Event::ForgetTable { cpu, page } => (9, cpu, page),
        };
        kind << 56 | (one as u64) << 32 | two as u64
    }

    fn from_number(number: u64) -> Self {
        let (one, two) = ((number >> 32 & 0xff_ffff) as usize, (number & 0xffff_ffff) as usize);
        match number >> 56 {
            0 => Event::WalkAhead { cpu: one, page: two },
            1 => Event::Arrival { index: one, cpu: two },
            2 => Event::Refusal,
            3 => Event::DeviceAccess { page: one },
            4 => Event::Fetch { cpu: one, code: two },
            5 => Event::Deschedule { cpu: one },
            6 => Event::Stop { cpu: one },
            7 => Event::Run { cpu: one },
            8 => Event::ForgetPage { cpu: one, page: two },
            9 => Event::ForgetTable { cpu: one, page: two },
            _ => unreachable!("only numbers of events come back"),
        }
    }
}

impl Machine {
    /// Lists what may happen.
    pub(super) fn list_events(&self, events: &mut Vec<u64>) {
        if !self.build.code.is_empty() {
            let hidden = self.hidden();
            for cpu in 0..self.build.cpus {
                let code = self.build.code.iter().enumerate();
                let fetches = code.filter(|(_, address)| self.could_fetch(&hidden, cpu, **address));
                events.extend(fetches.map(|(code, _)| Event::Fetch { cpu, code }.number()));
            }
        }
        if self.build.walkers {
            let hidden = self.hidden();
            for (cpu, caches) in hidden.caches.iter().enumerate().take(self.build.cpus) {
                if hidden.virtual_cpus[cpu].stopped {
                    continue;
                }
                let pages = self.build.pages.iter().enumerate();
                let walks = pages.filter(|(_, page)| self.could_walk(caches, **page));
                events.extend(walks.map(|(page, _)| Event::WalkAhead { cpu, page }.number()));
            }
        }
        self.list_losses(events);
        events.extend(self.may_stop().into_iter().map(|cpu| Event::Deschedule { cpu }.number()));
        let work = self.device_work(&self.hidden()).into_iter();
        events.extend(work.map(|page| Event::DeviceAccess { page }.number()));
        if self.build.remote == (Remote::Hypercall { may_refuse: true }) && !self.hidden().refuses {
            events.push(Event::Refusal.number());
        }
    }

    /// Lists what may leave a cache by itself.
    fn list_losses(&self, events: &mut Vec<u64>) {
        let hidden = self.hidden();
        for (cpu, caches) in hidden.caches.iter().enumerate().take(self.build.cpus) {
            for (page, address) in self.build.forgotten.iter().enumerate() {
                let (translation, table) = caches.knows(*address);
                events.extend(translation.then(|| Event::ForgetPage { cpu, page }.number()));
                events.extend(table.then(|| Event::ForgetTable { cpu, page }.number()));
            }
        }
    }

    /// Lists what is going to happen.
    pub(super) fn list_due(&self, events: &mut Vec<u64>) {
        let arrivals = self.arrivals().into_iter();
        events.extend(arrivals.map(|(index, cpu)| Event::Arrival { index, cpu }.number()));
        events.extend(self.will_stop().into_iter().map(|cpu| Event::Stop { cpu }.number()));
        events.extend(self.will_run().into_iter().map(|cpu| Event::Run { cpu }.number()));
    }

    /// It happens.
    pub(super) fn perform_event(&self, number: u64) {
        match Event::from_number(number) {
            Event::WalkAhead { cpu, page } => self.walk_ahead(cpu, self.build.pages[page]),
            Event::Arrival { index, cpu } => self.arrive(index, cpu),
            Event::ForgetPage { cpu, page } => {
                let page = self.build.forgotten[page];
                self.hidden().caches[cpu].forget_page(page);
                explorer::narrate_of(cpu, || format!("(forgets {page:#x})"));
            }
            Event::ForgetTable { cpu, page } => {
                let page = self.build.forgotten[page];
                self.hidden().caches[cpu].forget_table(page);
                explorer::narrate_of(cpu, || format!("(forgets the way to the table of {page:#x})"));
            }
            Event::Deschedule { cpu } => self.deschedule(cpu),
            Event::Stop { cpu } => self.stop(cpu),
            Event::Run { cpu } => self.run_again(cpu),
            Event::DeviceAccess { page } => self.device_accesses(self.build.device[page]),
            Event::Fetch { cpu, code } => {
                let address = self.build.code[code];
                self.fetch(cpu, address);
                explorer::narrate_of(cpu, || format!("fetches {address:#x} ahead"));
            }
            Event::Refusal => {
                self.hidden().refuses = true;
                explorer::narrate(|| "(the hypervisor will refuse the next call)".to_owned());
            }
        }
    }
}
