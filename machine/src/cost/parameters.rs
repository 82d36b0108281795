//! What everything costs: the one place, with the source of each value.
//!
//! `§` names a line of the project's performance page, section 5.1 (values) or 5.2 (where a simulation is to start). A value is *cited* from
//! a publication, *derived* from one by arithmetic, *assumed* for want of one, or *fitted* to a figure that is then no prediction
//! any more. `docs/design/0017-cost-model.md` says what was changed after the start, and why.

use std::ops::RangeInclusive;

/// Picoseconds: fine enough for a cycle, and whole, so that sums do not depend on their order.
pub(super) type Time = u64;

/// A time in picoseconds from nanoseconds.
pub(super) fn nanoseconds(value: f64) -> Time {
    (value * 1000.0).round() as Time
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Read in a publication.
    Cited,
    /// Arithmetic on what was read.
    Derived,
    /// Nobody published it.
    Assumed,
    /// Chosen so that this figure comes out.
    Fitted(&'static str),
}

impl Basis {
    /// One word.
    pub const fn name(self) -> &'static str {
        match self {
            Basis::Cited => "cited",
            Basis::Derived => "derived",
            Basis::Assumed => "assumed",
            Basis::Fitted(_) => "fitted",
        }
    }
}

/// What is known of a parameter beside its value.
#[derive(Clone, Debug)]
pub struct Description {
    /// As in files that override it.
    pub name: &'static str,
    /// What it counts.
    pub unit: &'static str,
    /// A sentence.
    pub meaning: &'static str,
    /// Where the value is from.
    pub basis: Basis,
    /// The line of the performance page.
    pub source: &'static str,
    /// What makes sense.
    pub range: RangeInclusive<f64>,
}

macro_rules! parameters {
    ($($(#[doc = $meaning:literal])+ $name:ident = $value:literal, $unit:literal, $range:expr, $basis:expr, $source:literal;)*) => {
        /// All of them. `Parameters::START` is what a simulation uses unless it is told otherwise.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Parameters {
            $($(#[doc = $meaning])+ pub $name: f64,)*
        }

        impl Parameters {
            /// The values of the table.
            pub const START: Self = Parameters { $($name: $value,)* };

            /// What they mean, in the same order.
            pub const DESCRIPTIONS: &'static [Description] = &[$(Description {
                name: stringify!($name),
                unit: $unit,
                meaning: concat!($($meaning),+),
                basis: $basis,
                source: $source,
                range: $range,
            },)*];

            fn slot(&mut self, name: &str) -> Option<&mut f64> {
                match name {
                    $(stringify!($name) => Some(&mut self.$name),)*
                    _ => None,
                }
            }

            /// Names and values, in the table's order.
            pub fn values(&self) -> Vec<(&'static str, f64)> {
                vec![$((stringify!($name), self.$name),)*]
            }
        }
    };
}

const COST: RangeInclusive<f64> = 0.0..=1e6;
const COUNT: RangeInclusive<f64> = 1.0..=1e6;
const SHARE: RangeInclusive<f64> = 0.0..=1.0;
const SWITCH: RangeInclusive<f64> = 0.0..=1.0;

