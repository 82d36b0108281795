//! The kernel's command line: words separated by spaces.
//!
//! | word | meaning |
//! |---|---|
//! | `without=NAME,NAME` | turns mechanisms of `coherence` off; `vanilla` is all of them |
//! | `with=NAME,NAME` | turns mechanisms on that are off by default |
//! | `seed=N` | interrupts and preempts at pseudo-random short intervals |
//! | `deterministic` | nothing of the outside enters: fixed clock, fixed random numbers |
//! | `turns` | the emulator runs the CPUs in turns on one host thread: let it turn often |
//! | `suppress=CAUSE,CAUSE` | for tests of the tests: leaves out the flushes of these causes |
//! | `virtio_mmio.device=SIZE@ADDRESS:LINE` | a device that is on no bus: the emulator adds this on the board `microvm` |
//! | `selfcheck` | checks first that the emulator keeps stale translations |

use coherence::{Cause, Switches};

use crate::sync::Once;

/// The parsed command line.
#[derive(Debug)]
pub(crate) struct CommandLine {
    pub(crate) switches: Switches,
    pub(crate) seed: Option<u64>,
    pub(crate) deterministic: bool,
    pub(crate) turns: bool,
    pub(crate) self_check: bool,
    /// By their place in `Cause::ALL`.
    suppressed: [bool; Cause::ALL.len()],
    devices: [Option<Device>; MOST_DEVICES],
}

/// More than the emulator has slots for.
const MOST_DEVICES: usize = 32;

/// A device that is on no bus.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Device {
    /// Physical address of its registers.
    pub(crate) address: u64,
    /// Their size in bytes.
    pub(crate) bytes: u64,
    /// Its interrupt line.
    pub(crate) line: u32,
}

impl Device {
    /// `SIZE@ADDRESS:LINE`: decimal or, behind `0x`, hexadecimal.
    fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        let (bytes, place) = text.split_once('@')?;
        let (address, line) = place.split_once(':')?;
        Some(Self { address: number(address)?, bytes: number(bytes)?, line: u32::try_from(number(line)?).ok()? })
    }
}

impl CommandLine {
    /// Devices that are on no bus.
    pub(crate) fn devices(&self) -> impl Iterator<Item = Device> {
        self.devices.iter().flatten().copied()
    }

    /// Causes whose flushes are to be left out.
    pub(crate) fn suppressed(&self) -> impl Iterator<Item = Cause> {
        Cause::ALL.into_iter().zip(self.suppressed).filter_map(|(cause, is_suppressed)| is_suppressed.then_some(cause))
    }

    fn suppress(&mut self, name: &str) {
        let found = Cause::ALL.iter().position(|cause| cause.name() == name);
        self.suppressed[found.unwrap_or_else(|| panic!("suppress={name}: no such cause"))] = true;
    }

    fn add_device(&mut self, text: &str) {
        let free = self.devices.iter_mut().find(|slot| slot.is_none());
        let slot = free.unwrap_or_else(|| panic!("more than {MOST_DEVICES} devices on the kernel command line"));
        *slot = Some(Device::parse(text).unwrap_or_else(|| panic!("virtio_mmio.device={text}: not SIZE@ADDRESS:LINE")));
    }
}

static COMMAND_LINE: Once<CommandLine> = Once::new();

/// The command line of this boot.
pub(crate) fn command_line() -> &'static CommandLine {
    COMMAND_LINE.expect("the command line")
}

/// Parses the loader's text. A word that is not understood would silently change what is measured: it ends the boot.
///
/// # Panics
/// On a word that is not understood.
pub(super) fn initialise(text: &[u8]) {
    let text = core::str::from_utf8(text).expect("the command line is UTF-8");
    let mut parsed = CommandLine {
        switches: Switches::DEFAULT,
        seed: None,
        deterministic: false,
        turns: false,
        self_check: false,
        suppressed: [false; Cause::ALL.len()],
        devices: [None; MOST_DEVICES],
    };
    for word in text.split_ascii_whitespace() {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        match name {
            "without" => parsed.switches = parsed.switches.without(value).unwrap_or_else(|unknown| panic!("without={}: no such mechanism", unknown.0)),
            "with" => parsed.switches = parsed.switches.with(value).unwrap_or_else(|unknown| panic!("with={}: no such mechanism", unknown.0)),
            "seed" => parsed.seed = Some(value.parse().unwrap_or_else(|_| panic!("seed={value}: not a number"))),
            "deterministic" => parsed.deterministic = true,
            "turns" => parsed.turns = true,
            "suppress" => value.split(',').for_each(|name| parsed.suppress(name)),
            "virtio_mmio.device" => parsed.add_device(value),
            "selfcheck" => parsed.self_check = true,
            _ => panic!("unknown word on the kernel command line: {word}"),
        }
    }
    COMMAND_LINE.set(parsed);
}
