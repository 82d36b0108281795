//! `/sys`: the few files of it that C libraries and language runtimes read.

use super::filesystem::SYS;
use super::inode::Generated;
use super::populate::{directory, file, generated};
use super::{Content, Entry};
use crate::memory::FRAMES;
use crate::syscall::Errno;
use ::memory::LargePolicy;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Puts everything below `root`, the root of the file system.
pub(crate) fn populate(root: &Arc<Entry>) -> Result<(), Errno> {
    let cpus = directory(root, "devices/system/cpu", &SYS)?;
    for name in ["online", "possible", "present"] {
        generated(&cpus, name, &SYS, || cpu_range().into_bytes())?;
    }
    generated(&cpus, "offline", &SYS, || b"\n".to_vec())?;
    for cpu in 0..crate::cpu::count() {
        directory(&cpus, &format!("cpu{cpu}"), &SYS)?;
    }
    let clock = directory(root, "devices/system/clocksource/clocksource0", &SYS)?;
    generated(&clock, "current_clocksource", &SYS, || b"tsc\n".to_vec())?;
    let huge = directory(root, "kernel/mm/transparent_hugepage", &SYS)?;
    file(&huge, "enabled", &SYS, Content::Generated(Box::new(LargePagePolicy)), 0o644)?;
    generated(&huge, "defrag", &SYS, || b"always defer defer+madvise madvise [never]\n".to_vec())?;
    generated(&huge, "use_zero_page", &SYS, || b"0\n".to_vec())?;
    generated(&huge, "hpage_pmd_size", &SYS, || b"2097152\n".to_vec())?;
    Ok(())
}

/// Who gets large pages.
struct LargePagePolicy;

const POLICIES: [(&str, LargePolicy); 3] =
    [("always", LargePolicy::Always), ("madvise", LargePolicy::Madvise), ("never", LargePolicy::Never)];

impl Generated for LargePagePolicy {
    fn text(&self) -> Result<Vec<u8>, Errno> {
        let now = FRAMES.large_pages().policy();
        let word = |(name, policy)| if policy == now { format!("[{name}]") } else { String::from(name) };
        Ok(format!("{}\n", POLICIES.map(word).join(" ")).into_bytes())
    }

    fn store(&self, text: &[u8]) -> Result<(), Errno> {
        let wanted = text.strip_suffix(b"\n").unwrap_or(text);
        let found = POLICIES.iter().find(|(name, _)| name.as_bytes() == wanted);
        FRAMES.large_pages().set_policy(found.ok_or(Errno::EINVAL)?.1);
        Ok(())
    }
}

/// All CPUs, as a list of ranges.
fn cpu_range() -> String {
    match crate::cpu::count() {
        1 => String::from("0\n"),
        count => format!("0-{}\n", count - 1),
    }
}
