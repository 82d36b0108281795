//! What to show when a guest failed: the end of its kernel's log, and where each of its CPUs stands.

use std::fmt::Write;

use crate::kernel_image::Symbols;
use crate::monitor::Monitor;
use crate::session::Names;

/// Lines of the kernel's log that are shown.
const LOG_LINES: usize = 60;
/// Lines of Linux's complaints that are shown: a panic with its reason, without all of its registers.
const LINUX_LINES: usize = 20;
/// Frames of a backtrace that are followed.
const FRAMES: usize = 24;
/// The lowest address of the kernel's half.
pub(crate) const KERNEL_HALF: u64 = 0xffff_8000_0000_0000;

/// Stops every CPU and says where it stands.
pub(crate) fn examine(monitor: &mut Monitor, cpus: u32, names: Names) -> String {
    if monitor.stop().is_err() {
        return "the emulator does not answer".into();
    }
    examine_as_they_stand(monitor, cpus, names)
}

/// The registers of every CPU, and for those in the kernel a backtrace by frame pointers. Of a CPU that is held inside a block of
/// instructions, registers may be those from the block's beginning.
pub(crate) fn examine_as_they_stand(monitor: &mut Monitor, cpus: u32, names: Names) -> String {
    let mut text = String::new();
    for cpu in 0..cpus as usize {
        let Some(registers) = monitor.ask("info registers", cpu) else {
            let _ = writeln!(text, "CPU {cpu}: the emulator does not answer");
            break;
        };
        let instruction = register(&registers, "RIP").unwrap_or(0);
        let halted = registers.contains("HLT=1");
        let place = names.place(instruction);
        let doing = if halted { "halted" } else { "running" };
        let _ = writeln!(text, "CPU {cpu}, {doing} at {instruction:#018x}{place}");
        if !halted {
            let general = registers.lines().filter(|line| line.starts_with('R') || line.starts_with("CR"));
            for line in general {
                let _ = writeln!(text, "    {line}");
            }
        }
        backtrace(monitor, cpu, register(&registers, "RBP").unwrap_or(0), names, &mut text);
    }
    text
}

/// Follows the chain of frame pointers through the kernel's memory.
fn backtrace(monitor: &mut Monitor, cpu: usize, mut frame: u64, names: Names, text: &mut String) {
    for _ in 0..FRAMES {
        if frame < KERNEL_HALF || !frame.is_multiple_of(8) {
            return;
        }
        let Some(answer) = monitor.ask(&format!("x/2gx {frame:#x}"), cpu) else {
            return;
        };
        let words: Vec<u64> = answer.split_whitespace().filter_map(hexadecimal).collect();
        let [next, return_address] = words[..] else { return };
        if return_address < KERNEL_HALF {
            return;
        }
        let place = names.place(return_address);
        let _ = writeln!(text, "    called from {return_address:#018x}{place}");
        if next <= frame {
            return;
        }
        frame = next;
    }
}

/// The value of `NAME=hexadecimal` in QEMU's register dump.
fn register(dump: &str, name: &str) -> Option<u64> {
    let start = dump.find(&format!("{name}="))? + name.len() + 1;
    let digits = dump[start..].split(|character: char| !character.is_ascii_hexdigit()).next()?;
    u64::from_str_radix(digits, 16).ok()
}

fn hexadecimal(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

/// The whole story of a failure, for a person.
pub(crate) fn describe(sentence: &str, log: &[u8], state: Option<&str>, kernel: &Symbols) -> String {
    let log = String::from_utf8_lossy(log);
    let lines: Vec<_> = log.lines().collect();
    let shown = &lines[lines.len().saturating_sub(LOG_LINES)..];
    let mut text = format!("{sentence}\n");
    if shown.is_empty() {
        text.push_str("the kernel's log is empty\n");
    } else {
        let omitted = lines.len() - shown.len();
        let first = if omitted > 0 {
            format!(" (its last {LOG_LINES} lines; --kernel-log keeps it all)")
        } else {
            String::new()
        };
        let _ = writeln!(text, "the kernel's log{first}:");
        for line in shown {
            let _ = writeln!(text, "  {}", kernel.annotate(line));
        }
    }
    if let Some(state) = state {
        text.push_str("the machine's state:\n");
        for line in state.lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// The same for Linux, in few words: where its CPUs stand tells nobody anything, but what it or the first program complained of may.
pub(crate) fn describe_linux(sentence: &str, spoke: bool, log: &[u8], console: &[u8]) -> String {
    let mut text = if spoke {
        format!("on Linux, {sentence}")
    } else {
        format!("Linux did not start: {sentence} (an image for other machines, or too little --memory?)")
    };
    let complaints = [console, log].map(String::from_utf8_lossy);
    let lines: Vec<_> = complaints
        .iter()
        .flat_map(|text| text.lines())
        .map(str::trim_end)
        .filter(|line| !line.is_empty() && !line.contains(protocol::LINUX_FIRST_WORDS))
        .collect();
    for line in &lines[lines.len().saturating_sub(LINUX_LINES)..] {
        let _ = write!(text, "\n  {line}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_read_from_qemus_dump() {
        let dump = "RAX=0000000000000001 RBX=ffffffff80001234\nRIP=ffffffff80005678 RFL=00000246 HLT=1\n";
        assert_eq!(register(dump, "RBX"), Some(0xffff_ffff_8000_1234));
        assert_eq!(register(dump, "RIP"), Some(0xffff_ffff_8000_5678));
        assert_eq!(register(dump, "R99"), None);
    }

    #[test]
    fn a_long_log_is_cut_at_its_beginning() {
        let log: String = (0..100).map(|line| format!("line {line}\n")).collect();
        let story = describe("it failed", log.as_bytes(), Some("CPU 0"), &Symbols::default());
        assert!(story.starts_with("it failed\n"));
        assert!(!story.contains("line 39\n") && story.contains("line 40\n") && story.contains("line 99\n"));
        assert!(story.ends_with("  CPU 0"));
    }

    #[test]
    fn a_failure_on_linux_is_told_in_few_words() {
        let first = b"linux-init: ticks_at_start=5\n";
        let endless = describe_linux("the program did not end within 8 s", true, first, b"");
        assert_eq!(endless, "on Linux, the program did not end within 8 s");
        let log = [&first[..], b"linux-init: mount the disk, as ext4: Invalid argument\n"].concat();
        let console: String = (0..30).map(|line| format!("complaint {line}\r\n")).collect();
        let story = describe_linux("our first program there gave up", true, &log, console.as_bytes());
        assert!(story.ends_with("\n  linux-init: mount the disk, as ext4: Invalid argument"), "{story}");
        assert!(!story.contains("complaint 10\n") && story.contains("complaint 11\n"), "{story}");
        assert!(
            describe_linux("it is silent", false, b"", b"")
                .starts_with("Linux did not start: it is silent (")
        );
    }
}
