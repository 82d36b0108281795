//! Counts for each operation over the number of CPUs: one line for each side, and the bound.
//!
//! CPUs stand on a logarithmic axis, since they double from one measurement to the next; counts start at zero. Lines are named at
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

/// The chart's height.
pub(in crate::page) const fn height() -> f64 {
    HEIGHT
}

/// Where things are.
struct Plot {
    cpus: Vec<u32>,
    end: f64,
    step: f64,
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

    fn y(&self, count: f64) -> f64 {
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * count / self.end
    }
}

/// Draws the lines; the scale reaches to `most` at least, so that charts beside each other can share one.
pub(in crate::page) fn draw(lines: &[Line], most: f64) -> Markup {
    let mut cpus: Vec<u32> =
        lines.iter().flat_map(|line| line.points.iter().map(|(cpus, _)| *cpus)).collect();
    cpus.sort_unstable();
    cpus.dedup();
    if cpus.is_empty() {
        return html! {};
    }
    let values = lines.iter().flat_map(|line| line.points.iter().map(|(_, count)| *count));
    let (end, step) = axis(values.filter(|count| count.is_finite()).fold(most, f64::max));
    let plot = Plot { cpus, end, step };
    html! {
        (axes(&plot))
        @for line in lines { (path(&plot, line)) }
        @for line in lines { (marks(&plot, line)) }
        (names(&plot, lines))
    }
}

fn axes(plot: &Plot) -> Markup {
    let steps = (plot.end / plot.step).round() as u32;
    html! {
        text.unit x="0" y="11" { "interrupts per operation" }
        @for index in 0..=steps {
            @let value = f64::from(index) * plot.step;
            @let y = plot.y(value);
            line class=(if index == 0 { "axis" } else { "grid" }) x1=(LEFT) x2=(WIDTH - RIGHT) y1=(round(y)) y2=(round(y)) {}
            text.tick.end x=(LEFT - 6.0) y=(round(y + 4.0)) { (number::mark(value)) }
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
                title { (line.name) ": " (number::count(*count)) " interrupts per operation on " (crate::result::case::cpus(*cpus)) }
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
            (label(&format!("{} name", line.mark.class()), x, *place + 4.0, WIDTH - x, &format!("{} {}", number::short(*count), line.name)))
        }
    }
}