parameters! {
    /// The clock of every CPU.
    gigahertz = 2.5, "GHz", 0.1..=10.0, Basis::Assumed, "§5.2 ghz";
    /// One write to the interrupt controller that sends an interrupt.
    interrupt_write = 150.0, "cycles", COST, Basis::Assumed, "§5.2 icr_write; §5.1 x2APIC 100–200, xAPIC 200–400";
    /// CPUs that one such write can reach.
    cluster = 16.0, "CPUs", COUNT, Basis::Assumed, "§5.2 cluster";
    /// What each target adds for its sender: its request is put where the target finds it.
    post = 22.0, "ns", COST, Basis::Fitted("target 4, 120 CPUs: 38 ns for each added CPU"), "§5.1 ipi 8 sockets";
    /// From the write to the target's first cycle, on one socket.
    deliver = 350.0, "ns", COST, Basis::Assumed, "§5.2 deliver_same";
    /// What each hop between sockets adds to that.
    deliver_hop = 250.0, "ns", COST, Basis::Assumed, "§5.2 deliver_cross";
    /// Entry into the handler, with mitigations.
    interrupt_entry = 900.0, "cycles", COST, Basis::Assumed, "§5.2 irq_entry; §5.1 700–1500 with exit";
    /// Return from the handler.
    interrupt_exit = 500.0, "cycles", COST, Basis::Assumed, "§5.2 irq_exit";
    /// How likely a CPU has interrupts off when one comes.
    masked_share = 0.05, "share", SHARE, Basis::Assumed, "§5.2 irqs_off";
    /// How long it then keeps them off, on average, exponentially.
    masked_mean = 1000.0, "ns", COST, Basis::Assumed, "§5.2 irqs_off";
    /// How long at most.
    masked_most = 20000.0, "ns", COST, Basis::Assumed, "§5.2 irqs_off";
    /// What a flush costs its initiator whatever its extent: bookkeeping before anything is invalidated.
    flush_fixed = 1050.0, "cycles", COST, Basis::Derived, "§5.1 t_range(n) ≈ 1050 + 230·n";
    /// One page invalidated.
    invalidate_page = 230.0, "cycles", COST, Basis::Derived, "§5.2 invlpg; §5.1 t_invlpg 200–260, t_range(n)";
    /// Everything invalidated.
    invalidate_all = 120.0, "cycles", COST, Basis::Assumed, "§5.2 cr3; §5.1 t_cr3 96 (2015)";
    /// Up to how many pages a flush goes page by page.
    ceiling = 33.0, "pages", 0.0..=1e6, Basis::Cited, "§5.1 ceiling";
    /// A translation that was dropped is walked again, tables in the cache.
    refill = 20.0, "cycles", COST, Basis::Derived, "§5.1 t_refill 19 cycles";
    /// Translations that a CPU's user code uses again after everything was dropped.
    working_set = 64.0, "pages", 0.0..=1e6, Basis::Assumed, "none";
    /// A cache line that another CPU of the socket has written.
    line = 60.0, "ns", COST, Basis::Assumed, "§5.2 line_same; §5.1 40–70";
    /// The same from another socket; each further hop adds the difference again.
    line_cross = 130.0, "ns", COST, Basis::Assumed, "§5.2 line_cross; §5.1 100–150";
    /// A locked operation on a line that the CPU has.
    locked_operation = 20.0, "cycles", COST, Basis::Assumed, "none";
    /// 1: targets count down one counter of the initiator's; 0: each has a line of its own.
    shared_counter = 0.0, "0 or 1", SWITCH, Basis::Assumed, "§5.2 ack";
    /// CPUs of a socket.
    socket = 64.0, "CPUs", COUNT, Basis::Assumed, "§5.2 sockets";
    /// Cores of the machine, if its CPUs share them in pairs; 0 if each CPU is a core.
    cores = 0.0, "cores", 0.0..=1e6, Basis::Assumed, "none";
    /// How much slower a CPU is while another runs on its core.
    core_sharing = 1.3, "times", 1.0..=10.0, Basis::Fitted("target 5, the broadcast series, 64 threads: 58.5 µs"), "none";
    /// Entry into the kernel by a system call or fault, and the way back.
    system_call = 100.0, "ns", COST, Basis::Assumed, "none";
    /// Handling of a fault that brings in an anonymous page.
    fault = 750.0, "ns", COST, Basis::Assumed, "§5.1 page fault minor 0.5–1 µs";
    /// madvise(MADV_DONTNEED) of a page without its flush.
    dontneed = 150.0, "ns", COST, Basis::Fitted("target 1, 1 thread: 661 ns"), "§5.1 shoot(n)";
    /// mprotect of a page without its flush, as long as a caller measures.
    mprotect = 2496.0, "cycles", COST, Basis::Cited, "§5.1 mprotect 1 page, 2496 without flush";
    /// munmap of a page without its flush.
    munmap = 800.0, "ns", COST, Basis::Assumed, "none";
    /// mmap of anonymous memory.
    mmap = 500.0, "ns", COST, Basis::Assumed, "none";
    /// What each further page adds to a change, beside its invalidation.
    page = 30.0, "ns", COST, Basis::Assumed, "none";
    /// What Linux does for a page under a lock that all CPUs share: the lists of the reclaim.
    page_lists = 700.0, "ns", COST, Basis::Fitted("target 5, the broadcast series, 32 threads: 26.7 µs"), "§5.1 INVLPGB residual = locks";
    /// From one tick to the next, when lazily freed translations are swept.
    tick = 1e6, "ns", 1e3..=1e9, Basis::Cited, "§0.4 TIMER_FREQ 1000";
    /// Entries that a CPU can put off until then.
    lazy_slots = 64.0, "entries", COUNT, Basis::Cited, "§2 row 17: 64 slots for each CPU";
    /// Putting one off.
    lazy_record = 100.0, "ns", COST, Basis::Assumed, "none";
    /// Looking at another CPU's entries in a sweep.
    lazy_look = 10.0, "ns", COST, Basis::Assumed, "none";
    /// Broadcasting up to eight pages.
    broadcast = 150.0, "ns", COST, Basis::Assumed, "none";
    /// Waiting until all CPUs have done so.
    broadcast_wait = 400.0, "ns", COST, Basis::Assumed, "none";
    /// From how many CPUs on Linux broadcasts.
    broadcast_from = 4.0, "CPUs", COUNT, Basis::Cited, "§2 row 20: active on ≥4 CPUs";
    /// What a word that says where each CPU is adds to every crossing between user mode and kernel, both ways.
    mode_word = 40.0, "cycles", COST, Basis::Assumed, "§4 M2: ~40 cycles";
    /// Frames that a pool of freed ones holds before its flush.
    pool = 4096.0, "pages", COUNT, Basis::Assumed, "none";
    /// Pages that a reclaim takes at once.
    reclaim_batch = 32.0, "pages", COUNT, Basis::Cited, "§1 seed 0: SWAP_CLUSTER_MAX";
    /// Pages of one owner in a row on the reclaim's lists: as many as a CPU puts there at once.
    reclaim_run = 14.0, "pages", COUNT, Basis::Assumed, "none (Linux's page vector of 2015)";
    /// What a page of a mapped file costs its reader, reclaim and device included.
    file_page = 50000.0, "ns", COST, Basis::Fitted("target 6, 900 000 interrupts/s before"), "§1 seed 0";
    /// What sending costs on top in a virtual machine: the exit.
    send_exit = 0.0, "cycles", COST, Basis::Assumed, "§5.2 vm";
    /// What delivery takes on top in a virtual machine.
    deliver_exit = 0.0, "ns", COST, Basis::Assumed, "§5.2 vm";
    /// How likely a virtual CPU is not running when an interrupt is sent to it.
    preempted_share = 0.0, "share", SHARE, Basis::Assumed, "§5.2 preempt";
    /// How long it then takes at most until it runs: evenly from nothing to this.
    preempted_most = 6e6, "ns", 0.0..=1e9, Basis::Assumed, "§5.2 preempt U(0, 6 ms)";
    /// 1: a flush leaves out virtual CPUs that do not run; they flush when they do.
    flush_when_run = 0.0, "0 or 1", SWITCH, Basis::Cited, "§5.1 preempted vCPU: PV flush";
    /// A thread's own work between changes of its mappings, in the workload of an allocator.
    allocator_work = 60000.0, "ns", COST, Basis::Assumed, "none";
}

