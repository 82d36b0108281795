//! Counts or times for each operation over the number of CPUs: one line for each side, and the bound.
//!
//! CPUs stand on a logarithmic axis, since they double from one measurement to the next; counts start at zero, times of which one
//! may be a thousand times another stand on a logarithmic axis too. Lines are named at
//! their right end, with the last value, so that no legend has to be looked up.

use maud::{Markup, html};

use super::{LINE, Mark, WIDTH, axis, label, round, spread};
use crate::number;

const LEFT: f64 = 50.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 36.0;
const HEIGHT: f64 = 220.0;

/// One line.
pub(in crate::page) struct Line {
    pub(in crate::page) mark: Mark,
    pub(in crate::page) name: String,
    /// CPUs, rising, and the count there.
    pub(in crate::page) points: Vec<(u32, f64)>,
}

/// What is drawn over the CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::page) enum Quantity {
    Interrupts,
    Nanoseconds,
}

impl Quantity {
    /// In words.
    pub(in crate::page) fn unit(self) -> &'static str {
        match self {
            Quantity::Interrupts => "interrupts per operation",
            Quantity::Nanoseconds => "time per operation",
        }
    }

    /// At an axis or a line's end.
    fn short(self, value: f64) -> String {
        match self {
            Quantity::Interrupts => number::short(value),
            Quantity::Nanoseconds => number::time(value),
        }
    }

    fn point(self, value: f64) -> String {
        match self {
            Quantity::Interrupts => format!("{} interrupts per operation", number::count(value)),
            Quantity::Nanoseconds => format!("{} per operation", number::time(value)),
        }
    }
}

/// The chart's height.
pub(in crate::page) const fn height() -> f64 {
    HEIGHT
}

/// Where things are.
struct Plot {
    cpus: Vec<u32>,
    scale: Scale,
    quantity: Quantity,
}

/// How values become heights.
enum Scale {
    /// From zero to the end, with marks that far apart.
    Even { end: f64, step: f64 },
    /// Between two powers of ten.
    Powers { from: i32, to: i32 },
}

impl Scale {
    fn of(values: impl Iterator<Item = f64> + Clone, most: f64, quantity: Quantity) -> Self {
        match quantity {
            Quantity::Interrupts => {
                let (end, step) = axis(values.fold(most, f64::max));
                Scale::Even { end, step }
            }
            Quantity::Nanoseconds => {
                let drawable = values.filter(|value| *value > 0.0);
                let least = drawable.clone().fold(f64::INFINITY, f64::min);
                let from = if least.is_finite() { least.log10().floor() as i32 } else { 0 };
                let to = drawable.fold(0.0, f64::max).max(1.0).log10().ceil() as i32;
                Scale::Powers { from, to: to.max(from + 1) }
            }
        }
    }

    /// From 0 at the bottom to 1 at the top.
    fn place(&self, value: f64) -> f64 {
        match self {
            Scale::Even { end, .. } => value / end,
            Scale::Powers { from, to } => {
                let place = value.max(f64::MIN_POSITIVE).log10() - f64::from(*from);
                (place / f64::from(to - from)).max(0.0)
            }
        }
    }

    fn marks(&self) -> Vec<f64> {
        match self {
            Scale::Even { end, step } => {
                (0..=(end / step).round() as u32).map(|index| f64::from(index) * step).collect()
            }
            Scale::Powers { from, to } => (*from..=*to).map(|power| 10f64.powi(power)).collect(),
        }
    }
}

impl Plot {
    fn x(&self, cpus: u32) -> f64 {
        let (first, last) = (self.cpus[0], self.cpus[self.cpus.len() - 1]);
        let width = WIDTH - LEFT - RIGHT;
        if first == last {
            return LEFT + width / 2.0;
        }
        let place = |count: u32| f64::from(count).log2();
        // A little air, so that marks do not stand on the axis.
        LEFT + 12.0 + (width - 24.0) * (place(cpus) - place(first)) / (place(last) - place(first))
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * self.scale.place(value)
    }
}

