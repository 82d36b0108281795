//! The stack that a program finds: strings at the top, then the auxiliary vector, the environment and the
//! arguments.
//!
//! From high to low: eight zero bytes, the path of the program, environment strings, argument strings, the
//! platform's name, sixteen random bytes, padding to 16; then the words that `rsp` points to: argc, argv...,
//! NULL, envp..., NULL, auxv pairs. `rsp` is a multiple of 16 at the first instruction.
//!
//! First the places are planned, then everything is written through the kernel's own map of the new program's
//! memory.

use super::image::PAGE;
use super::strings::Strings;
use crate::syscall::Errno;
use alloc::vec::Vec;
use core::ops::Range;
use linux_raw_sys::auxvec;

/// Longest single string, with its NUL (MAX_ARG_STRLEN).
pub(crate) const STRING_MAX: usize = 32 * PAGE as usize;
/// Least room for strings and pointers, whatever RLIMIT_STACK says.
const ROOM_MIN: u64 = 32 * PAGE;
/// Most room: three quarters of the usual 8 MiB stack.
pub(crate) const ROOM_MAX: u64 = 6 << 20;
const PLATFORM: &[u8] = b"x86_64\0";

/// Arguments and environment of a program.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    /// `argv`.
    pub(crate) arguments: Strings,
    /// `envp`.
    pub(crate) environment: Strings,
}

impl Arguments {
    /// Checks that the strings and their pointers fit beside a stack of `stack_limit` bytes.
    ///
    /// # Errors
    /// E2BIG.
    pub(crate) fn check(&self, path: &[u8], stack_limit: u64) -> Result<(), Errno> {
        let room = (stack_limit / 4).clamp(ROOM_MIN, ROOM_MAX);
        let of = |strings: &Strings| strings.bytes() + strings.count() as u64 * 8;
        let used = path.len() as u64 + 1 + of(&self.arguments) + of(&self.environment);
        if used > room { Err(Errno::E2BIG) } else { Ok(()) }
    }
}

/// The entries of the auxiliary vector that depend on the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// AT_PHDR.
    pub(crate) headers_address: u64,
    /// AT_PHNUM.
    pub(crate) header_count: u64,
    /// AT_BASE: where the interpreter is, or 0.
    pub(crate) interpreter_base: u64,
    /// AT_ENTRY: the program's own first instruction.
    pub(crate) entry: u64,
    /// AT_UID, AT_EUID, AT_GID, AT_EGID.
    pub(crate) identities: [u32; 4],
    /// AT_HWCAP: CPUID leaf 1, EDX.
    pub(crate) hardware: u64,
    /// AT_HWCAP2: bit 1 says that user mode may use FSGSBASE instructions.
    pub(crate) hardware_more: u64,
    /// AT_MINSIGSTKSZ.
    pub(crate) signal_stack: u64,
    /// AT_RANDOM's bytes.
    pub(crate) random: [u8; 16],
}

/// Copies bytes to an address of the new program.
pub(crate) type Put<'a> = &'a mut dyn FnMut(u64, &[u8]) -> Result<(), Errno>;

/// Where everything goes.
#[derive(Debug)]
pub(crate) struct InitialStack {
    /// Lowest address written, and the program's first `rsp`.
    pub(crate) pointer: u64,
    /// Where the argument strings are, for `/proc/PID/cmdline`.
    pub(crate) arguments: Range<u64>,
    /// Where the environment strings are.
    pub(crate) environment: Range<u64>,
    random: u64,
    platform: u64,
}

impl InitialStack {
    /// Lays the stack out below `top`, which must be a multiple of the page size.
    pub(crate) fn plan(top: u64, path: &[u8], strings: &Arguments) -> InitialStack {
        let path_at = top - 8 - (path.len() as u64 + 1);
        let environment = path_at - strings.environment.bytes();
        let arguments = environment - strings.arguments.bytes();
        let platform = arguments - PLATFORM.len() as u64;
        let random = (platform - 16) & !15;
        // argc, the two lists' ends, and the pairs.
        let words = strings.arguments.count() + strings.environment.count() + 3 + 2 * AUXILIARY;
        InitialStack {
            pointer: (random - words as u64 * 8) & !15,
            arguments: arguments..environment,
            environment: environment..path_at,
            random,
            platform,
        }
    }

    /// Writes it. What is not written is zero already.
    ///
    /// # Errors
    /// What `put` returns.
    pub(crate) fn write(
        &self,
        path: &[u8],
        strings: &Arguments,
        facts: &Facts,
        put: Put<'_>,
    ) -> Result<(), Errno> {
        self.write_words(strings, facts, put)?;
        put(self.random, &facts.random)?;
        put(self.platform, PLATFORM)?;
        for (list, start) in
            [(&strings.arguments, self.arguments.start), (&strings.environment, self.environment.start)]
        {
            let mut at = start;
            for piece in list.pieces() {
                put(at, piece)?;
                at += piece.len() as u64;
                crate::task::yield_if_needed();
            }
        }
        put(self.environment.end, path)
    }

    /// The words from `rsp` on, a page at a time.
    fn write_words(&self, strings: &Arguments, facts: &Facts, put: Put<'_>) -> Result<(), Errno> {
        let auxiliary = auxiliary(facts, self.environment.end, self.platform, self.random);
        let words = core::iter::once(strings.arguments.count() as u64)
            .chain(addresses(&strings.arguments, self.arguments.start))
            .chain(core::iter::once(0))
            .chain(addresses(&strings.environment, self.environment.start))
            .chain(core::iter::once(0))
            .chain(auxiliary.into_iter().flat_map(|(kind, value)| [u64::from(kind), value]));
        let mut at = self.pointer;
        let mut page = Vec::with_capacity(PAGE as usize);
        for word in words {
            page.extend_from_slice(&word.to_le_bytes());
            if page.len() == PAGE as usize {
                put(at, &page)?;
                at += PAGE;
                page.clear();
                crate::task::yield_if_needed();
            }
        }
        put(at, &page)
    }
}

/// The addresses of strings whose stream begins at `start`.
fn addresses(strings: &Strings, start: u64) -> impl Iterator<Item = u64> + '_ {
    strings.starts().map(move |offset| start + offset)
}

/// Pairs of the auxiliary vector.
const AUXILIARY: usize = 20;

fn auxiliary(facts: &Facts, path: u64, platform: u64, random: u64) -> [(u32, u64); AUXILIARY] {
    let [user, effective_user, group, effective_group] = facts.identities.map(u64::from);
    let secure = user != effective_user || group != effective_group;
    [
        (auxvec::AT_HWCAP, facts.hardware),
        (auxvec::AT_PAGESZ, PAGE),
        (auxvec::AT_CLKTCK, 100),
        (auxvec::AT_PHDR, facts.headers_address),
        (auxvec::AT_PHENT, 56),
        (auxvec::AT_PHNUM, facts.header_count),
        (auxvec::AT_BASE, facts.interpreter_base),
        (auxvec::AT_FLAGS, 0),
        (auxvec::AT_ENTRY, facts.entry),
        (auxvec::AT_UID, user),
        (auxvec::AT_EUID, effective_user),
        (auxvec::AT_GID, group),
        (auxvec::AT_EGID, effective_group),
        (auxvec::AT_SECURE, u64::from(secure)),
        (auxvec::AT_RANDOM, random),
        (auxvec::AT_HWCAP2, facts.hardware_more),
        (auxvec::AT_EXECFN, path),
        (auxvec::AT_PLATFORM, platform),
        (auxvec::AT_MINSIGSTKSZ, facts.signal_stack),
        (auxvec::AT_NULL, 0),
    ]
}
