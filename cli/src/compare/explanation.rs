//! The paragraph below the tables: which operation of the program causes its interrupts, what kept others away, what Linux does
//! with the same operation, and what the program could do about it.
//!
//! Every sentence rests on a number of a report and is left out when the number is zero. What a mechanism is worth in interrupts
//! cannot be read off one run, since one change that needs no flush saves as many interrupts as CPUs would have been told; without
//! an ablation the paragraph therefore counts what was avoided in the ledger's own units and claims no more.

use coherence::{Cause, Reason};
use protocol::report::Report;

use super::ablation::Ablation;
use super::operation::Operation;
use super::prose::{count, list, times};
use super::trial::{BARRIER, Counts};
use crate::result::System;
use crate::result::case::Verdict;

/// Fewer interrupts than this are not worth changing a program for.
const FEW: u64 = 100;

/// What the paragraph rests on.
pub(super) struct Evidence<'a> {
    pub(super) ours: &'a Report,
    /// None when that side is absent.
    pub(super) linux: Option<&'a Report>,
    /// How our number of interrupts stands beside Linux's, seen over all runs.
    pub(super) standing: Option<Verdict>,
    /// What switching mechanisms off did, if that was asked for.
    pub(super) ablation: Option<&'a Ablation>,
}

/// One operation's part in the interrupts.
struct Share {
    cause: Cause,
    operation: Operation,
    requests: u64,
    interrupts: u64,
}

