//! Ways to break the protocol on purpose, so that the model tests show that they would notice.
//!
//! A fault is chosen when a [`Coherence`](crate::Coherence) is made under loom or shuttle. In every other build
//! the question "is this fault on?" is the constant `false`.

/// One way to get it wrong. Each is a mistake that a kernel has made or could make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(any(loom, shuttle, simulated)),
    allow(unreachable_pub, dead_code, reason = "asked about, but never chosen")
)]
pub enum Fault {
    /// Coming back from lazy, no fence between joining `active` and reading the generation.
    NoFenceComingBack,
    /// Switching in, no fence between joining `active` and reading the generation.
    NoFenceEntering,
    /// Coming back from lazy, the generation is read before `active` is joined.
    GenerationBeforeSetComingBack,
    /// Switching in, the generation is read before `active` is joined.
    GenerationBeforeSetEntering,
    /// Coming back from lazy, generations are not compared.
    NoComparison,
    /// Coming back from lazy, `lazy` is left before the flush.
    LeaveLazyBeforeFlush,
    /// Going lazy, `active` is left before `lazy` is joined.
    LeaveActiveFirst,
    /// Switching away, the sets are left before the other root is loaded.
    LeaveSetsBeforeLoad,
    /// The generation is advanced by a load and a store.
    PlainAdvance,
    /// The initiator has no fence between the advance and reading the sets.
    NoFenceInitiator,
    /// The initiator reads `lazy` before `active`.
    LazyReadFirst,
    /// Lazy CPUs are not told of freed tables.
    LazyNotToldOfTables,
    /// The target acknowledges before it invalidates.
    EarlyAcknowledgement,
    /// A target that misses more than the request invalidates only the range asked for.
    NoGapRule,
    /// A gather does not look whether another is in progress.
    NoNestedRule,
    /// A barrier has no fence between the beginning of its round and reading who is in user mode.
    NoFenceBarrier,
    /// A barrier's target does not fence.
    NoFenceInHandler,
    /// A target that is asked to fetch instructions anew, or to start its sequence again, does that alone, and does not fence.
    SerialiseWithoutFence,
    /// A caller takes the end of a round that was in progress when it came.
    RoundThatBeganBefore,
    /// No fence between the crossing to user mode and user code.
    NoFenceEnteringUser,
    /// The crossing from user mode does not publish what user code did.
    RelaxedLeavingUser,
    /// Going lazy or switching away, `active` is left without publishing what user code did.
    RelaxedLeavingActive,
    /// No fence between joining `receivers` and user code.
    NoFenceReceiving,
    /// `receivers` is left without publishing what user code did.
    RelaxedLeavingReceivers,
    /// The CPUs that use a space are not told that it has been registered.
    RegistrationNotTold,
    /// A grace period has no fence between what its caller did and reading who is in user mode.
    NoFenceGracePeriod,

    /// A remote flush is begun, and not waited for.
    RemoteNotAwaited,

    /// No fence between counting a device that is attached and its first walk.
    NoFenceAttaching,
    /// A device is detached without publishing what it did.
    RelaxedDetaching,
    /// The devices of a space are not told of changes.
    DevicesNotTold,
    /// Recording in a batch, no fence between advancing the generation and reading `active`.
    NoFenceBatch,
    /// Recording in a batch, `active` is read before the generation is advanced.
    BatchTargetsReadFirst,
    /// Recording in a batch does not advance the generation.
    BatchWithoutGeneration,
    /// An operation that finds an entry changed by a batch takes it for flushed.
    BatchNotSettled,
    /// A batch that finds an entry changed by an operation takes it for flushed.
    BatchMeetsNobody,

    /// A CPU in the kernel is spared an interrupt and not marked.
    KernelSparedUnmarked,
    /// A CPU in the kernel is marked by a load and a store.
    PlainMark,
    /// A CPU that returns to user mode and finds its mark flushes nothing.
    MarkIgnored,

    /// A deferred batch starts no epoch of its own.
    EpochNotAdvanced,
    /// A CPU says that it has reached an epoch which it read after the generation.
    EpochReadLate,
    /// What a deferred batch holds is given out while CPUs have not flushed.
    DeferredNotFlushed,
    /// An operation that finds an entry gone which a deferred batch has taken out takes it for flushed.
    DeferredNotSettled,

    /// Who finds a table joins its sharers without a fence.
    NoFenceSharing,
    /// An operation reads a table's sharers without a fence after its change.
    NoFenceBeforeSharers,

