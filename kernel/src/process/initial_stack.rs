//! The stack that a program finds: strings at the top, then the auxiliary vector, the environment and the
//! arguments.
//!
//! From high to low: eight zero bytes, the path of the program, environment strings, argument strings, the
//! platform's name, sixteen random bytes, padding to 16; then the words that `rsp` points to: argc, argv...,
//! NULL, envp..., NULL, auxv pairs. `rsp` is a multiple of 16 at the first instruction.
//!
//! The whole is built in kernel memory and copied once, so that nothing here can fail half way.

use super::image::PAGE;
use crate::syscall::Errno;
use alloc::vec::Vec;
use linux_raw_sys::auxvec;

/// Longest single string, with its NUL (MAX_ARG_STRLEN).
pub(crate) const STRING_MAX: usize = 32 * PAGE as usize;
/// Least room for strings and pointers, whatever RLIMIT_STACK says.
const ROOM_MIN: u64 = 32 * PAGE;
/// Most room: three quarters of the usual 8 MiB stack.
pub(crate) const ROOM_MAX: u64 = 6 << 20;
const PLATFORM: &[u8] = b"x86_64\0";

/// Arguments and environment of a program, each string without its NUL.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arguments {
    /// `argv`.
    pub(crate) arguments: Vec<Vec<u8>>,
    /// `envp`.
    pub(crate) environment: Vec<Vec<u8>>,
}

impl Arguments {
    /// Checks that the strings and their pointers fit beside a stack of `stack_limit` bytes.
    ///
    /// # Errors
    /// E2BIG.
    pub(crate) fn check(&self, path: &[u8], stack_limit: u64) -> Result<(), Errno> {
        let room = (stack_limit / 4).clamp(ROOM_MIN, ROOM_MAX);
        let mut used = path.len() as u64 + 1;
        for string in self.arguments.iter().chain(&self.environment) {
            if string.len() >= STRING_MAX {
                return Err(Errno::E2BIG);
            }
            used += string.len() as u64 + 1 + 8;
        }
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

/// A stack ready to be copied.
#[derive(Debug)]
pub(crate) struct InitialStack {
    /// Lowest address written, and the program's first `rsp`.
    pub(crate) pointer: u64,
    /// What goes there, up to the top.
    pub(crate) bytes: Vec<u8>,
    /// Where the argument strings are, for `/proc/PID/cmdline`.
    pub(crate) arguments: core::ops::Range<u64>,
    /// Where the environment strings are.
    pub(crate) environment: core::ops::Range<u64>,
}

impl InitialStack {
    /// Lays the stack out below `top`, which must be a multiple of the page size.
    pub(crate) fn build(top: u64, path: &[u8], strings: &Arguments, facts: &Facts) -> InitialStack {
        let total = |list: &[Vec<u8>]| list.iter().map(|one| one.len() as u64 + 1).sum::<u64>();
        let path_at = top - 8 - (path.len() as u64 + 1);
        let environment_at = path_at - total(&strings.environment);
        let arguments_at = environment_at - total(&strings.arguments);
        let platform_at = arguments_at - PLATFORM.len() as u64;
        let random_at = (platform_at - 16) & !15;

        let mut words = Vec::new();
        words.push(strings.arguments.len() as u64);
        push_pointers(&mut words, arguments_at, &strings.arguments);
        push_pointers(&mut words, environment_at, &strings.environment);
        push_auxiliary(&mut words, facts, path_at, platform_at, random_at);

        let pointer = (random_at - words.len() as u64 * 8) & !15;
        let mut bytes = Vec::with_capacity((top - pointer) as usize);
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes.resize((random_at - pointer) as usize, 0);
        bytes.extend(facts.random);
        bytes.resize((platform_at - pointer) as usize, 0);
        bytes.extend(PLATFORM);
        for string in strings.arguments.iter().chain(&strings.environment) {
            bytes.extend(string);
            bytes.push(0);
        }
        bytes.extend(path);
        bytes.resize((top - pointer) as usize, 0);
        InitialStack {
            pointer,
            bytes,
            arguments: arguments_at..environment_at,
            environment: environment_at..path_at,
        }
    }
}

fn push_pointers(words: &mut Vec<u64>, mut address: u64, strings: &[Vec<u8>]) {
    for string in strings {
        words.push(address);
        address += string.len() as u64 + 1;
    }
    words.push(0);
}

fn push_auxiliary(words: &mut Vec<u64>, facts: &Facts, path: u64, platform: u64, random: u64) {
    let [user, effective_user, group, effective_group] = facts.identities.map(u64::from);
    let secure = user != effective_user || group != effective_group;
    let entries = [
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
    ];
    words.extend(entries.iter().flat_map(|&(kind, value)| [u64::from(kind), value]));
}