impl Evidence<'_> {
    /// The paragraph, in one line.
    pub(super) fn paragraph(&self) -> String {
        let shares = self.shares();
        let mut sentences = vec![self.causes(&shares)];
        sentences.extend(self.whom());
        sentences.extend(match self.ablation {
            Some(ablation) => ablation.sentences(),
            None => self.avoided(shares.is_empty()).into_iter().collect(),
        });
        sentences.extend(self.on_linux(&shares));
        sentences.extend(self.barriers());
        sentences.extend(advice(&shares));
        sentences.join(" ")
    }

    /// Operations that sent interrupts, the greatest share first.
    fn shares(&self) -> Vec<Share> {
        let share = |cause: Cause| Share {
            cause,
            operation: Operation::of(cause, self.ours.total("requested", "fork") > 0),
            requests: self.ours.total("requested", cause.name()),
            interrupts: self.ours.total("sent", cause.name()),
        };
        let mut shares: Vec<_> =
            Cause::ALL.into_iter().map(share).filter(|share| share.interrupts > 0).collect();
        shares.sort_by_key(|share| std::cmp::Reverse(share.interrupts));
        shares
    }

    /// Where the interrupts come from.
    fn causes(&self, shares: &[Share]) -> String {
        let total: u64 = shares.iter().map(|share| share.interrupts).sum();
        match shares {
            [] => self.nothing(),
            [only] if total == 1 => format!("The only interrupt comes from {}.", only.operation.name),
            [only] => {
                format!("All {total} interrupts come from {}: {}.", only.operation.name, only.fan_out())
            }
            [first, others @ ..] => {
                let shown = &others[..others.len().min(2)];
                let rest: u64 = others[shown.len()..].iter().map(|share| share.interrupts).sum();
                let mut parts =
                    vec![format!("{} ({}: {})", first.operation.name, first.interrupts, first.fan_out())];
                parts.extend(
                    shown.iter().map(|share| format!("{} ({})", share.operation.name, share.interrupts)),
                );
                if rest > 0 {
                    parts.push(format!("other operations ({rest})"));
                }
                format!("The {total} interrupts come from {}.", list(&parts))
            }
        }
    }

    /// What is said of a program without interrupts.
    fn nothing(&self) -> String {
        let elsewhere = match self.linux.map(interrupts_on_linux) {
            None => "on Ceasefire",
            Some(0) => "on either side",
            Some(_) => "on Ceasefire",
        };
        let why = match self.ours.sum("requested") {
            0 => "nothing that it did to its memory had to be flushed".to_owned(),
            1 => "its only flush concerned the CPU that asked for it and no other".to_owned(),
            requests => format!("its {requests} flushes concerned the CPU that asked for them and no other"),
        };
        format!("This program causes no coherence interrupts {elsewhere}: {why}.")
    }

    /// What the interrupts met; of interest when some met no user code.
    fn whom(&self) -> Option<String> {
        let received = |mode| self.ours.total("received", mode);
        let (user, elsewhere) = (received("user"), received("kernel") + received("idle"));
        if user + elsewhere == 0 {
            return None;
        }
        const NEEDED: &str = "where no correct kernel can do without if that CPU has used the pages \
                              (docs/guide/comparison.md says why)";
        Some(match (user, elsewhere) {
            (1, 0) => format!("It met user code, {NEEDED}."),
            (0, 1) => {
                "It met no user code, so a kernel that does no more than it must would not have sent it."
                    .into()
            }
            (_, 0) => format!("They met user code, {NEEDED}."),
            (0, _) => {
                "None of them met user code: a kernel that does no more than it must would send none.".into()
            }
            (user, elsewhere) => format!(
                "{user} of them met user code, {NEEDED}; {elsewhere} met the kernel or an idle CPU, where it could."
            ),
        })
    }

    /// What was avoided, as the ledger counts it. That no other CPU was concerned is said already where nothing was sent.
    fn avoided(&self, nothing_sent: bool) -> Option<String> {
        let mut avoided: Vec<_> = Reason::ALL
            .into_iter()
            .map(|reason| (self.ours.total("skipped", reason.name()), reason))
            .filter(|(times, reason)| *times > 0 && !(nothing_sent && *reason == Reason::NoOtherCpu))
            .filter_map(|(times, reason)| Some((times, in_words(reason, times)?)))
            .collect();
        avoided.sort_by_key(|(times, _)| std::cmp::Reverse(*times));
        let words: Vec<_> = avoided.into_iter().take(3).map(|(_, words)| words).collect();
        if words.is_empty() {
            return None;
        }
        let words = words.join("; ");
        Some(format!("Avoided: {words} (--explain measures what each mechanism is worth in interrupts)."))
    }

    /// How Linux fares, and what it does with the operation that matters most.
    fn on_linux(&self, shares: &[Share]) -> Option<String> {
        let theirs = interrupts_on_linux(self.linux?);
        let ours = self.ours.interrupts(System::Ceasefire);
        let operation = match shares.iter().find(|share| share.cause.name() != BARRIER) {
            Some(share) => Some(share.operation),
            // Nothing was sent here; what was avoided may say why Linux sends something.
            None if self.ours.total("skipped", "promotion") > 0 => {
                Some(Operation::of(Cause::Mprotect, false))
            }
            None => None,
        };
        let reason = operation.map(|operation| format!(": it {}", operation.on_linux)).unwrap_or_default();
        let number = count(theirs, "interrupt");
        Some(match (self.standing?, ours, theirs) {
            (_, 0, 0) => return None,
            // There is more to be said of its barriers.
            (_, 0, _) if !shares.is_empty() && operation.is_none() => return None,
            (Verdict::Worse, ours, 0) => {
                format!("Linux has none, so HERE CEASEFIRE IS WORSE, by {}.", count(ours, "interrupt"))
            }
            (Verdict::Worse, ours, theirs) => {
                format!(
                    "Linux has {number}, so HERE CEASEFIRE IS WORSE: it has {} as many.",
                    times(ours, theirs)
                )
            }
            (Verdict::Better, ours, theirs) if ours > 0 && theirs > ours => {
                format!("Linux has {theirs}, {} as many{reason}.", times(theirs, ours))
            }
            (Verdict::Better, ..) => format!("Linux has {number}{reason}."),
            (Verdict::Same, ..) => format!("Linux has {number}, about the same{reason}."),
        })
    }
}

impl Evidence<'_> {
    /// Barriers are no translations, and Linux counts them among other calls.
    fn barriers(&self) -> Option<String> {
        let ours = self.ours.other_calls(System::Ceasefire);
        let theirs = self.linux?.other_calls(System::Linux);
        let on_linux = Operation::of(Cause::Membarrier, false).on_linux;
        (ours > 0).then(|| {
            format!(
                "For its memory barriers Ceasefire sends {} and Linux {theirs}, calls of other kinds included: it {on_linux}.",
                count(ours, "interrupt")
            )
        })
    }
}

fn interrupts_on_linux(report: &Report) -> u64 {
    report.interrupts(System::Linux)
}

impl Share {
    /// "5001 requests, which interrupted 3 other CPUs each".
    fn fan_out(&self) -> String {
        let cpus = |number: u64| count(number, "other CPU");
        match (self.requests, self.interrupts) {
            (0, _) => "requests were not counted".into(),
            (1, interrupts) => format!("one request, which interrupted {}", cpus(interrupts)),
            (requests, interrupts) => {
                let average = interrupts as f64 / requests as f64;
                let whole = average.round();
                let each = if (average - whole).abs() < 0.05 && whole >= 1.0 {
                    format!("{} each", cpus(whole as u64))
                } else if average < 0.1 {
                    "no other CPU most of the time".into()
                } else {
                    format!("{average:.1} other CPUs on average")
                };
                format!("{requests} requests, which interrupted {each}")
            }
        }
    }
}

