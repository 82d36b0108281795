//! A figure of several runs, summed up: the median, with the least and the most beside it.
//!
//! Runs are few (three, five) and the host's other work only ever makes them slower, so nothing here assumes a distribution: the
//! median is what a reader takes away, the extremes say how far to trust it. Times of the two sides are compared pair by pair,
//! each run with the one made just before or after it, so that a host that grows slower during the measurement does not count
//! against the side measured last.

use std::cmp::Ordering;

/// The middle and the ends of some values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// Of these values; none when there are none. What is not a finite number is not a value.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median =
            if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
        Some(Spread { least, median, most })
    }

    /// Of the ratios first to second, pair by pair. Pairs whose second value is zero say nothing and are left out.
    pub(crate) fn of_ratios(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<Self> {
        Self::of(pairs.into_iter().filter(|(_, second)| *second != 0.0).map(|(first, second)| first / second))
    }

    /// On which side of `value` all of it lies; none when the runs disagree, so that neither may be claimed.
    pub(crate) fn side_of(self, value: f64) -> Option<Ordering> {
        if self.most < value {
            Some(Ordering::Less)
        } else if self.least > value {
            Some(Ordering::Greater)
        } else if self.least == value && self.most == value {
            Some(Ordering::Equal)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(least: f64, median: f64, most: f64) -> Option<Spread> {
        Some(Spread { least, median, most })
    }

    #[test]
    fn the_median_is_the_middle_or_between_the_two() {
        assert_eq!(Spread::of([3.0]), spread(3.0, 3.0, 3.0));
        assert_eq!(Spread::of([9.0, 1.0, 2.0]), spread(1.0, 2.0, 9.0));
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 9.0]), spread(1.0, 3.0, 9.0));
    }

    #[test]
    fn what_is_no_number_is_no_value() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([f64::NAN, f64::INFINITY]), None);
        assert_eq!(Spread::of([f64::NAN, 5.0]), spread(5.0, 5.0, 5.0));
    }

    #[test]
    fn a_host_that_slows_down_does_not_change_the_ratio() {
        // Each run is slower than the one before; within each pair the second side takes twice as long.
        assert_eq!(Spread::of_ratios([(1.0, 2.0), (3.0, 6.0), (9.0, 18.0)]), spread(0.5, 0.5, 0.5));
        assert_eq!(Spread::of_ratios([(1.0, 0.0), (1.0, 4.0)]), spread(0.25, 0.25, 0.25));
        assert_eq!(Spread::of_ratios([(0.0, 0.0)]), None);
    }

    #[test]
    fn only_runs_that_agree_decide_a_side() {
        let side = |values: [f64; 2]| Spread::of(values).unwrap().side_of(1.0);
        assert_eq!(side([0.4, 0.9]), Some(Ordering::Less));
        assert_eq!(side([1.1, 3.0]), Some(Ordering::Greater));
        assert_eq!(side([1.0, 1.0]), Some(Ordering::Equal));
        assert_eq!(side([0.9, 1.1]), None);
        assert_eq!(side([0.9, 1.0]), None);
    }
}
