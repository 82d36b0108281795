//! A digest of what is known, 64 bits wide, in which equal knowledge gives equal numbers in every run.

/// A running digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Digest(u64);

impl Digest {
    /// The digest of nothing.
    pub const EMPTY: Self = Digest(0);

    /// The digest of this and, after it, a number.
    #[must_use]
    pub fn with(self, number: u64) -> Self {
        // Two rounds of multiply and fold spread every bit over all others; the constants are odd and have no structure.
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0xd1b5_4a32_d192_ed03);
        let folded = (mixed ^ mixed >> 32).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Digest(folded ^ folded >> 29)
    }

    /// The digest of an unordered collection that has one more member.
    #[must_use]
    pub fn including(self, member: Digest) -> Self {
        Digest(self.0.wrapping_add(Digest::EMPTY.with(member.0).0))
    }

    /// The digest of an unordered collection that has one member less.
    #[must_use]
    pub fn excluding(self, member: Digest) -> Self {
        Digest(self.0.wrapping_sub(Digest::EMPTY.with(member.0).0))
    }

    /// As a number.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The digest with that number.
    pub fn from_number(number: u64) -> Self {
        Digest(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_matters_in_a_sequence_and_not_in_a_collection() {
        let [one, two] = [1, 2].map(|number| Digest::EMPTY.with(number));
        assert_ne!(one.with(2), two.with(1));
        let collection = Digest::EMPTY.including(one).including(two);
        assert_eq!(collection, Digest::EMPTY.including(two).including(one));
        assert_eq!(collection.excluding(one), Digest::EMPTY.including(two));
    }
}
