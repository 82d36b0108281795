//! Names of AF_UNIX: files in the tree, and abstract names, which are in no directory and last as long as their socket.
//!
//! A bound path is an inode that holds its endpoint weakly: the file stays when the socket is closed, and refuses connections then.

use super::{Address, Endpoint};
use crate::files::{Access, Content, Walk, tree};
use crate::sync::{Mutex, SpinLock};
use crate::syscall::Errno;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

/// Abstract names in use.
static NAMES: SpinLock<BTreeMap<Vec<u8>, Weak<Endpoint>>> = SpinLock::new(BTreeMap::new());
/// An endpoint gets one name only.
static BINDING: Mutex<()> = Mutex::new(());

/// Names that `bind` can choose from: five hexadecimal digits.
const CHOICE: u32 = 1 << 20;

impl Endpoint {
    /// Gives an endpoint of AF_UNIX its name. A path is looked up by `walk`, and its file gets `permissions`.
    ///
    /// # Errors
    /// EINVAL if it has one; EADDRINUSE if the name is taken; what creating a file fails with.
    pub(crate) fn bind_name(self: &Arc<Self>, name: Address, walk: &Walk, permissions: u32) -> Result<(), Errno> {
        let _binding = BINDING.lock();
        if *self.own_address() != Address::Unnamed {
            return if name == Address::Unnamed { Ok(()) } else { Err(Errno::EINVAL) };
        }
        let name = match name {
            Address::Unnamed => self.choose()?,
            Address::Abstract(name) if self.take_name(&name) => Address::Abstract(name),
            Address::Path(path) => {
                let place = walk.clone().for_change().place(&path)?;
                let content = Content::Socket(Arc::downgrade(self));
                let taken = |error| if error == Errno::EEXIST { Errno::EADDRINUSE } else { error };
                tree::create(&place, content, permissions, walk.caller()).map_err(taken)?;
                Address::Path(path)
            }
            _ => return Err(Errno::EADDRINUSE),
        };
        self.state.lock().own = Arc::new(name);
        Ok(())
    }

    /// Takes an abstract name that nobody has.
    fn choose(self: &Arc<Self>) -> Result<Address, Errno> {
        let start = self.cookie as u32;
        let names = (0..CHOICE).map(|step| format!("{:05x}", start.wrapping_add(step) % CHOICE).into_bytes());
        names.into_iter().find(|name| self.take_name(name)).map(Address::Abstract).ok_or(Errno::ENOSPC)
    }

    fn take_name(self: &Arc<Self>, name: &[u8]) -> bool {
        let mut names = NAMES.lock();
        let free = names.get(name).is_none_or(|holder| holder.strong_count() == 0);
        if free {
            names.insert(name.to_vec(), Arc::downgrade(self));
        }
        free
    }
}

/// The endpoint of a name.
///
/// # Errors
/// ECONNREFUSED if it is nobody's; EINVAL for no name; what looking a path up fails with, and EACCES without the right to write.
pub(crate) fn find(name: &Address, walk: &Walk) -> Result<Arc<Endpoint>, Errno> {
    let endpoint = match name {
        Address::Abstract(name) => NAMES.lock().get(name).and_then(Weak::upgrade),
        Address::Path(path) => {
            let entry = walk.find(path)?;
            entry.inode().check(walk.caller(), Access::WRITE)?;
            match entry.inode().content() {
                Content::Socket(endpoint) => endpoint.upgrade(),
                _ => None,
            }
        }
        _ => return Err(Errno::EINVAL),
    };
    endpoint.filter(|endpoint| !endpoint.state.lock().closed).ok_or(Errno::ECONNREFUSED)
}

/// Gives up the abstract name of a socket that is closed.
pub(super) fn release(endpoint: &Endpoint, name: &[u8]) {
    let mut names = NAMES.lock();
    if names.get(name).is_some_and(|holder| core::ptr::eq(holder.as_ptr(), endpoint)) {
        names.remove(name);
    }
}
