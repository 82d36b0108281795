//! `rseq`: where a thread has its restartable sequences.

use super::{Arguments, Errno};
use crate::process::sequence;

/// `RSEQ_FLAG_UNREGISTER`.
const UNREGISTER: u32 = 1;

/// `rseq(address, size, flags, signature)`.
pub(super) fn rseq(arguments: &Arguments) -> Result<usize, Errno> {
    let [address, size, flags, signature, ..] = *arguments;
    // Only 32 bits of these count.
    let (size, signature) = (u64::from(size as u32), signature as u32);
    match flags as u32 {
        0 => sequence::register(address, size, signature)?,
        UNREGISTER => sequence::unregister(address, size, signature)?,
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}