/// What was avoided for a reason, `times` times; none for what says nothing about other CPUs.
fn in_words(reason: Reason, times: u64) -> Option<String> {
    let changes = count(times, "change");
    let was = if times == 1 { "was" } else { "were" };
    Some(match reason {
        Reason::Promotion => format!("{changes} only added permission and {was} not flushed (promotion)"),
        Reason::CleanWriteRemoved => {
            format!("{changes} took write from pages that nobody had stored to and {was} not flushed (clean)")
        }
        Reason::Unused => {
            format!("{changes} concerned pages that no CPU had used since they were last flushed (unused)")
        }
        Reason::NotPresentBefore => format!("{changes} concerned pages that no CPU could have cached"),
        Reason::NoOtherCpu => {
            format!(
                "{} concerned no other CPU, since none had the address space loaded",
                count(times, "flush")
            )
        }
        Reason::LazyCpu => format!("an idle CPU was left alone {}", often(times)),
        Reason::InterruptPending => {
            format!("an interrupt already on its way served {}", count(times, "further request"))
        }
        Reason::ReachedRemotely => {
            format!("the machine reached a CPU without an interrupt {}", often(times))
        }
        Reason::FlushedBeforeRunning => {
            format!("a virtual CPU that did not run was left to its hypervisor {}", often(times))
        }
        Reason::EpochReached => {
            format!(
                "a CPU had flushed by itself before a page that was taken back was needed {} (epochs)",
                often(times)
            )
        }
        Reason::NotSharing => {
            format!(
                "a CPU that had never come to the memory that changed was spared an interrupt {}",
                often(times)
            )
        }
        Reason::InKernel => format!("a CPU in the kernel was spared an interrupt {}", often(times)),
        Reason::SharedRound => {
            format!("another thread's barrier served {}", count(times, "further call"))
        }
        Reason::NothingToFlush
        | Reason::SoftwareBitsOnly
        | Reason::AccessedOrDirtyOnly
        | Reason::Unchanged => return None,
    })
}

/// "once", "12 times".
fn often(times: u64) -> String {
    if times == 1 { "once".into() } else { format!("{times} times") }
}

