//! The guest's first file system: an archive in the "newc" form of cpio, which QEMU hands to the kernel.
//!
//! The same content gives the same bytes: entries are sorted, owners are 0, times are one fixed instant. Deterministic runs
//! and the peer kernel rely on it.

use std::collections::BTreeMap;
use std::io::{self, Write};

/// 2026-01-01T00:00:00Z, the instant at which deterministic runs start too.
const TIME: u64 = 1_767_225_600;

const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const SYMBOLIC_LINK: u32 = 0o120_000;

/// As many symbolic links as Linux follows in one path.
pub(crate) const LINKS: usize = 40;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Directory { mode: u32 },
    File { mode: u32, content: Vec<u8> },
    Link { target: Vec<u8> },
}

/// Files by absolute guest path. Parents of what is added become directories of mode 755.
#[derive(Debug, Default)]
pub(crate) struct Initramfs {
    nodes: BTreeMap<Vec<u8>, Node>,
}

impl Initramfs {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a directory with the permission bits `mode`.
    ///
    /// # Errors
    /// As [`Initramfs::file`].
    pub(crate) fn directory(&mut self, path: &[u8], mode: u32) -> Result<(), String> {
        self.insert(path, Node::Directory { mode })
    }

    /// Adds a file with the permission bits `mode`. The last addition of a file to a path wins.
    ///
    /// # Errors
    /// A sentence when a file and a directory claim the same path, or the file is too large for the format (4 GiB).
    pub(crate) fn file(&mut self, path: &[u8], mode: u32, content: Vec<u8>) -> Result<(), String> {
        if u32::try_from(content.len()).is_err() {
            return Err(format!("{} is larger than 4 GiB, which the guest cannot be given", show(path)));
        }
        self.insert(path, Node::File { mode, content })
    }

    /// Adds a symbolic link.
    ///
    /// # Errors
    /// As [`Initramfs::file`].
    pub(crate) fn link(&mut self, path: &[u8], target: &[u8]) -> Result<(), String> {
        self.insert(path, Node::Link { target: target.to_vec() })
    }

    pub(crate) fn contains_directory(&self, path: &[u8]) -> bool {
        matches!(self.nodes.get(trim(path)), Some(Node::Directory { .. }))
    }

    /// Whether a file with this name is somewhere.
    pub(crate) fn has_file_named(&self, name: &[u8]) -> bool {
        self.nodes.iter().any(|(path, node)| {
            path.rsplit(|byte| *byte == b'/').next() == Some(name) && !matches!(node, Node::Directory { .. })
        })
    }

    /// The absolute paths of the files whose content begins so.
    pub(crate) fn files_that_begin_with(&self, magic: &[u8]) -> Vec<Vec<u8>> {
        let is_meant = |node: &Node| matches!(node, Node::File { content, .. } if content.starts_with(magic));
        self.nodes
            .iter()
            .filter(|(_, node)| is_meant(node))
            .map(|(path, _)| [b"/", &path[..]].concat())
            .collect()
    }

    /// The content of the file that a path leads to, over links too.
    pub(crate) fn content(&self, path: &[u8]) -> Option<&[u8]> {
        match self.nodes.get(&self.resolve(path)?)? {
            Node::File { content, .. } => Some(content),
            Node::Directory { .. } | Node::Link { .. } => None,
        }
    }

    /// The absolute path of what a path leads to, without links, if it has not too many of them.
    pub(crate) fn place(&self, path: &[u8]) -> Option<Vec<u8>> {
        self.resolve(path).map(|resolved| [b"/", &resolved[..]].concat())
    }

    /// The path without links, if it has not too many of them.
    fn resolve(&self, path: &[u8]) -> Option<Vec<u8>> {
        let names = |path: &[u8]| {
            let names = path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
            names.map(<[u8]>::to_vec).rev().collect::<Vec<_>>()
        };
        let mut waiting = names(path);
        let mut here: Vec<Vec<u8>> = Vec::new();
        let mut links = 0;
        while let Some(name) = waiting.pop() {
            if name == b".." {
                here.pop();
                continue;
            }
            here.push(name);
            let Some(Node::Link { target }) = self.nodes.get(&here.join(&b'/')) else { continue };
            links += 1;
            if links > LINKS {
                return None;
            }
            here.pop();
            if target.starts_with(b"/") {
                here.clear();
            }
            waiting.extend(names(target));
        }
        Some(here.join(&b'/'))
    }

