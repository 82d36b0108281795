//! What this crate needs from the machine below it, and what it promises that machine in return.

use crate::{Asked, CpuId, CpuSet, Crossings, Flush, RemoteFlush, Space, Tag};

/// The machine: this CPU, the other CPUs, and this CPU's translation caches.
///
/// Methods without a word about it may be called with interrupts on or off.
///
/// # Safety
///
/// Frames are given to new owners on the strength of what this crate concludes from these methods, so an implementation that
/// breaks a promise below corrupts memory. The implementer also answers for how the kernel around it calls this crate:
///
/// * [`activate`](crate::Coherence::activate), [`go_lazy`](crate::Coherence::go_lazy) and [`leave`](crate::Coherence::leave)
///   are the only code that changes which root a CPU has loaded, and are called on the CPU itself with interrupts off.
/// * A space that a CPU has loaded (also lazily) stays alive until that CPU has loaded another or left.
/// * Between `go_lazy` and the next `activate` the CPU uses no translation of the user half. While it has a space
///   activated, its kernel may do so, if it likes, wherever interrupts are on, since requests then reach it, but only if the platform does not tell of
///   [`crossings`](Platform::crossings). If it does, requests do not reach a CPU in the kernel: it uses user translations only while it is counted as being in user
///   mode. What may come with interrupts off (an NMI) asks [`may_use_user_memory`](crate::Coherence::may_use_user_memory) first.
/// * A CPU that caches an entry for an access has marked it as accessed, in one step in which it finds the entry as it was, and before it uses what it has cached. A kernel says that an entry
///   is [`unused`](crate::policy::Translation::unused) only on such processors.
/// * The interrupt sent by [`interrupt`](Platform::interrupt) ends in
///   [`handle_requests`](crate::Coherence::handle_requests) on each target, once interrupts are on there.
/// * Nobody waits with interrupts off for something that a CPU in [`flush`](crate::Coherence::flush) must do first (a lock it
///   holds, say) without calling [`answer_requests`](crate::Coherence::answer_requests) in the waiting loop.
/// * A change to a table is stored (as hardware would see it) before the flush that covers it is requested.
#[allow(unsafe_code)]
pub unsafe trait Platform: Sync {
    /// The CPU that runs this.
    ///
    /// The crate calls it only where the caller owes it a stable answer: interrupts off, or preemption off.
    fn current_cpu(&self) -> CpuId;

    /// Sends each target the interrupt whose handler calls [`handle_requests`](crate::Coherence::handle_requests): for a flush
    /// or a barrier.
    ///
    /// The implementer owes: everything this CPU stored before is visible to the handler; no target is forgotten; one that
    /// has interrupts off gets it when it turns them on. Several interrupts to a CPU that took none yet may become one.
    /// The crate owes: there is a target, this CPU is none, and every target has run an `activate`. It may have [left](crate::Coherence::leave)
    /// since, and must answer all the same.
    fn interrupt(&self, targets: &CpuSet);

    /// Whether this CPU takes interrupts now. Only asserted on.
    fn interrupts_enabled(&self) -> bool;

    /// Does the work on this CPU with interrupts off, and then restores what was before.
    fn without_interrupts<R>(&self, work: impl FnOnce() -> R) -> R;

    /// How many tags (PCIDs, ASIDs) the crate may give to [`load_root`](Platform::load_root). 1, the default, says that
    /// loading a root drops every user translation.
    fn tags(&self) -> usize {
        1
    }

    /// How many further tags this machine has that every CPU uses for the same space: `load_root` is then given the
    /// [space's own](crate::Space::shared_tag), and a broadcast can name it. Their numbers follow those of the tags above: 7 and
    /// up. 0, the default, says that each CPU chooses tags for itself alone. See [`end_space`](crate::Coherence::end_space).
    fn shared_tags(&self) -> usize {
        0
    }

    /// Begins to drop what other CPUs have cached of a space, without interrupting them: by a broadcast (AMD's `INVLPGB`, Arm's
    /// `TLBI`), for which the space must have a shared tag; or by a call of a hypervisor, with a list of ranges. Returns whether
    /// it has begun. `false`, the default, says that this machine cannot, or not this or not now; then the targets are interrupted.
    ///
    /// The implementer owes, by the time at which [`wait_for_remote_flushes`](Platform::wait_for_remote_flushes) has returned:
    /// * every target has dropped the translations, at whatever page size they are cached, and every upper level that leads
    ///   there, *whatever it has loaded and is doing meanwhile*: a target may be about to load the space, or borrow it, or may
    ///   not run. Under every tag, or under the shared one if there is one.
    /// * what it finds by later walks comes from the tables as they were when this was called, or later;
    /// * stores that it made through what was dropped are visible to all CPUs.
    ///
    /// It need not drop more. A call that succeeds says nothing of earlier requests, and the crate concludes nothing from it.
    ///
    /// The crate owes: this CPU has stored the changes of the tables, and stays the same CPU until it has waited. Interrupts are
    /// on, and a handler may make no call of this crate that flushes.
    fn flush_remotely(&self, order: &RemoteFlush) -> bool {
        let _ = order;
        false
    }

    /// Waits until every remote flush that this CPU began is done on every target: AMD's `TLBSYNC`, Arm's `DSB`. Called on the
    /// CPU that began it, and only if it has begun one. The default is for those that are done when `flush_remotely` returns.
    fn wait_for_remote_flushes(&self) {}