    // The rest is there for the explorer's past bugs (`machine/src/simulated/past_bugs/`).
    /// Joining `active` is a load and a plain store, without a fence.
    PlainJoin,
    /// A request for everything carries no generation, so every target takes it for an old one.
    RequestWithoutGeneration,
    /// A request to a CPU that has one before it is dropped.
    RequestLost,
    /// An initiator waits with interrupts off.
    WaitsWithInterruptsOff,
    /// A target that invalidated one range claims to be up to date with newer requests too.
    ClaimsCurrent,
    /// A tag slot that another space had is taken over with what is cached under it.
    TagKeptForAnother,
    /// Switching in under a tag, generations are not compared.
    NoComparisonEntering,
    /// A CPU that borrowed a space is still marked so when it has entered another one.
    StaysLazy,
    /// A request for a space that is not loaded counts for the space that is.
    ForeignFlushClaims,
    /// An initiator that misses other requests, and invalidates its own range alone, claims to be up to date.
    RemoteClaims,
    /// Devices are told before the entries are changed.
    DevicesToldFirst,
    /// Devices are told of the addresses, and not that tables are freed.
    DevicesKeepFreedTables,
    /// A flush takes back what was recorded after it began, too.
    BatchClearedByRacingFlush,
    /// A batch's dirty pages are written out before its flush.
    WrittenBatchNotFlushed,
    /// Flushes that are merged go in steps of the larger page size.
    LargestStride,
    /// A switch between spaces does not look whether the CPU receives everybody's barriers from now on.
    RegistrationNotFollowed,
    /// A registration that somebody else has announced counts as made.
    AnnouncementIsEnough,
    /// Who registers a space tells the other CPUs, and not its own.
    RegistersOthersOnly,
    /// Coming back from lazy, the sets are changed by plain stores, without a fence.
    PlainComingBack,
    /// Every caller of a barrier does the work itself, at once.
    NoRounds,
    /// A barrier for cores asks its targets for a fence only.
    CoreBarrierOnlyFences,
    /// A target that is asked to serialise relies on its return from the interrupt for that.
    NoSerialiseInHandler,
    /// The caller of a barrier for cores does not serialise itself.
    CallerNotSerialised,
    /// A CPU that joins a space registered for cores does not serialise.
    NoSerialiseJoining,
    /// A barrier for sequences leaves out CPUs in the kernel, as one for memory does.
    SequencesInKernelSpared,
    /// A barrier for the sequences of one CPU takes the end of another CPU's round for its own.
    SingleRoundsShared,
    /// Another root is loaded while the CPU is still marked as one that uses the space it leaves.
    SwitchUnmarked,
    /// A CPU that comes back from lazy is marked as one that uses the space before it has flushed.
    MarkedBeforeFlush,
    /// Without the mechanism lazy, a CPU that comes back takes it that requests have reached it, and those of batches have not.
    BorrowerMissesBatches,
    /// A gather that met another flushes what it tells its program of, and forgets what it has unhooked itself.
    NestedForgetsItsOwn,
    /// A gather is withdrawn before its flush.
    WithdrawnBeforeFlush,
    /// The crossing to user mode is counted by a load and a store, without a fence.
    PlainEnteringUser,
    /// A CPU that returns to user mode takes its mark away before it flushes.
    MarkTakenAwayFirst,
    /// A CPU in the kernel is spared also if tables are freed, in which its walker may be.
    KernelSparedOfTables,
    /// An interrupt that cannot be masked uses user memory in the kernel, where nobody waits for it.
    UsedInSparedKernel,
    /// A batch that concludes absence, and finds an entry gone which a deferred batch has taken out, takes it for flushed.
    DeferredNotMet,
    /// With the mechanism `clean`, write is taken from a dirty entry without a flush too.
    DirtyTakenForClean,
    /// An entry that counts as unused is believed to be so, although whoever made it so has not flushed yet.
    UnusedBeforeItsFlush,
    /// An entry that counts as unused is believed to be so, although a device has used it, which does not mark entries.
    UnusedByCpusAlone,
}

#[cfg(any(loom, shuttle, simulated))]
impl Fault {
    /// Every fault that loom's and shuttle's models must catch.
    pub const ALL: [Self; 42] = [
        Self::NoFenceComingBack,
        Self::NoFenceEntering,
        Self::GenerationBeforeSetComingBack,
        Self::GenerationBeforeSetEntering,
        Self::NoComparison,
        Self::LeaveLazyBeforeFlush,
        Self::LeaveActiveFirst,
        Self::LeaveSetsBeforeLoad,
        Self::PlainAdvance,
        Self::NoFenceInitiator,
        Self::LazyReadFirst,
        Self::LazyNotToldOfTables,
        Self::EarlyAcknowledgement,
        Self::NoGapRule,
        Self::NoNestedRule,
        Self::NoFenceBarrier,
        Self::NoFenceInHandler,
        Self::SerialiseWithoutFence,
        Self::RoundThatBeganBefore,
        Self::NoFenceEnteringUser,
        Self::RelaxedLeavingUser,
        Self::RelaxedLeavingActive,
        Self::NoFenceReceiving,
        Self::RelaxedLeavingReceivers,
        Self::RegistrationNotTold,
        Self::NoFenceGracePeriod,
        Self::RemoteNotAwaited,
        Self::NoFenceAttaching,
        Self::RelaxedDetaching,
        Self::DevicesNotTold,
        Self::NoFenceBatch,
        Self::BatchTargetsReadFirst,
        Self::BatchWithoutGeneration,
        Self::BatchNotSettled,
        Self::BatchMeetsNobody,
        Self::KernelSparedUnmarked,
        Self::PlainMark,
        Self::MarkIgnored,
        Self::EpochNotAdvanced,
        Self::EpochReadLate,
        Self::DeferredNotFlushed,
        Self::DeferredNotSettled,
    ];

    /// Those that show only on machines that can do more than interrupt.
    pub const OF_MACHINES: [Self; 4] =
        [Self::RemoteNotAwaited, Self::NoFenceAttaching, Self::RelaxedDetaching, Self::DevicesNotTold];

    /// Those that show only where CPUs in the kernel are spared.
    pub const OF_MODES: [Self; 3] = [Self::KernelSparedUnmarked, Self::PlainMark, Self::MarkIgnored];

    /// Those that break barriers and nothing else.
    pub const OF_BARRIERS: [Self; 11] = [
        Self::NoFenceBarrier,
        Self::NoFenceInHandler,
        Self::SerialiseWithoutFence,
        Self::RoundThatBeganBefore,
        Self::NoFenceEnteringUser,
        Self::RelaxedLeavingUser,
        Self::RelaxedLeavingActive,
        Self::NoFenceReceiving,
        Self::RelaxedLeavingReceivers,
        Self::RegistrationNotTold,
        Self::NoFenceGracePeriod,
    ];
}
