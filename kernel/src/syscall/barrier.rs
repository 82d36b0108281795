//! `membarrier`: a memory barrier on the CPUs of other threads, so that those need none themselves.
//!
//! Who is interrupted, and why nobody else, is `coherence`'s business. Here are the commands, their errors, and the delayed
//! form's patience.
//!
//! A process registers for what it will ask for. The registrations belong to the address space: threads share them, a
//! forked child starts with a copy, and a new program has none.

use super::{Arguments, Errno};
use crate::cpu;
use crate::interrupt::shootdown::{COHERENCE, begin_wait};
use crate::memory::current_space;
use crate::{task, time};
use coherence::{CpuId, CpuSet, Registration, Space};
use linux_raw_sys::general::membarrier_cmd as abi;

const QUERY: u32 = abi::MEMBARRIER_CMD_QUERY as u32;
const GLOBAL: u32 = abi::MEMBARRIER_CMD_GLOBAL as u32;
const GLOBAL_EXPEDITED: u32 = abi::MEMBARRIER_CMD_GLOBAL_EXPEDITED as u32;
const REGISTER_GLOBAL_EXPEDITED: u32 = abi::MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED as u32;
const PRIVATE_EXPEDITED: u32 = abi::MEMBARRIER_CMD_PRIVATE_EXPEDITED as u32;
const REGISTER_PRIVATE_EXPEDITED: u32 = abi::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED as u32;
const SYNC_CORE: u32 = abi::MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE as u32;
const REGISTER_SYNC_CORE: u32 = abi::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE as u32;
const SEQUENCES: u32 = abi::MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ as u32;
const REGISTER_SEQUENCES: u32 = abi::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ as u32;
const GET_REGISTRATIONS: u32 = abi::MEMBARRIER_CMD_GET_REGISTRATIONS as u32;

/// The answer to `QUERY`.
const SUPPORTED: u32 = GLOBAL
    | GLOBAL_EXPEDITED
    | REGISTER_GLOBAL_EXPEDITED
    | PRIVATE_EXPEDITED
    | REGISTER_PRIVATE_EXPEDITED
    | SYNC_CORE
    | REGISTER_SYNC_CORE
    | SEQUENCES
    | REGISTER_SEQUENCES
    | GET_REGISTRATIONS;

/// How often the delayed form looks whether it is over, in nanoseconds.
const LOOK: u64 = 500_000;

/// `MEMBARRIER_CMD_FLAG_CPU`: only the CPU that the third argument names.
const ONE_CPU: u32 = 1;

/// `membarrier(command, flags, cpu)`.
///
/// `flags` and `cpu` mean something only to the form for restartable sequences.
pub(super) fn membarrier(arguments: &Arguments) -> Result<usize, Errno> {
    let [command, flags, cpu, ..] = *arguments;
    let flags = flags as u32;
    if flags != 0 && (command as u32 != SEQUENCES || flags != ONE_CPU) {
        return Err(Errno::EINVAL);
    }
    let current = current_space().ok_or(Errno::EINVAL)?;
    let space = current.space();
    begin_wait();
    match command as u32 {
        QUERY => return Ok(SUPPORTED as usize),
        GET_REGISTRATIONS => return Ok(registrations(space) as usize),
        GLOBAL => wait_for_grace_period(),
        GLOBAL_EXPEDITED => COHERENCE.global_barrier(),
        REGISTER_GLOBAL_EXPEDITED => COHERENCE.register(space, Registration::Global),
        PRIVATE_EXPEDITED => COHERENCE.barrier(registered(space, Registration::Private)?),
        REGISTER_PRIVATE_EXPEDITED => COHERENCE.register(space, Registration::Private),
        SYNC_CORE => COHERENCE.core_barrier(registered(space, Registration::Cores)?),
        REGISTER_SYNC_CORE => COHERENCE.register(space, Registration::Cores),
        SEQUENCES => restart_sequences(registered(space, Registration::Sequences)?, flags, cpu),
        REGISTER_SEQUENCES => COHERENCE.register(space, Registration::Sequences),
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}

/// The space, if it is registered for exactly that.
fn registered(space: &Space, registration: Registration) -> Result<&Space, Errno> {
    if space.is_registered(registration) { Ok(space) } else { Err(Errno::EPERM) }
}

/// The form for restartable sequences: on all CPUs, or on one. A number that is no CPU's is not an error, as the CPU may just have gone; and
/// as on Linux a negative one means all.
fn restart_sequences(space: &Space, flags: u32, cpu: u64) {
    match usize::try_from(cpu as i32) {
        Ok(cpu) if flags == ONE_CPU => {
            if let Some(cpu) = CpuId::new(cpu) {
                COHERENCE.sequence_barrier_on(space, cpu);
            }
        }
        _ => COHERENCE.sequence_barrier(space),
    }
}

/// The commands by which the space has been registered. As on Linux, whoever registered for SYNC_CORE or RSEQ is listed for the plain
/// form too, although that still wants a registration of its own.
fn registrations(space: &Space) -> u32 {
    [
        (Registration::Global, REGISTER_GLOBAL_EXPEDITED),
        (Registration::Private, REGISTER_PRIVATE_EXPEDITED),
        (Registration::Cores, REGISTER_SYNC_CORE | REGISTER_PRIVATE_EXPEDITED),
        (Registration::Sequences, REGISTER_SEQUENCES | REGISTER_PRIVATE_EXPEDITED),
    ]
    .into_iter()
    .filter(|(registration, _)| space.is_registered(*registration))
    .fold(0, |all, (_, commands)| all | commands)
}

/// The delayed form: until every other CPU has been in the kernel, if only for its timer. It interrupts nobody, and as on Linux
/// no signal ends it. A CPU that runs a program is in the kernel at every heartbeat (`interrupt::timer`).
fn wait_for_grace_period() {
    let others: CpuSet =
        cpu::online().without(cpu::index()).iter().filter_map(CpuId::new).collect();
    let mut period = COHERENCE.begin_grace_period(others);
    while !period.is_over(&COHERENCE) {
        task::prepare_to_sleep();
        task::sleep(Some(time::now() + LOOK));
    }
}
