//! Whether a file can be a Linux kernel that we could start, seen from its header before anything is started.
//!
//! The header is that of the x86 boot protocol (Linux: Documentation/arch/x86/boot.rst). It says how long the file must be, so one
//! that was cut off is found out too.

/// Where the header says how many sectors of 512 bytes precede the kernel proper, less one.
const SETUP_SECTORS: usize = 0x1f1;
/// How long the kernel proper is, in units of 16 bytes.
const KERNEL_SIZE: usize = 0x1f4;
const BOOT_FLAG: usize = 0x1fe;
const MAGIC: usize = 0x202;
const VERSION: usize = 0x206;
/// Bit 0: there is an entry in 64-bit mode, so it is a kernel for x86-64.
const FURTHER_FLAGS: usize = 0x236;
/// The first version with [`FURTHER_FLAGS`] (2.12).
const OLDEST: u16 = 0x20c;

/// Checks that `content` is a whole bzImage for x86-64.
///
/// # Errors
/// What it is instead.
pub(super) fn check(content: &[u8]) -> Result<(), String> {
    let bytes = |at: usize, count: usize| content.get(at..at + count);
    let half = |at: usize| bytes(at, 2).map(|two| u16::from_le_bytes([two[0], two[1]]));
    if content.starts_with(b"\x7fELF") {
        return Err(
            "it is an ELF file; the bzImage is needed (arch/x86/boot/bzImage of a kernel's build)".into()
        );
    }
    if half(BOOT_FLAG) != Some(0xaa55) || bytes(MAGIC, 4) != Some(b"HdrS") {
        return Err("it is not a bzImage".into());
    }
    let version = half(VERSION).unwrap_or(0);
    if version < OLDEST || half(FURTHER_FLAGS).unwrap_or(0) & 1 == 0 {
        return Err("it is not a kernel for 64-bit processors".into());
    }
    let setup = match content[SETUP_SECTORS] {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let kernel =
        bytes(KERNEL_SIZE, 4).map_or(0, |four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]));
    let whole = (setup + 1) * 512 + kernel as usize * 16;
    if content.len() < whole {
        return Err(format!("it is cut off: {} of {whole} bytes", content.len()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> Vec<u8> {
        let mut image = vec![0; 2 * 512 + 160];
        image[SETUP_SECTORS] = 1;
        image[KERNEL_SIZE] = 10;
        image[BOOT_FLAG..BOOT_FLAG + 2].copy_from_slice(&[0x55, 0xaa]);
        image[MAGIC..MAGIC + 4].copy_from_slice(b"HdrS");
        image[VERSION..VERSION + 2].copy_from_slice(&[0x0f, 0x02]);
        image[FURTHER_FLAGS] = 0x7f;
        image
    }

    #[test]
    fn a_whole_image_passes() {
        assert_eq!(check(&image()), Ok(()));
    }

    #[test]
    fn everything_else_is_named() {
        let refusal = |content: &[u8]| check(content).unwrap_err();
        assert!(refusal(b"").contains("not a bzImage"));
        assert!(refusal(&[0; 4096]).contains("not a bzImage"));
        assert!(refusal(b"\x7fELF\x02\x01\x01").contains("ELF"));
        assert!(refusal(&image()[..1183]).contains("cut off: 1183 of 1184"));
        assert!(refusal(&image()[..0x210]).contains("64-bit"));
        let mut small = image();
        small[FURTHER_FLAGS] = 0;
        assert!(refusal(&small).contains("64-bit"));
    }
}
