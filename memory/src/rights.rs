//! What a mapping allows, and what an access wants.

bitflags::bitflags! {
    /// Rights of a mapping. The bits are Linux's `PROT_READ`, `PROT_WRITE` and `PROT_EXEC`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Rights: u8 {
        /// Loads.
        const READ = 1;
        /// Stores.
        const WRITE = 2;
        /// Instruction fetches.
        const EXECUTE = 4;
    }
}

/// What an access wants; a load when both are false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// It is a store.
    pub write: bool,
    /// It is an instruction fetch.
    pub execute: bool,
}

impl Access {
    /// A load.
    pub const READ: Self = Self { write: false, execute: false };
    /// A store.
    pub const WRITE: Self = Self { write: true, execute: false };
}

impl Rights {
    /// Whether a mapping with these rights allows the access. x86-64 has no way to map a page that can be written or
    /// executed but not read, so any right allows loads, as on Linux.
    pub fn allow(self, access: Access) -> bool {
        if access.write {
            self.contains(Self::WRITE)
        } else if access.execute {
            self.contains(Self::EXECUTE)
        } else {
            !self.is_empty()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_right_allows_loads_and_only_the_own_right_allows_the_rest() {
        let execute = Access { write: false, execute: true };
        assert!(Rights::WRITE.allow(Access::READ) && Rights::EXECUTE.allow(Access::READ));
        assert!(!Rights::empty().allow(Access::READ));
        assert!(!Rights::READ.allow(Access::WRITE) && !Rights::READ.allow(execute));
        assert!(Rights::WRITE.allow(Access::WRITE) && Rights::EXECUTE.allow(execute));
    }
}
