//! Virtio disks on no bus: the emulator names their addresses on the kernel's command line, on the board `microvm`.
#![allow(unsafe_code)]

use alloc::vec::Vec;

use virtio_drivers::transport::mmio::MmioTransport;
use virtio_drivers::transport::{DeviceType, SomeTransport, Transport};

use super::Found;
use super::access::map_registers;
use crate::boot::command_line;

/// The disks there. The emulator fills its slots from the last to the first; disks come in the order in which it was given them.
pub(super) fn find() -> Vec<Found> {
    let mut devices: Vec<_> = command_line().devices().collect();
    devices.sort_by_key(|device| core::cmp::Reverse(device.address));
    let mut found = Vec::new();
    for device in devices {
        let Some(registers) = map_registers(device.address, device.bytes) else { continue };
        // SAFETY: the command line says that a device's registers are there, and they are mapped; nobody else uses them.
        match unsafe { MmioTransport::new(registers.cast(), device.bytes as usize) } {
            Ok(transport) if transport.device_type() == DeviceType::Block => {
                found.push(Found { transport: SomeTransport::Mmio(transport), line: device.line });
            }
            Ok(_) => {}
            Err(error) => log::error!("the device at {:#x} is left out: {error}", device.address),
        }
    }
    found
}
