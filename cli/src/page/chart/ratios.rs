//! Ratios of times: a dot at the median of the pairs, a whisker from the least to the most, on a logarithmic axis with 1 marked.
//!
//! The dot's shape says what the whole whisker says: a filled circle lies below 1 as a whole, a filled diamond above, a hollow
//! circle across it.

use maud::{Markup, html};

use super::{WIDTH, label, round};
use crate::number;
use crate::result::case::{Ratio, Verdict};
use crate::statistics::Spread;

const LEFT: f64 = 60.0;
/// Room for the ratio in figures.
const RIGHT: f64 = 136.0;
const ROW: f64 = 19.0;
const HEADING: f64 = 18.0;
/// Above the rows: which side is which.
const TOP: f64 = 22.0;
const BOTTOM: f64 = 34.0;

/// Rows that belong together.
pub(in crate::page) struct Group {
    /// Above the group; empty for none.
    pub(in crate::page) heading: String,
    pub(in crate::page) rows: Vec<(String, Ratio)>,
}

/// The axis, which all charts of a page share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::page) struct Scale {
    least: f64,
    most: f64,
}

impl Scale {
    /// Reaches over all these ratios and 1, with some air.
    pub(in crate::page) fn over(ratios: impl Iterator<Item = Ratio>) -> Self {
        let (least, most) = ratios.fold((0.5f64, 2.0f64), |(least, most), ratio| {
            (least.min(ratio.spread.least / 1.15), most.max(ratio.spread.most * 1.15))
        });
        Scale { least: least.max(1e-9), most: most.min(1e9) }
    }

    fn x(self, ratio: f64) -> f64 {
        let place = (ratio.clamp(self.least, self.most) / self.least).ln() / (self.most / self.least).ln();
        LEFT + (WIDTH - LEFT - RIGHT) * place
    }

    /// Round ratios with room for their labels: 1 always, then powers of ten, then 2 and 5, then halves.
    fn marks(self) -> Vec<f64> {
        // As text, so that each is the number nearest to what it says.
        let power = |digit: u32, power: i32| format!("{digit}e{power}").parse().unwrap_or(1.0);
        let tens = (-9..=9).map(|exponent| power(1, exponent));
        let fives = (-9..=9).flat_map(|exponent| [power(2, exponent), power(5, exponent)]);
        let mut marks = vec![1.0];
        for candidate in tens.chain(fives).chain([0.5, 0.7, 1.4]) {
            let half = |mark: f64| super::width(&format!("{mark}×")) / 2.0;
            let apart =
                |mark: &f64| (self.x(*mark) - self.x(candidate)).abs() >= half(*mark) + half(candidate) + 6.0;
            if (self.least..=self.most).contains(&candidate) && marks.iter().all(apart) {
                marks.push(candidate);
            }
        }
        marks
    }
}

/// The chart's height.
pub(in crate::page) fn height(groups: &[Group]) -> f64 {
    let rows = groups.iter().map(|group| heading(group) + ROW * group.rows.len() as f64);
    TOP + rows.sum::<f64>() + BOTTOM
}

fn heading(group: &Group) -> f64 {
    if group.heading.is_empty() { 0.0 } else { HEADING }
}

/// Draws the groups below each other.
pub(in crate::page) fn draw(groups: &[Group], scale: Scale) -> Markup {
    let bottom = height(groups) - BOTTOM;
    let mut y = TOP;
    html! {
        (axis(scale, bottom))
        @for group in groups {
            @if !group.heading.is_empty() { (label("heading over", 0.0, y + 13.0, WIDTH - RIGHT, &group.heading)) }
            @let () = y += heading(group);
            @for (name, ratio) in &group.rows {
                (row(name, ratio, scale, y + ROW / 2.0))
                @let () = y += ROW;
            }
        }
    }
}

fn axis(scale: Scale, bottom: f64) -> Markup {
    let one = scale.x(1.0);
    html! {
        @for mark in scale.marks() {
            @let x = round(scale.x(mark));
            line class=(if mark == 1.0 { "one" } else { "grid" }) x1=(x) x2=(x) y1=(TOP - 4.0) y2=(round(bottom)) {}
            text.tick.middle x=(x) y=(round(bottom + 14.0)) { (mark) "×" }
        }
        text.unit.end x=(round(one - 8.0)) y="11" { "← faster" }
        text.unit x=(round(one + 8.0)) y="11" { "slower →" }
        text.unit.middle x=(round((LEFT + WIDTH - RIGHT) / 2.0)) y=(round(bottom + 29.0)) { "time, Ceasefire ÷ Linux (log scale)" }
    }
}

fn row(name: &str, ratio: &Ratio, scale: Scale, y: f64) -> Markup {
    let Spread { least, median, most } = ratio.spread;
    let spread = format!("{}–{}", number::ratio(least).trim_end_matches('×'), number::ratio(most));
    let value = number::ratio(median);
    let [least, median, most] = [least, median, most].map(|ratio| scale.x(ratio));
    let class = match ratio.verdict() {
        Verdict::Better => "better",
        Verdict::Same => "unclear",
        Verdict::Worse => "worse",
    };
    html! {
        (label("tick", 0.0, y + 4.0, LEFT - 4.0, name))
        g class=(class) {
            title { (name) ": " (value) ", " (spread) " over " (pairs(ratio.pairs)) }
            @if most - least > 0.5 {
                line.whisker x1=(round(least)) x2=(round(most)) y1=(round(y)) y2=(round(y)) {}
                @for end in [least, most] {
                    line.whisker x1=(round(end)) x2=(round(end)) y1=(round(y - 4.0)) y2=(round(y + 4.0)) {}
                }
            }
            @if ratio.verdict() == Verdict::Worse {
                path.dot d={ "M" (round(median)) " " (round(y - 6.0)) "l6 6l-6 6l-6-6z" } {}
            } @else {
                circle.dot cx=(round(median)) cy=(round(y)) r="4.5" {}
            }
        }
        text.ratio x=(WIDTH - RIGHT + 10.0) y=(round(y + 4.0)) {
            tspan.strong { (value) }
            @if ratio.spread.least != ratio.spread.most { tspan.weak dx="5" { (spread) } }
        }
    }
}

/// "3 pairs of runs".
pub(in crate::page) fn pairs(count: usize) -> String {
    match count {
        0 => "the medians".into(),
        1 => "one pair of runs".into(),
        count => format!("{count} pairs of runs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_reaches_over_everything_and_marks_one() {
        let ratio = |median: f64| Ratio {
            spread: Spread { least: median / 2.0, median, most: median * 2.0 },
            pairs: 3,
        };
        for ratios in [vec![], vec![ratio(1.0)], vec![ratio(0.001), ratio(700.0)], vec![ratio(40.0)]] {
            let scale = Scale::over(ratios.iter().copied());
            assert!(scale.least <= 0.5 && scale.most >= 2.0);
            let marks = scale.marks();
            assert!(marks.contains(&1.0) && marks.len() >= 2 && marks.len() <= 6, "{marks:?}");
            for ratio in ratios {
                assert!(scale.x(ratio.spread.least) > LEFT && scale.x(ratio.spread.most) < WIDTH - RIGHT);
            }
        }
    }
}
