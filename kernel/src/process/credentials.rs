//! Who a process is: user and group ids, supplementary groups, capabilities.
//!
//! There is one user database on this machine, root's, and no security boundary between programs of one boot.
//! The ids are kept and changed by Linux's rules all the same, because programs drop their rights and check
//! that they are gone. They belong to the process, not the thread; libc keeps the threads of a process alike
//! anyway.

use crate::syscall::Errno;
use alloc::vec::Vec;

/// "Leave unchanged" in `setresuid` and its kin.
pub(crate) const UNCHANGED: u32 = u32::MAX;
/// Most supplementary groups (`NGROUPS_MAX`).
pub(crate) const GROUPS_MAX: usize = 65536;
/// All capabilities that Linux 6.1 knows: 0..=40.
pub(crate) const ALL_CAPABILITIES: u64 = (1 << 41) - 1;

/// Real, effective, saved and file-system id.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Identity {
    /// Who started it.
    pub(crate) real: u32,
    /// Whose rights it has.
    pub(crate) effective: u32,
    /// Whose rights it may take back.
    pub(crate) saved: u32,
    /// Whose rights files see; follows `effective`.
    pub(crate) file_system: u32,
}

impl Identity {
    fn owns(&self, id: u32) -> bool {
        id == self.real || id == self.effective || id == self.saved
    }

    /// `setuid`: with `privileged` all ids change, else only to one of the own.
    pub(crate) fn set(&mut self, id: u32, privileged: bool) -> Result<(), Errno> {
        if id == UNCHANGED {
            return Err(Errno::EINVAL);
        }
        if privileged {
            self.real = id;
            self.saved = id;
        } else if id != self.real && id != self.saved {
            return Err(Errno::EPERM);
        }
        self.effective = id;
        self.file_system = id;
        Ok(())
    }

    /// `setreuid`: the saved id follows when the real one is set, or the effective one to something else than
    /// the real.
    pub(crate) fn set_real_effective(
        &mut self,
        real: u32,
        effective: u32,
        privileged: bool,
    ) -> Result<(), Errno> {
        let old = *self;
        if real != UNCHANGED && !privileged && real != old.real && real != old.effective {
            return Err(Errno::EPERM);
        }
        if effective != UNCHANGED && !privileged && !old.owns(effective) {
            return Err(Errno::EPERM);
        }
        if real != UNCHANGED {
            self.real = real;
        }
        if effective != UNCHANGED {
            self.effective = effective;
        }
        if real != UNCHANGED || (effective != UNCHANGED && effective != old.real) {
            self.saved = self.effective;
        }
        self.file_system = self.effective;
        Ok(())
    }

    /// `setresuid`.
    pub(crate) fn set_all(&mut self, ids: [u32; 3], privileged: bool) -> Result<(), Errno> {
        if !privileged && ids.iter().any(|&id| id != UNCHANGED && !self.owns(id)) {
            return Err(Errno::EPERM);
        }
        let [real, effective, saved] = ids;
        for (place, id) in
            [(&mut self.real, real), (&mut self.effective, effective), (&mut self.saved, saved)]
        {
            if id != UNCHANGED {
                *place = id;
            }
        }
        self.file_system = self.effective;
        Ok(())
    }

    /// `setfsuid`: never fails, returns what was there before.
    pub(crate) fn set_file_system(&mut self, id: u32, privileged: bool) -> u32 {
        let old = self.file_system;
        if id != UNCHANGED && (privileged || self.owns(id) || id == old) {
            self.file_system = id;
        }
        old
    }
}

/// Capability sets as `capget` shows them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Capabilities {
    /// In force.
    pub(crate) effective: u64,
    /// May be put in force.
    pub(crate) permitted: u64,
    /// Kept over `execve`.
    pub(crate) inheritable: u64,
    /// The most that `execve` can give.
    pub(crate) bounding: u64,
}

/// All of it.
#[derive(Clone, Debug)]
pub(crate) struct Credentials {
    /// User ids.
    pub(crate) user: Identity,
    /// Group ids.
    pub(crate) group: Identity,
    /// Supplementary groups.
    pub(crate) groups: Vec<u32>,
    /// Capability sets.
    pub(crate) capabilities: Capabilities,
    /// PR_SET_KEEPCAPS.
    pub(crate) keep_capabilities: bool,
}

