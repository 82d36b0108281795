//! Random bytes: for `getrandom`, `/dev/urandom` and AT_RANDOM.
//!
//! A ChaCha20 stream, seeded once. In deterministic mode the seed comes from the command line, so that the
//! same run draws the same bytes; otherwise from RDRAND where the CPU has it, mixed with the time stamp
//! counter. All CPUs draw from one stream under a lock.

use crate::arch::registers::{random, time_stamp};
use crate::boot::command_line;
use crate::sync::SpinLock;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

static STREAM: SpinLock<Option<ChaCha20Rng>> = SpinLock::new(None);

/// Fills `buffer`.
pub(crate) fn fill(buffer: &mut [u8]) {
    STREAM.lock().get_or_insert_with(seeded).fill_bytes(buffer);
}

fn seeded() -> ChaCha20Rng {
    let options = command_line();
    if options.deterministic {
        return ChaCha20Rng::seed_from_u64(options.seed.unwrap_or(0));
    }
    let mut seed = [0; 32];
    for word in seed.chunks_exact_mut(8) {
        let drawn = random().unwrap_or(0) ^ time_stamp();
        word.copy_from_slice(&drawn.to_le_bytes());
    }
    ChaCha20Rng::from_seed(seed)
}
