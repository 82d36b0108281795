//! Where things are in the kernel's half of every address space, and the borders of the user's half.
//!
//! | addresses | holds |
//! |---|---|
//! | `0 .. USER_END` | the program, 4 KiB pages only |
//! | `DIRECT_MAP ..` | all of RAM, and the device pages the kernel uses, at physical + `DIRECT_MAP` |
//! | `STACKS ..` | kernel stacks, each with an unmapped page below it |
//! | `KERNEL_BASE + 2 MiB ..` | the kernel's image |
//!
//! The entries of the root table above the user's half are made at boot and never change, so every root can copy them.

/// First address that no program may map: one page below the border of the lower canonical half, so that a system
/// call instruction at the very end cannot leave a return address that is not canonical.
pub(crate) const USER_END: u64 = 0x0000_7fff_ffff_f000;
/// Virtual address of physical address 0.
pub(crate) const DIRECT_MAP: u64 = 0xffff_8000_0000_0000;
/// Start of the area of kernel stacks.
pub(crate) const STACKS: u64 = 0xffff_c000_0000_0000;
/// Difference between the link address and the load address of the kernel's image.
pub(crate) const KERNEL_BASE: u64 = 0xffff_ffff_8000_0000;
/// Bytes of the smallest page.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// The direct map's address of a physical address.
pub(crate) const fn direct(physical: u64) -> u64 {
    DIRECT_MAP + physical
}

/// The physical address behind an address of the kernel's image (code, statics).
pub(crate) fn physical_of_image(address: u64) -> u64 {
    address - KERNEL_BASE
}
