//! Virtio disks on the first PCI bus, where the emulator puts all devices. The firmware has given them addresses and interrupt
//! lines.

use alloc::vec::Vec;

use virtio_drivers::transport::pci::bus::{Command, ConfigurationAccess, DeviceFunction, PciRoot};
use virtio_drivers::transport::pci::{PciTransport, virtio_device_type};
use virtio_drivers::transport::{DeviceType, SomeTransport};

use super::Found;
use super::access::Access;
use crate::arch::port;

/// Where a device's configuration says on which interrupt line the firmware has put it.
const INTERRUPT_LINE: u8 = 0x3c;
/// It is on none.
const NO_LINE: u8 = 0xff;

/// Configuration space through the two ports that every PC has had since PCI.
struct Ports;

impl Ports {
    fn select(device: DeviceFunction, register: u8) {
        const ADDRESS: u16 = 0xcf8;
        const ENABLE: u32 = 1 << 31;
        let place = u32::from(device.bus) << 16 | u32::from(device.device) << 11 | u32::from(device.function) << 8;
        port::write_u32(ADDRESS, ENABLE | place | u32::from(register & !3));
    }
}

const DATA: u16 = 0xcfc;

impl ConfigurationAccess for Ports {
    fn read_word(&self, device: DeviceFunction, register: u8) -> u32 {
        Self::select(device, register);
        port::read_u32(DATA)
    }

    fn write_word(&mut self, device: DeviceFunction, register: u8, word: u32) {
        Self::select(device, register);
        port::write_u32(DATA, word);
    }

    #[allow(unsafe_code, reason = "declared so; the ports are used on one CPU while it boots, so nothing comes between")]
    unsafe fn unsafe_clone(&self) -> Self {
        Self
    }
}

/// The disks there. On a board without the bus all reads give ones, which is nothing.
pub(super) fn find() -> Vec<Found> {
    let mut root = PciRoot::new(Ports);
    let is_disk = |found: &(DeviceFunction, _)| virtio_device_type(&found.1) == Some(DeviceType::Block);
    let devices: Vec<DeviceFunction> = root.enumerate_bus(0).filter(is_disk).map(|(device, _)| device).collect();
    let mut found = Vec::new();
    for device in devices {
        let line = (Ports.read_word(device, INTERRUPT_LINE) & 0xff) as u8;
        if line == NO_LINE {
            log::error!("the disk at {device} is left out: it has no interrupt line");
            continue;
        }
        let (_, command) = root.get_status_command(device);
        let needed = Command::MEMORY_SPACE | Command::BUS_MASTER;
        root.set_command(device, (command | needed) - Command::INTERRUPT_DISABLE);
        match PciTransport::new::<Access, _>(&mut root, device) {
            Ok(transport) => found.push(Found { transport: SomeTransport::Pci(transport), line: u32::from(line) }),
            Err(error) => log::error!("the disk at {device} is left out: {error}"),
        }
    }
    found
}
