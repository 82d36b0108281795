//! What a person should know of each operation that causes interrupts: what it is called, what it does to translations, what
//! Linux does with it, and what its caller can do about it.
//!
//! What is said of Linux holds for 6.1, which is measured against, on x86-64.

use coherence::Cause;

/// An operation, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operation {
    /// What a programmer calls it.
    pub(super) name: &'static str,
    /// What of it needs interrupts: "… interrupts come from" this.
    pub(super) doing: &'static str,
    /// What Linux does with it: a sentence's rest after "Linux".
    pub(super) on_linux: &'static str,
    /// What the program could do instead, as an imperative.
    pub(super) advice: &'static str,
}

const KEEP: &str = "keep memory for reuse instead of giving it back (glibc's malloc: GLIBC_TUNABLES with \
    glibc.malloc.mmap_threshold and trim_threshold), or give back larger pieces: a call costs one round of interrupts, however \
    many pages it covers";

/// First writes to pages that were only read before: there was no fork since which they could be shared.
const FIRST_WRITES: (&str, &str, &str, &str) = (
    "copy-on-write",
    "first writes to pages that were read before (of zeroes, or of a private file mapping)",
    "too interrupts the CPUs that run other threads, for every page that is copied",
    "write to fresh memory before other threads read it, or have it filled at once (MAP_POPULATE, MADV_POPULATE_WRITE)",
);

const SPAWN: &str = "start programs with posix_spawn or vfork, which share the memory instead of copying it, or fork before the \
    threads start and the memory is filled";

impl Operation {
    /// What is known of a cause, in a program that has called `fork` or has not.
    pub(super) fn of(cause: Cause, forked: bool) -> Self {
        let (name, doing, on_linux, advice) = match cause {
            Cause::Munmap => (
                "munmap",
                "unmapping pages",
                "too interrupts every CPU that has the address space loaded and is not idle, once for each call",
                KEEP,
            ),
            Cause::Mmap => (
                "mmap over an older mapping",
                "replacing mapped pages",
                "too interrupts every CPU that has the address space loaded and is not idle, once for each call",
                "use the mapping again instead of mapping over it",
            ),
            Cause::Mprotect => (
                "mprotect",
                "taking permissions away from pages",
                "flushes on every change of permissions, also on one that only adds some",
                "change larger ranges at once, or map the memory twice, with the one permission and with the other, instead of \
                 switching back and forth",
            ),
            Cause::Dontneed => (
                "madvise(MADV_DONTNEED)",
                "dropping pages",
                "too interrupts every CPU that has the address space loaded and is not idle, once for each call",
                "let the allocator give memory back less often and in larger pieces (jemalloc: dirty_decay_ms; glibc: \
                 GLIBC_TUNABLES with glibc.malloc.trim_threshold)",
            ),
            Cause::Free => (
                "madvise(MADV_FREE)",
                "giving pages up",
                "too interrupts every CPU that has the address space loaded and is not idle, once for each call",
                "let the allocator give memory back less often and in larger pieces (jemalloc: dirty_decay_ms)",
            ),
            Cause::Madvise => (
                "madvise",
                "advice that changes pages",
                "too interrupts every CPU that has the address space loaded and is not idle",
                "give advice for larger ranges at once",
            ),
            Cause::Mremap => (
                "mremap",
                "moving pages to another address",
                "flushes once for each page table that pages are moved out of, so several times for a large move",
                "leave buffers room to grow where they are (realloc of a large block moves it this way)",
            ),
            Cause::Brk => ("brk", "shrinking the heap", "does it as it does munmap", KEEP),
            Cause::Fork => (
                "fork",
                "taking the write permission away from all private pages",
                "too does so once for each fork, on every CPU that runs one of the threads",
                SPAWN,
            ),
            Cause::CopyOnWrite if !forked => FIRST_WRITES,
            Cause::CopyOnWrite => (
                "copy-on-write",
                "first writes to pages shared since a fork",
                "too interrupts the CPUs that run other threads, for every page that is copied",
                SPAWN,
            ),
            Cause::Truncate => (
                "truncation of mapped files",
                "pages beyond a file's new end",
                "too interrupts every CPU that has the file mapped and loaded",
                "unmap a file before it is made shorter, or write a new one instead",
            ),
            Cause::Reclaim => (
                "reclaim",
                "taking pages back",
                "too flushes pages that it takes back in batches, on every CPU that uses one of the address spaces",
                "give the program more memory",
            ),
            Cause::Writeback => (
                "writeback",
                "writing pages of files out",
                "takes the permission to write away from each page of a mapped file before it writes it out, with a flush for each",
                "write to files with write(2), or to mappings less often",
            ),
            Cause::Merge => (
                "merging",
                "letting pages with equal contents become one",
                "does so only where madvise(MADV_MERGEABLE) asked for it, with two flushes for each page",
                "ask for it only where much memory is equal and little of it is written",
            ),
            Cause::Userfault => (
                "userfaultfd",
                "a monitor's write-protecting of the pages that it watches",
                "too flushes once for each call",
                "let the monitor protect larger ranges at once",
            ),
            Cause::Exec => (
                "execve",
                "address spaces that a new program replaces",
                "interrupts CPUs on which the old address space is still loaded",
                "start fewer short-lived processes",
            ),
            Cause::Exit => (
                "exit",
                "address spaces that end",
                "interrupts CPUs on which the dying address space is still loaded",
                "start fewer short-lived processes",
            ),
            Cause::Membarrier => (
                "membarrier",
                "memory barriers that one thread asks for on behalf of all",
                "interrupts every CPU that runs a thread of the process, also in a system call",
                "ask for barriers less often, say once for a batch of objects to free, or for the delayed form \
                 (MEMBARRIER_CMD_GLOBAL), which interrupts nobody here",
            ),
        };
        Operation { name, doing, on_linux, advice }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_fits_into_its_sentences() {
        for (cause, forked) in Cause::ALL.into_iter().flat_map(|cause| [(cause, false), (cause, true)]) {
            let operation = Operation::of(cause, forked);
            for text in [operation.name, operation.doing, operation.on_linux, operation.advice] {
                assert!(!text.is_empty() && !text.ends_with('.') && !text.contains("  "), "{text}");
            }
            assert!(!operation.advice.starts_with(char::is_uppercase), "{}", operation.advice);
        }
    }
}