impl Parameters {
    /// Sets one by its name.
    ///
    /// # Errors
    /// A sentence: there is none of that name, or the value makes no sense.
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), String> {
        let Some(slot) = self.slot(name) else {
            return Err(format!("there is no parameter '{name}'"));
        };
        let described = Self::DESCRIPTIONS.iter().find(|described| described.name == name);
        let range = described.map_or(0.0..=0.0, |described| described.range.clone());
        if !range.contains(&value) {
            return Err(format!(
                "'{name}' is {value}, and must be from {} to {}",
                range.start(),
                range.end()
            ));
        }
        *slot = value;
        Ok(())
    }

    /// So many cycles.
    pub fn cycles(&self, cycles: f64) -> Time {
        nanoseconds(cycles / self.gigahertz)
    }
}

/// What the CPUs are: real ones, or a hypervisor's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// No hypervisor.
    Bare,
    /// KVM whose guest exits to send an interrupt through x2APIC.
    Kvm,
    /// KVM on a processor that sends interrupts for its guest.
    Ipiv,
    /// Firecracker, as the project's own host is.
    Firecracker,
}

impl Platform {
    /// All of them.
    pub const ALL: [Platform; 4] = [Platform::Bare, Platform::Kvm, Platform::Ipiv, Platform::Firecracker];

    /// As it is typed.
    pub const fn name(self) -> &'static str {
        match self {
            Platform::Bare => "bare",
            Platform::Kvm => "kvm",
            Platform::Ipiv => "ipiv",
            Platform::Firecracker => "firecracker",
        }
    }

    /// Adds what it costs (§5.2 vm).
    pub fn apply(self, parameters: &mut Parameters) {
        match self {
            Platform::Bare => {}
            Platform::Kvm => parameters.send_exit = 1700.0,
            Platform::Ipiv => parameters.send_exit = 1000.0,
            Platform::Firecracker => parameters.deliver_exit = 28_000.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_its_own_range_and_can_be_set() {
        let mut parameters = Parameters::START;
        for ((name, value), described) in Parameters::START.values().into_iter().zip(Parameters::DESCRIPTIONS)
        {
            assert_eq!(name, described.name);
            assert!(described.range.contains(&value), "{name}");
            assert!(described.meaning.ends_with('.') && !described.source.is_empty(), "{name}");
            parameters.set(name, value).unwrap();
        }
        assert_eq!(parameters, Parameters::START);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_sentence() {
        let mut parameters = Parameters::START;
        assert_eq!(parameters.set("warp", 9.0).unwrap_err(), "there is no parameter 'warp'");
        for value in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
            assert!(parameters.set("gigahertz", value).unwrap_err().contains("from 0.1 to 10"), "{value}");
        }
        assert_eq!(parameters, Parameters::START);
    }
}