/// Draws the lines; the scale reaches to `most` at least, so that charts beside each other can share one.
pub(in crate::page) fn draw(lines: &[Line], most: f64, quantity: Quantity) -> Markup {
    let mut cpus: Vec<u32> =
        lines.iter().flat_map(|line| line.points.iter().map(|(cpus, _)| *cpus)).collect();
    cpus.sort_unstable();
    cpus.dedup();
    if cpus.is_empty() {
        return html! {};
    }
    let values = lines.iter().flat_map(|line| line.points.iter().map(|(_, count)| *count));
    let scale = Scale::of(values.filter(|value| value.is_finite()), most, quantity);
    let plot = Plot { cpus, scale, quantity };
    html! {
        (axes(&plot))
        @for line in lines { (path(&plot, line)) }
        @for line in lines { (marks(&plot, line)) }
        (names(&plot, lines))
    }
}

fn axes(plot: &Plot) -> Markup {
    html! {
        text.unit x="0" y="11" { (plot.quantity.unit()) }
        @for (index, value) in plot.scale.marks().into_iter().enumerate() {
            @let y = plot.y(value);
            line class=(if index == 0 { "axis" } else { "grid" }) x1=(LEFT) x2=(WIDTH - RIGHT) y1=(round(y)) y2=(round(y)) {}
            text.tick.end x=(LEFT - 6.0) y=(round(y + 4.0)) {
                @match plot.quantity { Quantity::Interrupts => (number::mark(value)), Quantity::Nanoseconds => (plot.quantity.short(value)) }
            }
        }
        @for (cpus, shown) in tick_labels(plot) {
            @let x = round(plot.x(cpus));
            line.axis x1=(x) x2=(x) y1=(HEIGHT - BOTTOM) y2=(HEIGHT - BOTTOM + 4.0) {}
            @if shown { text.tick.middle x=(x) y=(HEIGHT - BOTTOM + 18.0) { (cpus) } }
        }
        text.unit.middle x=(round((LEFT + WIDTH - RIGHT) / 2.0)) y=(HEIGHT - 4.0) {
            @if plot.cpus.len() > 1 { "CPUs (log scale)" } @else { "CPUs" }
        }
    }
}

/// The CPU counts, and for which there is room for a label: the first, the last, and those that keep their distance.
fn tick_labels(plot: &Plot) -> Vec<(u32, bool)> {
    const ROOM: f64 = 17.0;
    let last = plot.cpus[plot.cpus.len() - 1];
    let mut previous = f64::NEG_INFINITY;
    let decide = |cpus: &u32| {
        let x = plot.x(*cpus);
        let shown = *cpus == last || (x - previous >= ROOM && plot.x(last) - x >= ROOM);
        if shown {
            previous = x;
        }
        (*cpus, shown)
    };
    plot.cpus.iter().map(decide).collect()
}

fn path(plot: &Plot, line: &Line) -> Markup {
    let drawable = line.points.iter().filter(|(_, count)| count.is_finite());
    let points: Vec<_> =
        drawable.map(|(cpus, count)| format!("{},{}", round(plot.x(*cpus)), round(plot.y(*count)))).collect();
    html! {
        @if points.len() > 1 { polyline class={ (line.mark.class()) " line" } points=(points.join(" ")) {} }
    }
}

fn marks(plot: &Plot, line: &Line) -> Markup {
    html! {
        @for (cpus, count) in line.points.iter().filter(|(_, count)| count.is_finite()) {
            g {
                title { (line.name) ": " (plot.quantity.point(*count)) " on " (crate::result::case::cpus(*cpus)) }
                (line.mark.at(plot.x(*cpus), plot.y(*count)))
            }
        }
    }
}

/// Each line's mark, last value and name at its right end.
fn names(plot: &Plot, lines: &[Line]) -> Markup {
    let ends: Vec<_> = lines
        .iter()
        .filter_map(|line| Some((line, line.points.iter().rev().find(|(_, count)| count.is_finite())?)))
        .collect();
    let mut places: Vec<f64> = ends.iter().map(|(_, (_, count))| plot.y(*count)).collect();
    spread(&mut places, LINE, TOP, HEIGHT - BOTTOM);
    let x = WIDTH - RIGHT + 18.0;
    html! {
        @for ((line, (cpus, count)), place) in ends.iter().zip(&places) {
            @let (from, y) = (plot.x(*cpus) + 8.0, plot.y(*count));
            polyline class={ (line.mark.class()) " leader" }
                points={ (round(from)) "," (round(y)) " " (round(x - 14.0)) "," (round(y)) " " (round(x - 6.0)) "," (round(*place)) } {}
            (label(&format!("{} name", line.mark.class()), x, *place + 4.0, WIDTH - x, &format!("{} {}", plot.quantity.short(*count), line.name)))
        }
    }
}
