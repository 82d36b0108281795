//! The CPUs and how busy they are.

use crate::arch::registers::cpuid;
use crate::process;
use crate::{cpu, task, time};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use core::sync::atomic::{AtomicU64, Ordering};

/// Nanoseconds of one tick of `/proc/stat`.
const TICK: u64 = time::SECOND / 100;

/// A register of CPUID: leaf, subleaf, number (0 = eax to 3 = edx), and the names of its bits.
type Register = (u32, u32, usize, &'static [(u32, &'static str)]);

const FEATURES: [Register; 5] = [
    (
        1,
        0,
        3,
        &[
            (0, "fpu"), (3, "pse"), (4, "tsc"), (5, "msr"), (6, "pae"), (8, "cx8"), (9, "apic"), (11, "sep"),
            (12, "mtrr"), (13, "pge"), (15, "cmov"), (16, "pat"), (19, "clflush"), (23, "mmx"), (24, "fxsr"),
            (25, "sse"), (26, "sse2"),
        ],
    ),
    (0x8000_0001, 0, 3, &[(11, "syscall"), (20, "nx"), (26, "pdpe1gb"), (27, "rdtscp"), (29, "lm")]),
    (
        1,
        0,
        2,
        &[
            (0, "pni"), (1, "pclmulqdq"), (3, "monitor"), (9, "ssse3"), (12, "fma"), (13, "cx16"), (17, "pcid"),
            (19, "sse4_1"), (20, "sse4_2"), (21, "x2apic"), (22, "movbe"), (23, "popcnt"), (25, "aes"),
            (26, "xsave"), (28, "avx"), (29, "f16c"), (30, "rdrand"), (31, "hypervisor"),
        ],
    ),
    (0x8000_0001, 0, 2, &[(0, "lahf_lm"), (5, "abm")]),
    (
        7,
        0,
        1,
        &[
            (0, "fsgsbase"), (3, "bmi1"), (5, "avx2"), (7, "smep"), (8, "bmi2"), (9, "erms"), (10, "invpcid"),
            (16, "avx512f"), (18, "rdseed"), (19, "adx"), (20, "smap"), (23, "clflushopt"), (24, "clwb"),
        ],
    ),
];

fn registers(leaf: u32, subleaf: u32) -> [u32; 4] {
    let result = cpuid(leaf, subleaf);
    [result.eax, result.ebx, result.ecx, result.edx]
}

fn text_of(words: &[u32]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).trim().into()
}

fn flags() -> String {
    let mut flags = String::new();
    for (leaf, subleaf, register, names) in FEATURES {
        let bits = registers(leaf, subleaf)[register];
        for (bit, name) in names.iter().filter(|(bit, _)| bits & 1 << bit != 0) {
            debug_assert!(*bit < 32);
            flags.push_str(name);
            flags.push(' ');
        }
    }
    flags.truncate(flags.trim_end().len());
    flags
}

pub(crate) fn cpuinfo() -> Vec<u8> {
    let [_, b, c, d] = registers(0, 0);
    let vendor = text_of(&[b, d, c]);
    let brand: Vec<u32> = (0x8000_0002..=0x8000_0004).flat_map(|leaf| registers(leaf, 0)).collect();
    let signature = registers(1, 0)[0];
    let family = (signature >> 8 & 0xf) + if signature >> 8 & 0xf == 0xf { signature >> 20 & 0xff } else { 0 };
    let model = signature >> 4 & 0xf | signature >> 12 & 0xf0;
    let sizes = registers(0x8000_0008, 0)[0];
    let hertz = time::time_stamp_hertz();
    let (brand, flags, count) = (text_of(&brand), flags(), cpu::count());
    let mut text = String::new();
    for index in 0..count {
        let rows = [
            ("processor\t", format!("{index}")),
            ("vendor_id\t", vendor.clone()),
            ("cpu family\t", format!("{family}")),
            ("model\t\t", format!("{model}")),
            ("model name\t", brand.clone()),
            ("stepping\t", format!("{}", signature & 0xf)),
            ("cpu MHz\t\t", format!("{}.{:03}", hertz / 1_000_000, hertz / 1000 % 1000)),
            ("physical id\t", String::from("0")),
            ("siblings\t", format!("{count}")),
            ("core id\t\t", format!("{index}")),
            ("cpu cores\t", format!("{count}")),
            ("apicid\t\t", format!("{}", cpu::apic_name(index).identifier)),
            ("fpu\t\t", String::from("yes")),
            ("wp\t\t", String::from("yes")),
            ("flags\t\t", flags.clone()),
            ("address sizes\t", format!("{} bits physical, {} bits virtual", sizes & 0xff, sizes >> 8 & 0xff)),
        ];
        for (name, value) in rows {
            // Writing into a string cannot fail, here and below.
            let _ = writeln!(text, "{name}: {value}");
        }
        text.push('\n');
    }
    text.into_bytes()
}

fn write_stat(text: &mut String, name: &str, [user, system, idle]: [u64; 3]) {
    // Writing into a string cannot fail. Interrupts count for what they interrupt, so their columns are zero.
    let _ = writeln!(text, "{name} {user} 0 {system} {idle} 0 0 0 0 0 0");
}

pub(crate) fn stat() -> Vec<u8> {
    let mut text = String::new();
    let uptime = time::now() / TICK;
    let mut all = [0; 3];
    let mut by_cpu = String::new();
    for cpu in 0..cpu::count() {
        let spent = task::processor_time_of_cpu(cpu);
        let (user, system) = (spent.user / TICK, spent.system / TICK);
        let columns = [user, system, uptime.saturating_sub(user + system)];
        all.iter_mut().zip(columns).for_each(|(sum, column)| *sum += column);
        write_stat(&mut by_cpu, &format!("cpu{cpu}"), columns);
    }
    write_stat(&mut text, "cpu ", all);
    text.push_str(&by_cpu);
    let (_, forks) = process::counts();
    let boot = time::realtime_offset() / time::SECOND;
    let running = task::runnable();
    let _ = writeln!(text, "btime {boot}\nprocesses {forks}\nprocs_running {running}\nprocs_blocked 0");
    text.into_bytes()
}

pub(crate) fn uptime() -> Vec<u8> {
    let hundredths = time::now() / TICK;
    let busy: u64 = (0..cpu::count()).map(|cpu| task::busy_time(cpu) / TICK).sum();
    // The two are read one after the other, so the difference may be less than somebody was told before.
    static TOLD: AtomicU64 = AtomicU64::new(0);
    let idle = (hundredths * cpu::count() as u64).saturating_sub(busy);
    let idle = idle.max(TOLD.fetch_max(idle, Ordering::Relaxed));
    let text = format!("{}.{:02} {}.{:02}\n", hundredths / 100, hundredths % 100, idle / 100, idle % 100);
    text.into_bytes()
}

/// No averages are kept: the load is that of this moment.
pub(crate) fn loadavg() -> Vec<u8> {
    let (threads, _) = process::counts();
    let running = task::runnable();
    let last = process::process_ids().last().copied().unwrap_or(0);
    format!("{running}.00 {running}.00 {running}.00 {running}/{threads} {last}\n").into_bytes()
}
