//! System V's way of sharing: objects with a number, perhaps a key, an owner and rights, which stay until somebody removes them, also
//! when all who used them are gone. Of its three kinds there is shared memory.

mod permission;
mod segment;
mod segments;

pub(crate) use permission::Record;
pub(crate) use segment::{SEGMENT_DEVICE, Segment, Statistics};
pub(crate) use segments::{BOUNDS, SEGMENTS};

/// The key of which every object is a new one.
pub(crate) const PRIVATE: i32 = 0;
/// Numbers of objects are their place plus a multiple of this, so that the number of one that is gone names no other for long.
pub(crate) const PLACES: i32 = 32768;

/// Seconds since 1970.
fn seconds() -> i64 {
    ((crate::time::realtime_offset() + crate::time::now()) / crate::time::SECOND) as i64
}