/// What the program could do about its greatest share.
fn advice(shares: &[Share]) -> Option<String> {
    let first = shares.first()?;
    let total: u64 = shares.iter().map(|share| share.interrupts).sum();
    if total < FEW {
        return Some("So few are not worth a change of the program.".into());
    }
    Some(format!("What helps against {}: {}.", first.operation.doing, first.operation.advice))
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;
    use crate::compare::trial::Trial;

    fn ours() -> Trial {
        Trial::sample(System::Ceasefire, 0)
    }

    fn linux(interrupts: u64) -> Trial {
        Trial::sample(System::Linux, 0).with("linux", "TLB", [interrupts, 0])
    }

    fn paragraph(ours: &Trial, linux: Option<&Trial>) -> String {
        let count = |trial: &Trial| trial.report.interrupts(trial.run.system);
        let standing = linux.map(|linux| match count(ours).cmp(&count(linux)) {
            Ordering::Less => Verdict::Better,
            Ordering::Equal => Verdict::Same,
            Ordering::Greater => Verdict::Worse,
        });
        let linux = linux.map(|trial| &trial.report);
        Evidence { ours: &ours.report, linux, standing, ablation: None }.paragraph()
    }

    #[test]
    fn a_program_with_no_interrupts_is_told_so() {
        assert_eq!(
            paragraph(&ours(), Some(&linux(0))),
            "This program causes no coherence interrupts on either side: nothing that it did to its memory had to be flushed."
        );
        let alone = ours().with("requested", "munmap", [1, 0]);
        assert_eq!(
            paragraph(&alone, None),
            "This program causes no coherence interrupts on Ceasefire: its only flush concerned the CPU that asked for it and no \
             other."
        );
    }

    #[test]
    fn one_operation_that_matters() {
        let flip = ours()
            .with("requested", "mprotect", [5001, 0])
            .with("sent", "mprotect", [15000, 0])
            .with("received", "user", [0, 15000])
            .with("skipped", "promotion", [5000, 0])
            .with("skipped", "nothing_to_flush", [5006, 0])
            .with("skipped", "lazy_cpu", [1, 0]);
        assert_eq!(
            paragraph(&flip, Some(&linux(30008))),
            "All 15000 interrupts come from mprotect: 5001 requests, which interrupted 3 other CPUs each. They met user code, where \
             no correct kernel can do without if that CPU has used the pages (docs/guide/comparison.md says why). Avoided: \
             5000 changes only added permission and were not flushed (promotion); an idle CPU was left alone once (--explain \
             measures what each mechanism is worth in interrupts). Linux has 30008, twice as many: it flushes on every change of \
             permissions, also on one that only adds some. What helps against taking permissions away from pages: change larger \
             ranges at once, or map the memory twice, with the one permission and with the other, instead of switching back and \
             forth."
        );
    }

    #[test]
    fn several_operations_and_interrupts_that_met_no_user_code() {
        let mixed = ours()
            .with("requested", "munmap", [100, 0])
            .with("sent", "munmap", [240, 0])
            .with("sent", "fork", [3, 0])
            .with("sent", "dontneed", [2, 0])
            .with("sent", "exit", [0, 1])
            .with("received", "user", [0, 200])
            .with("received", "kernel", [40, 0])
            .with("received", "idle", [0, 6]);
        let text = paragraph(&mixed, Some(&linux(120)));
        assert!(
            text.starts_with(
                "The 246 interrupts come from munmap (240: 100 requests, which interrupted 2.4 other CPUs on average), fork (3), \
                 madvise(MADV_DONTNEED) (2) and other operations (1). 200 of them met user code, where no correct kernel can do \
                 without if that CPU has used the pages (docs/guide/comparison.md says why); 46 met the kernel or an idle CPU, where it could. Linux has 120 \
                 interrupts, so HERE CEASEFIRE IS WORSE: it has twice as many. What helps against unmapping pages: keep memory"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_single_interrupt_is_not_worth_a_change() {
        let one = ours().with("requested", "exit", [1, 0]).with("sent", "exit", [1, 0]).with(
            "received",
            "idle",
            [0, 1],
        );
        assert_eq!(
            paragraph(&one, Some(&linux(0))),
            "The only interrupt comes from exit. It met no user code, so a kernel that does no more than it must would not have \
             sent it. Linux has none, so HERE CEASEFIRE IS WORSE, by one interrupt. So few are not worth a change of the program."
        );
    }

    #[test]
    fn what_linux_alone_interrupts_for_is_explained() {
        let promoted = ours().with("requested", "mprotect", [7, 0]).with("skipped", "promotion", [1, 0]);
        let text = paragraph(&promoted, Some(&linux(9)));
        assert!(
            text.starts_with(
                "This program causes no coherence interrupts on Ceasefire: its 7 flushes concerned"
            ),
            "{text}"
        );
        assert!(
            text.contains("Avoided: one change only added permission and was not flushed (promotion)"),
            "{text}"
        );
        assert!(text.ends_with("Linux has 9 interrupts: it flushes on every change of permissions, also on one that only adds some."), "{text}");
        let equal = ours().with("sent", "munmap", [1000, 0]);
        let text = paragraph(&equal, Some(&linux(1000)));
        assert!(text.contains("Linux has 1000 interrupts, about the same: it too"), "{text}");
    }

    #[test]
    fn copies_are_those_of_a_fork_only_if_there_was_one() {
        let copies =
            ours().with("requested", "copy_on_write", [3000, 0]).with("sent", "copy_on_write", [150, 0]);
        let text = paragraph(&copies, None);
        assert!(text.contains("3000 requests, which interrupted no other CPU most of the time."), "{text}");
        assert!(text.contains("first writes to pages that were read before"), "{text}");
        let text = paragraph(&copies.with("requested", "fork", [1, 0]), None);
        assert!(text.contains("shared since a fork: start programs with posix_spawn"), "{text}");
    }

    #[test]
    fn barriers_are_compared_with_calls() {
        let barriers = ours().with("requested", "membarrier", [50, 0]).with("sent", "membarrier", [30, 0]);
        let linux = linux(2).with("linux", "CAL", [152, 10]);
        let text = paragraph(&barriers, Some(&linux));
        assert!(text.starts_with("All 30 interrupts come from membarrier: 50 requests"), "{text}");
        let expected = "For its memory barriers Ceasefire sends 30 interrupts and Linux 160, calls of other kinds included: it \
                        interrupts every CPU that runs a thread of the process";
        assert!(text.contains(expected) && !text.contains("Linux has"), "{text}");
    }
}