impl Credentials {
    /// Root with every capability.
    pub(crate) fn root() -> Credentials {
        Credentials {
            user: Identity::default(),
            group: Identity::default(),
            groups: Vec::new(),
            capabilities: Capabilities {
                effective: ALL_CAPABILITIES,
                permitted: ALL_CAPABILITIES,
                inheritable: 0,
                bounding: ALL_CAPABILITIES,
            },
            keep_capabilities: false,
        }
    }

    /// Whether capability `number` is in force.
    pub(crate) fn has(&self, number: u32) -> bool {
        self.capabilities.effective & (1 << number) != 0
    }

    /// Whether these stand for somebody else, or for more, than others did.
    pub(crate) fn is_other_than(&self, before: &Credentials) -> bool {
        let acts_as = |ids: Identity| (ids.effective, ids.file_system);
        acts_as(self.user) != acts_as(before.user)
            || acts_as(self.group) != acts_as(before.group)
            || self.capabilities.permitted & !before.capabilities.permitted != 0
    }

    /// Whether they are lent: those in force are not those of who started it.
    pub(crate) fn are_lent(&self) -> bool {
        self.user.effective != self.user.real || self.group.effective != self.group.real
    }

    /// Changes user ids by `change` and then the capabilities as Linux does: leaving root for good loses
    /// them, a change of the effective id alone clears or restores those in force.
    pub(crate) fn change_user(
        &mut self,
        change: impl FnOnce(&mut Identity, bool) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let old = self.user;
        let privileged = self.has(CAP_SETUID);
        change(&mut self.user, privileged)?;
        let was_root = old.real == 0 || old.effective == 0 || old.saved == 0;
        let is_root = self.user.real == 0 || self.user.effective == 0 || self.user.saved == 0;
        if was_root && !is_root && !self.keep_capabilities {
            self.capabilities.permitted = 0;
            self.capabilities.effective = 0;
        }
        if old.effective == 0 && self.user.effective != 0 {
            self.capabilities.effective = 0;
        }
        if old.effective != 0 && self.user.effective == 0 {
            self.capabilities.effective = self.capabilities.permitted;
        }
        Ok(())
    }

    /// What `execve` does to them: root gets all that the bounding set allows.
    pub(crate) fn after_exec(&mut self) {
        self.keep_capabilities = false;
        self.user.saved = self.user.effective;
        self.group.saved = self.group.effective;
        if self.user.effective == 0 || self.user.real == 0 {
            self.capabilities.permitted = self.capabilities.bounding | self.capabilities.inheritable;
            self.capabilities.effective =
                if self.user.effective == 0 { self.capabilities.permitted } else { 0 };
        } else {
            self.capabilities.permitted = 0;
            self.capabilities.effective = 0;
        }
    }
}

/// May signal processes of others.
pub(crate) const CAP_KILL: u32 = 5;
/// May set any group id.
pub(crate) const CAP_SETGID: u32 = 6;
/// May set any user id.
pub(crate) const CAP_SETUID: u32 = 7;
/// May drop from the bounding set.
pub(crate) const CAP_SETPCAP: u32 = 8;
/// May have a port below 1024.
pub(crate) const CAP_NET_BIND_SERVICE: u32 = 10;
/// May change the network, and have larger buffers than others.
pub(crate) const CAP_NET_ADMIN: u32 = 12;
/// May lock any amount of memory.
pub(crate) const CAP_IPC_LOCK: u32 = 14;
/// May use what others share by System V's calls.
pub(crate) const CAP_IPC_OWNER: u32 = 15;
/// May change what others share by System V's calls, among much else.
pub(crate) const CAP_SYS_ADMIN: u32 = 21;
/// May look into other programs, and hold them up.
pub(crate) const CAP_SYS_PTRACE: u32 = 19;
/// May raise priorities and use real-time policies.
pub(crate) const CAP_SYS_NICE: u32 = 23;
/// May raise hard limits.
pub(crate) const CAP_SYS_RESOURCE: u32 = 24;
/// May set clocks.
pub(crate) const CAP_SYS_TIME: u32 = 25;
