//! QEMU's interface for plugins, version 1, as far as we use it.
//!
//! The declarations are written by hand from the interface's documentation; QEMU exports the functions to what it loads. Blocks and
//! instructions are only borrowed while QEMU calls [`Plugin::translate`].
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::marker::PhantomData;

/// The version of the interface that we speak; QEMU looks for this name.
#[unsafe(no_mangle)]
static qemu_plugin_version: c_int = 1;

/// What identifies a plugin to QEMU.
pub(crate) type Identity = u64;
/// What QEMU tells of an access: size, direction, which of the CPU's translation caches.
type Information = u32;
type TranslateCallback = extern "C" fn(Identity, *mut c_void);
type AccessCallback = extern "C" fn(c_uint, Information, u64, *mut c_void);
type BlockCallback = extern "C" fn(c_uint, *mut c_void);
type ExitCallback = extern "C" fn(Identity, *mut c_void);

/// Callbacks look at no registers (this interface has none to look at).
const NO_REGISTERS: c_int = 0;
/// Loads and stores alike.
const LOADS_AND_STORES: c_int = 3;

unsafe extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: Identity, callback: TranslateCallback);
    fn qemu_plugin_register_atexit_cb(id: Identity, callback: ExitCallback, data: *mut c_void);
    fn qemu_plugin_register_vcpu_tb_exec_cb(
        block: *mut c_void,
        callback: BlockCallback,
        flags: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_register_vcpu_mem_cb(
        instruction: *mut c_void,
        callback: AccessCallback,
        flags: c_int,
        accesses: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_tb_n_insns(block: *const c_void) -> usize;
    fn qemu_plugin_tb_get_insn(block: *const c_void, index: usize) -> *mut c_void;
    fn qemu_plugin_insn_vaddr(instruction: *const c_void) -> u64;
    fn qemu_plugin_insn_haddr(instruction: *const c_void) -> *const u8;
    fn qemu_plugin_mem_is_store(information: Information) -> bool;
    fn qemu_plugin_get_hwaddr(information: Information, address: u64) -> *const c_void;
    fn qemu_plugin_hwaddr_is_io(place: *const c_void) -> bool;
    fn qemu_plugin_hwaddr_phys_addr(place: *const c_void) -> u64;
}

/// What a plugin does when it is called. One type has these for the whole process.
pub(crate) trait Plugin {
    /// A block of instructions was translated: says what of it is to be watched.
    fn translate(block: &Block<'_>);
    /// An instruction that is watched has made an access on a CPU. `ram` is where in the RAM it went; `None` outside of RAM.
    fn accessed(cpu: u32, instruction: u64, address: u64, is_store: bool, ram: impl FnOnce() -> Option<u64>);
    /// A CPU enters a block that is watched with this note.
    fn entered(cpu: u32, note: u64);
    /// The emulator ends.
    fn end();
}

/// Has QEMU call `P`.
pub(crate) fn register<P: Plugin>(identity: Identity) {
    // SAFETY: the callbacks have the form that QEMU expects, and live as long as the process: nobody unloads us.
    unsafe {
        qemu_plugin_register_vcpu_tb_trans_cb(identity, on_translation::<P>);
        qemu_plugin_register_atexit_cb(identity, on_exit::<P>, std::ptr::null_mut());
    }
}

/// A block that is being translated.
#[derive(Debug)]
pub(crate) struct Block<'a> {
    block: *mut c_void,
    accessed: AccessCallback,
    entered: BlockCallback,
    borrowed: PhantomData<&'a ()>,
}

/// An instruction of a block.
#[derive(Debug)]
pub(crate) struct Instruction<'a> {
    instruction: *mut c_void,
    accessed: AccessCallback,
    borrowed: PhantomData<&'a ()>,
}

impl Block<'_> {
    /// Its instructions, in order.
    pub(crate) fn instructions(&self) -> impl DoubleEndedIterator<Item = Instruction<'_>> {
        // SAFETY: QEMU lends the block for as long as `self` lives, and every index below the count has an instruction.
        let count = unsafe { qemu_plugin_tb_n_insns(self.block) };
        (0..count).map(|index| Instruction {
            // SAFETY: as above.
            instruction: unsafe { qemu_plugin_tb_get_insn(self.block, index) },
            accessed: self.accessed,
            borrowed: PhantomData,
        })
    }

    /// Has [`Plugin::entered`] called whenever a CPU enters the block.
    pub(crate) fn watch_entry(&self, note: u64) {
        let note = std::ptr::without_provenance_mut(note as usize);
        // SAFETY: the block is lent; the note is a number, which nobody follows.
        unsafe { qemu_plugin_register_vcpu_tb_exec_cb(self.block, self.entered, NO_REGISTERS, note) }
    }
}

impl Instruction<'_> {
    /// The address that the program knows it by.
    pub(crate) fn address(&self) -> u64 {
        // SAFETY: QEMU lends the instruction with its block.
        unsafe { qemu_plugin_insn_vaddr(self.instruction) }
    }

    /// Where in this process its first byte lies; null if it does not lie in RAM.
    pub(crate) fn host(&self) -> *const u8 {
        // SAFETY: as above.
        unsafe { qemu_plugin_insn_haddr(self.instruction) }
    }

    /// Has [`Plugin::accessed`] called after each access that the instruction makes.
    pub(crate) fn watch_accesses(&self) {
        let note = std::ptr::without_provenance_mut(self.address() as usize);
        // SAFETY: as above; the note is a number, which nobody follows.
        unsafe {
            qemu_plugin_register_vcpu_mem_cb(
                self.instruction,
                self.accessed,
                NO_REGISTERS,
                LOADS_AND_STORES,
                note,
            );
        }
    }
}

extern "C" fn on_translation<P: Plugin>(_: Identity, block: *mut c_void) {
    P::translate(&Block { block, accessed: on_access::<P>, entered: on_entry::<P>, borrowed: PhantomData });
}

extern "C" fn on_access<P: Plugin>(cpu: c_uint, information: Information, address: u64, note: *mut c_void) {
    // SAFETY: asks about the number that QEMU just gave.
    let is_store = unsafe { qemu_plugin_mem_is_store(information) };
    P::accessed(cpu, note.addr() as u64, address, is_store, || {
        // SAFETY: asked within the callback about its own access, as the interface demands. The answer is valid until then;
        // what lies outside of RAM is not asked for its address.
        unsafe {
            let place = qemu_plugin_get_hwaddr(information, address);
            let in_ram = !place.is_null() && !qemu_plugin_hwaddr_is_io(place);
            in_ram.then(|| qemu_plugin_hwaddr_phys_addr(place))
        }
    });
}

extern "C" fn on_entry<P: Plugin>(cpu: c_uint, note: *mut c_void) {
    P::entered(cpu, note.addr() as u64);
}

extern "C" fn on_exit<P: Plugin>(_: Identity, _: *mut c_void) {
    P::end();
}

/// QEMU calls this when it has loaded us, with the arguments of its `-plugin` option. 0 says that all is well.
#[unsafe(no_mangle)]
extern "C" fn qemu_plugin_install(
    identity: Identity,
    _information: *const c_void,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: QEMU hands over `count` strings that end with NUL and stay as they are during the call.
    let texts: Vec<String> = (0..count)
        .map(|index| unsafe { CStr::from_ptr(*arguments.add(index)) }.to_string_lossy().into_owned())
        .collect();
    match crate::plugin::install(identity, &texts) {
        Ok(()) => 0,
        Err(why) => {
            eprintln!("sanitizer: {why}");
            1
        }
    }
}
