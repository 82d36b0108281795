//! Wall-clock time: what the battery-backed clock said at boot, plus time since boot.

use core::sync::atomic::{AtomicU64, Ordering};

use super::SECOND;
use crate::arch::port;

/// Nanoseconds between 1970 and boot; 0 until read or set.
static OFFSET: AtomicU64 = AtomicU64::new(0);

/// Nanoseconds to add to `now` to get the time since 1970.
pub(crate) fn realtime_offset() -> u64 {
    OFFSET.load(Ordering::Relaxed)
}

/// Sets the wall clock.
pub(crate) fn set_realtime_offset(nanoseconds: u64) {
    OFFSET.store(nanoseconds, Ordering::Relaxed);
}

fn register(index: u8) -> u64 {
    port::write_u8(0x70, index);
    u64::from(port::read_u8(0x71))
}

/// Reads the clock chip. A machine without one keeps counting from 1970.
pub(crate) fn read_clock() {
    if register(0x0d) == 0xff {
        return;
    }
    while register(0x0a) & 0x80 != 0 {
        core::hint::spin_loop();
    }
    let format = register(0x0b);
    let binary = |value: u64| if format & 4 != 0 { value } else { (value >> 4) * 10 + (value & 15) };
    let [second, minute, day, month, year] = [0, 2, 7, 8, 9].map(|index| binary(register(index)));
    let raw_hour = register(4);
    let mut hour = binary(raw_hour & 0x7f);
    if format & 2 == 0 {
        hour = hour % 12 + if raw_hour & 0x80 != 0 { 12 } else { 0 };
    }
    let days = days_since_1970(2000 + year, month, day);
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second;
    set_realtime_offset((seconds * SECOND).saturating_sub(super::now()));
}

/// Days of the Gregorian calendar, counting years from March so that the leap day comes last.
fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}