    /// Of these virtual CPUs, those that do not run now and will have dropped everything before they do: the hypervisor has been
    /// given word. The others are interrupted. The default says none, and is for CPUs that are real or whose hypervisor cannot do that.
    ///
    /// The implementer owes for each CPU that is returned: from before this call until it has dropped every user translation and
    /// upper level, under every tag, it executes and walks nothing; it is in no instruction that the hypervisor finishes for it; what it
    /// stored before is visible to all; and what it finds by later walks comes from the tables as they were when this was called, or
    /// later. (The mark and the word are one atomic variable: this exchanges "does not run" for "does not run, flush", and the
    /// hypervisor exchanges whatever is there for "runs", and flushes if that said so.)
    ///
    /// The crate owes: the changes of the tables are stored, and a full fence is passed. It asks for flushes only: for a barrier a CPU
    /// that does not run is interrupted as well.
    fn flush_before_running(&self, targets: &CpuSet) -> CpuSet {
        let _ = targets;
        CpuSet::EMPTY
    }

    /// Whether devices may walk page tables here by themselves, through an IOMMU that shares them. `false`, the default, says that
    /// none is ever [attached](crate::Coherence::attach_device).
    fn has_devices(&self) -> bool {
        false
    }

    /// Has the devices that are attached to a space drop what they have cached of it, and waits until they have.
    ///
    /// The implementer owes, when it returns: no device uses a translation of these addresses that it had cached before the call,
    /// or has an access under way through one; if the flush [frees tables](Flush::frees_tables), none is in an upper level that
    /// leads there; and what they find by later walks comes from the tables as they were when this was called, or later.
    /// A device must be able to fault, as what it has cached may allow less than the tables.
    ///
    /// The crate owes: the entries are changed before. This CPU is pinned, and interrupts are on; CPUs may still use the old ones.
    fn invalidate_devices(&self, space: &Space, flush: &Flush) {
        let _ = (space, flush);
    }

    /// Drops this CPU's translation of one user address under the current tag, at whatever page size it is cached, and
    /// every cached upper level that leads to it.
    ///
    /// The implementer owes: when it returns, no later access of this CPU uses what was dropped, and translations found by
    /// later walks come from the tables as this CPU can see them at this point or later. `invalidate_all` and both loads of a
    /// root owe the same. (On x86 these instructions serialise.)
    fn invalidate_page(&self, address: u64);

    /// Drops all of this CPU's user translations under the current tag, upper levels too.
    fn invalidate_all(&self);

    /// Makes this CPU walk from `root`, under `tag`. Unless `keep`, drops all that is cached under `tag`.
    ///
    /// The implementer owes: after it returns the CPU walks the previous root no more, not even speculatively.
    /// `root` is what [`new_space`](crate::Coherence::new_space) was given. Called with interrupts off.
    fn load_root(&self, root: u64, tag: Tag, keep: bool);

    /// Makes this CPU walk from a root with no user half, which lives forever.
    ///
    /// The same debt as `load_root`; with one tag, drops every user translation. Called with interrupts off.
    fn load_kernel_root(&self);

    /// How often a CPU has crossed between kernel and user mode, so that only CPUs in user mode are interrupted. `None`, the default,
    /// says that nobody counts; then every CPU that uses the space is interrupted, and there are no grace periods.
    ///
    /// The implementer owes: on every way from user mode the CPU itself does what [`leave_user`](crate::Coherence::leave_user)
    /// does, and on every way back, after anything that could still change the user half or what runs, what
    /// [`enter_user`](crate::Coherence::enter_user) does. (A handler that strikes user mode and goes straight back may omit both.)
    /// In between it uses no translation of the user half: it comes to user memory by the kernel's own mappings. A kernel that
    /// does use them, to copy from user addresses, counts that as user mode, with interrupts off around both.
    fn crossings(&self, cpu: CpuId) -> Option<&Crossings> {
        let _ = cpu;
        None
    }

    /// Called by [`handle_requests`](crate::Coherence::handle_requests) before anybody can know that the interrupt was taken, for statistics of
    /// the kernel's own. Nothing asked for means that the requests had been answered before. The default does nothing.
    fn note_interrupt(&self, asked: Asked) {
        let _ = asked;
    }

    /// Makes this CPU forget instructions that it has fetched and not yet executed. The default, which does nothing, is for
    /// machines on which every return to user mode does so.
    fn serialise(&self) {}

    /// Makes the thread that this CPU runs abandon the restartable sequence (Linux's `rseq`) that it may be in, before it next runs user
    /// code. Interrupts are off. The default, which does nothing, is for kernels without them.
    ///
    /// For [`sequence_barrier`](crate::Coherence::sequence_barrier). The implementer owes besides: a thread that leaves a CPU inside a
    /// sequence abandons it too.
    fn restart_sequence(&self) {}

    /// One turn of a loop that waits for another CPU: a pause, and in an emulator perhaps a yield. Interrupts are on.
    ///
    /// The implementer owes: interrupts sent to this CPU are taken while it is called again and again. Where they do not arrive by
    /// themselves (a simulator), it takes them: two CPUs that wait for each other's answer would wait for ever.
    fn relax(&self);
}