    /// Puts a node in its place. Links on the way there are followed, as by whoever will look for it.
    fn insert(&mut self, path: &[u8], node: Node) -> Result<(), String> {
        let path = trim(path);
        let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (&path[..0], path),
        };
        let parent =
            self.resolve(parent).ok_or_else(|| format!("{} has too many symbolic links", show(path)))?;
        let ends = parent.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(index, _)| index);
        for end in ends.chain([parent.len()]).filter(|end| *end > 0) {
            let above = self.nodes.entry(parent[..end].to_vec()).or_insert(Node::Directory { mode: 0o755 });
            if !matches!(above, Node::Directory { .. }) {
                let shown = show(&parent[..end]);
                return Err(format!("{shown} is packed as a file, so nothing can be below it"));
            }
        }
        let place = if parent.is_empty() { name.to_vec() } else { [&parent, name].join(&b'/') };
        let is_directory = |node: &Node| matches!(node, Node::Directory { .. });
        match self.nodes.get(&place) {
            Some(present) if is_directory(present) != is_directory(&node) => {
                Err(format!("{} would have to be a file and a directory", show(path)))
            }
            _ => {
                self.nodes.insert(place, node);
                Ok(())
            }
        }
    }

    /// Writes the archive.
    ///
    /// # Errors
    /// Those of `out`.
    pub(crate) fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        for (number, (path, node)) in self.nodes.iter().enumerate() {
            let (mode, links, content): (u32, u32, &[u8]) = match node {
                Node::Directory { mode } => (DIRECTORY | mode, 2, &[]),
                Node::File { mode, content } => (REGULAR | mode, 1, content),
                Node::Link { target } => (SYMBOLIC_LINK | 0o777, 1, target),
            };
            write_entry(out, number as u32 + 1, mode, links, path, content)?;
        }
        write_entry(out, 0, 0, 1, b"TRAILER!!!", &[])
    }
}

/// One header of 110 characters, the name with its NUL, the content; name and content each padded to 4 bytes.
fn write_entry(
    out: &mut impl Write,
    inode: u32,
    mode: u32,
    links: u32,
    name: &[u8],
    content: &[u8],
) -> io::Result<()> {
    const HEADER: usize = 110;
    let time = if inode == 0 { 0 } else { TIME };
    write!(out, "070701{inode:08x}{mode:08x}{:08x}{:08x}{links:08x}{time:08x}{:08x}", 0, 0, content.len())?;
    write!(out, "{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}", 0, 0, 0, 0, name.len() + 1, 0)?;
    out.write_all(name)?;
    out.write_all(&[0])?;
    pad(out, HEADER + name.len() + 1)?;
    out.write_all(content)?;
    pad(out, content.len())
}

fn pad(out: &mut impl Write, written: usize) -> io::Result<()> {
    out.write_all(&[0; 3][..written.next_multiple_of(4) - written])
}

/// Archive names have no leading slash.
fn trim(path: &[u8]) -> &[u8] {
    let start = path.iter().position(|byte| *byte != b'/').unwrap_or(path.len());
    path[start..].strip_suffix(b"/").unwrap_or(&path[start..])
}

fn show(path: &[u8]) -> String {
    format!("/{}", String::from_utf8_lossy(trim(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_come_before_children_and_the_trailer_ends() {
        let mut archive = Initramfs::new();
        archive.file(b"/usr/bin/true", 0o755, b"x".to_vec()).unwrap();
        archive.link(b"/bin", b"elsewhere").unwrap();
        archive.directory(b"/tmp", 0o1777).unwrap();
        let mut bytes = Vec::new();
        archive.write_to(&mut bytes).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let positions: Vec<_> = ["bin\0", "tmp\0", "usr\0", "usr/bin\0", "usr/bin/true\0", "TRAILER!!!"]
            .iter()
            .map(|name| text.find(name).unwrap())
            .collect();
        assert!(positions.is_sorted(), "{positions:?}");
        assert_eq!(bytes.len() % 4, 0);
    }

    #[test]
    fn the_systems_own_cpio_reads_it_back() {
        let mut archive = Initramfs::new();
        archive.file(b"/a/b", 0o640, b"hello".to_vec()).unwrap();
        archive.link(b"/a/c", b"b").unwrap();
        let mut bytes = Vec::new();
        archive.write_to(&mut bytes).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("busybox")
            .args(["cpio", "-i"])
            .current_dir(folder.path())
            .stdin(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("busybox is among the test programs");
        child.stdin.take().unwrap().write_all(&bytes).unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(std::fs::read(folder.path().join("a/c")).unwrap(), b"hello");
    }

    #[test]
    fn links_are_followed_when_something_is_put_below_them() {
        let mut archive = Initramfs::new();
        archive.link(b"/bin", b"usr/bin").unwrap();
        archive.file(b"/bin/true", 0o755, b"x".to_vec()).unwrap();
        assert_eq!(archive.content(b"/usr/bin/true"), Some(&b"x"[..]));
        assert_eq!(archive.content(b"/bin/../bin/true"), Some(&b"x"[..]));
        archive.link(b"/a", b"b").unwrap();
        archive.link(b"/b", b"a").unwrap();
        assert!(archive.file(b"/a/x", 0o644, Vec::new()).is_err());
        assert_eq!(archive.content(b"/a"), None);
    }

    #[test]
    fn a_path_is_a_file_or_a_directory() {
        let mut archive = Initramfs::new();
        archive.file(b"/a", 0o644, Vec::new()).unwrap();
        assert!(archive.file(b"/a/b", 0o644, Vec::new()).is_err());
        archive.directory(b"/d", 0o755).unwrap();
        assert!(archive.file(b"/d", 0o644, Vec::new()).is_err());
    }
}
