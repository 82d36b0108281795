//! Numbers at random that are the same for the same seed, on every host: Steele's SplitMix64.

/// A generator.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to, not including, 1.
    pub(super) fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        ((self.share() * end as f64) as usize).min(end.saturating_sub(1))
    }

    /// Exponential with this mean, cut off.
    pub(super) fn exponential(&mut self, mean: f64, most: f64) -> f64 {
        (-mean * (1.0 - self.share()).ln()).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_what_they_should_be() {
        let mut random = Random::new(1);
        let count = 100_000;
        let sum: f64 = (0..count).map(|_| random.share()).sum();
        assert!((sum / f64::from(count) - 0.5).abs() < 0.01);
        let sum: f64 = (0..count).map(|_| random.exponential(10.0, 1e9)).sum();
        assert!((sum / f64::from(count) - 10.0).abs() < 0.2);
        assert!((0..count).all(|_| random.below(3) < 3 && random.exponential(10.0, 5.0) <= 5.0));
    }
}
