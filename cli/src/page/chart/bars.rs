//! Counts as bars from zero: what a mechanism changes, or what came to each CPU.
//!
//! Bars stand in groups under a heading. A bar that stands for something switched off is hatched, the others are filled; the
//! value and the name stand at its end.

use maud::{Markup, html};

use super::{LINE, Mark, WIDTH, label, round};
use crate::number;

const LEFT: f64 = 60.0;
/// Room for value and name behind the longest bar.
const RIGHT: f64 = 140.0;
const BAR: f64 = 11.0;
const BETWEEN: f64 = 9.0;
const HEADING: f64 = 20.0;
const UNIT: f64 = 18.0;

/// Bars that belong together.
pub(in crate::page) struct Group {
    /// Above the group; empty for none.
    pub(in crate::page) heading: String,
    pub(in crate::page) rows: Vec<Row>,
}

/// What is compared, such as "4 CPUs", and the bars of each side.
pub(in crate::page) struct Row {
    pub(in crate::page) name: String,
    pub(in crate::page) bars: Vec<Bar>,
    /// The lower bound, as a line across the bars.
    pub(in crate::page) bound: Option<f64>,
}

/// One bar.
pub(in crate::page) struct Bar {
    pub(in crate::page) mark: Mark,
    pub(in crate::page) name: String,
    pub(in crate::page) value: f64,
}

/// The chart's height.
pub(in crate::page) fn height(groups: &[Group]) -> f64 {
    UNIT + groups
        .iter()
        .map(|group| heading(group) + group.rows.iter().map(Row::height).sum::<f64>())
        .sum::<f64>()
}

fn heading(group: &Group) -> f64 {
    if group.heading.is_empty() { 0.0 } else { HEADING }
}

impl Row {
    fn height(&self) -> f64 {
        self.bars.len().max(1) as f64 * LINE + BETWEEN
    }
}

/// The longest bar's value.
pub(in crate::page) fn most<'a>(rows: impl IntoIterator<Item = &'a Row>) -> f64 {
    let values = rows.into_iter().flat_map(|row| row.bars.iter().map(|bar| bar.value));
    values.filter(|value| value.is_finite()).fold(0.0, f64::max)
}

/// Draws the groups below each other, on a scale that ends at `most`.
pub(in crate::page) fn draw(groups: &[Group], unit: &str, most: f64) -> Markup {
    let scale = if most > 0.0 { (WIDTH - LEFT - RIGHT) / most } else { 0.0 };
    let mut y = UNIT;
    html! {
        text.unit x="0" y="11" { (unit) }
        @for group in groups {
            @if !group.heading.is_empty() { (label("heading", 0.0, y + 14.0, WIDTH, &group.heading)) }
            @let () = y += heading(group);
            @for row in &group.rows {
                (draw_row(row, y, scale))
                @let () = y += row.height();
            }
        }
    }
}

fn draw_row(row: &Row, y: f64, scale: f64) -> Markup {
    let bottom = y + row.bars.len().max(1) as f64 * LINE;
    html! {
        (label("tick", 0.0, y + (bottom - y) / 2.0 + 4.0, LEFT - 6.0, &row.name))
        line.axis x1=(LEFT) x2=(LEFT) y1=(round(y)) y2=(round(bottom + 2.0)) {}
        @for (index, bar) in row.bars.iter().enumerate() {
            @let top = y + LINE * index as f64 + 1.0;
            @let width = if bar.value.is_finite() { (bar.value * scale).max(0.0) } else { 0.0 };
            g {
                title { (row.name) ", " (bar.name) ": " (number::count(bar.value)) }
                rect class={ (bar.mark.class()) " bar" } x=(LEFT) y=(round(top)) width=(round(width)) height=(BAR) {}
            }
            (label(
                &format!("{} name", bar.mark.class()), LEFT + width + 6.0, top + 9.5, WIDTH - LEFT - width - 6.0,
                &format!("{} {}", number::short(bar.value), bar.name)
            ))
        }
        @if let Some(bound) = row.bound.filter(|bound| *bound > 0.0 && bound * scale <= WIDTH - LEFT - RIGHT) {
            g {
                title { "lower bound: " (number::count(bound)) }
                line.bound.across x1=(round(LEFT + bound * scale)) x2=(round(LEFT + bound * scale)) y1=(round(y - 2.0)) y2=(round(bottom + 2.0)) {}
            }
        }
    }
}
