//! Charts as SVG inside the page.
//!
//! Each kind has a file; here is what they share: the figure around a chart, its data as a table, markers, axes, and labels that
//! make room for each other. All charts are drawn 360 units wide and shown at about that many pixels, so that their text has one
//! size everywhere. Colours and dashes are the style sheet's (`style.css`), by class, so that one drawing serves light, dark and
//! paper. Lengths of text are estimated on the safe side, since no font is known here; `cli/tests/page.rs` looks whether they fit.

pub(super) mod bars;
pub(super) mod lines;
pub(super) mod ratios;

use maud::{Markup, html};

/// Units across every chart.
pub(super) const WIDTH: f64 = 360.0;
/// Units between two lines of text.
const LINE: f64 = 14.0;

/// Who a mark stands for. The class gives the colour; shape and dash say the same without colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// Ours: a filled circle.
    Ours,
    /// Ours with mechanisms off: a hollow circle, dashed.
    Without,
    /// Linux: a hollow square.
    Linux,
    /// The lower bound: a dash.
    Bound,
    /// An older Linux: a hollow triangle, dashed.
    Older,
    /// Hardware that does it: a hollow diamond.
    Hardware,
    /// What breaks a promise: a cross, dotted.
    Unsound,
}

impl Mark {
    pub(super) fn class(self) -> &'static str {
        match self {
            Mark::Ours => "ours",
            Mark::Without => "without",
            Mark::Linux => "linux",
            Mark::Bound => "bound",
            Mark::Older => "older",
            Mark::Hardware => "hardware",
            Mark::Unsound => "unsound",
        }
    }

    /// The shape around a point. Sizes differ, so that marks in one place all stay visible.
    fn at(self, x: f64, y: f64) -> Markup {
        html! {
            @match self {
                Mark::Ours => circle class="ours mark" cx=(round(x)) cy=(round(y)) r="3.5" {},
                Mark::Without => circle class="without mark" cx=(round(x)) cy=(round(y)) r="5.5" {},
                Mark::Linux => rect class="linux mark" x=(round(x - 5.0)) y=(round(y - 5.0)) width="10" height="10" {},
                Mark::Bound => line class="bound mark" x1=(round(x - 8.0)) x2=(round(x + 8.0)) y1=(round(y)) y2=(round(y)) {},
                Mark::Older => polygon class="older mark" points=(corners([(x, y - 6.0), (x + 5.5, y + 4.5), (x - 5.5, y + 4.5)])) {},
                Mark::Hardware => polygon class="hardware mark" points=(corners([(x, y - 6.0), (x + 6.0, y), (x, y + 6.0), (x - 6.0, y)])) {},
                Mark::Unsound => path class="unsound mark" d={
                    "M" (round(x - 4.0)) " " (round(y - 4.0)) "L" (round(x + 4.0)) " " (round(y + 4.0))
                    "M" (round(x + 4.0)) " " (round(y - 4.0)) "L" (round(x - 4.0)) " " (round(y + 4.0))
                } {},
            }
        }
    }
}

fn corners<const N: usize>(points: [(f64, f64); N]) -> String {
    points.map(|(x, y)| format!("{},{}", round(x), round(y))).join(" ")
}

/// A chart with its title, what a reader who cannot see it should know, and its data.
pub(super) struct Figure {
    pub(super) title: Markup,
    pub(super) description: String,
    pub(super) height: f64,
    pub(super) drawing: Markup,
    pub(super) data: Markup,
}

impl Figure {
    pub(super) fn render(&self) -> Markup {
        html! {
            figure.chart {
                figcaption { (self.title) }
                svg role="img" aria-label=(self.description) viewBox={ "0 0 " (WIDTH) " " (round(self.height)) } {
                    (self.drawing)
                }
                details.data {
                    summary { "Data" }
                    (self.data)
                }
            }
        }
    }
}

/// A plain table: the first column names the rows, all others are numbers.
pub(super) fn data(header: &[&str], rows: &[Vec<String>]) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Data of the chart" {
            table {
                thead { tr { @for name in header { th scope="col" { (name) } } } }
                tbody {
                    @for row in rows {
                        tr {
                            @for (column, cell) in row.iter().enumerate() {
                                @if column == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The height that a chart may have to fit on a sheet of paper with its title.
const SHEET: f64 = 880.0;

/// Groups of rows dealt out to charts that each fit on a sheet; a group stays whole.
pub(super) fn sheets<Group>(groups: Vec<Group>, height: fn(&[Group]) -> f64) -> Vec<Vec<Group>> {
    let mut charts: Vec<Vec<Group>> = Vec::new();
    for group in groups {
        match charts.last_mut() {
            Some(chart) => {
                chart.push(group);
                if height(chart) > SHEET && chart.len() > 1 {
                    let group = chart.pop();
                    charts.push(group.into_iter().collect());
                }
            }
            None => charts.push(vec![group]),
        }
    }
    charts
}

/// A coordinate with the digits that a screen can show.
fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// Units that a text takes in a chart, in a wide font (DejaVu Sans): most fonts need less.
pub(super) fn width(text: &str) -> f64 {
    let units = |character: char| match character {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '\'' | '!' | ' ' | '\u{a0}' | '·' => 3.6,
        'f' | 't' | 'r' | 'I' | '-' | '(' | ')' | '[' | ']' | '/' | '\\' => 4.6,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' | '—' => 11.0,
        '+' | '=' | '<' | '>' | '×' | '÷' | '−' | '&' | '~' | '^' | '#' | '_' => 9.3,
        'A'..='Z' => 8.4,
        character if character.is_ascii() => 7.0,
        'À'..='ÿ' => 8.4,
        _ => 11.0,
    };
    text.chars().map(units).sum()
}

/// Bold letters are that much wider.
const BOLD: f64 = 1.14;

/// The text as far as it fits into that many units, and whether all of it does.
fn fitted(text: &str, units: f64) -> (String, bool) {
    if width(text) <= units {
        return (text.to_owned(), true);
    }
    let mut shown = String::new();
    for character in text.chars() {
        if width(&shown) + width(character.encode_utf8(&mut [0; 4])) + width("…") > units {
            break;
        }
        shown.push(character);
    }
    (shown + "…", false)
}

/// Text of a chart, shortened to fit; the whole of it is in the tooltip.
fn label(class: &str, x: f64, y: f64, units: f64, text: &str) -> Markup {
    let is_bold = class.split(' ').any(|class| ["heading", "ours"].contains(&class));
    let (shown, whole) = fitted(text, if is_bold { units / BOLD } else { units });
    html! {
        text class=(class) x=(round(x)) y=(round(y)) {
            @if !whole { title { (text) } }
            (shown)
        }
    }
}

/// Moves positions apart until neighbours have `gap` between them, within `from..=to`, keeping their order and each as near to
/// its own place as that allows.
fn spread(positions: &mut [f64], gap: f64, from: f64, to: f64) {
    let mut order: Vec<usize> = (0..positions.len()).collect();
    order.sort_by(|one, other| positions[*one].total_cmp(&positions[*other]));
    // Neighbours that touch become one block with their middle where their own middles were.
    let mut blocks: Vec<(f64, Vec<usize>)> = Vec::new();
    for index in order {
        let mut block = (positions[index], vec![index]);
        while let Some((middle, members)) = blocks.pop() {
            let reach = gap * (members.len() + block.1.len()) as f64 / 2.0;
            if block.0 - middle >= reach {
                blocks.push((middle, members));
                break;
            }
            let all = (members.len() + block.1.len()) as f64;
            let joined = (middle * members.len() as f64 + block.0 * block.1.len() as f64) / all;
            block = (joined, [members, block.1].concat());
        }
        blocks.push(block);
    }
    for (middle, members) in &blocks {
        let half = gap * (members.len() - 1) as f64 / 2.0;
        for (place, index) in members.iter().enumerate() {
            positions[*index] = middle - half + gap * place as f64;
        }
    }
    // What is pushed out of an end pushes the others.
    let mut order: Vec<usize> = (0..positions.len()).collect();
    order.sort_by(|one, other| positions[*one].total_cmp(&positions[*other]));
    let mut least = from;
    for index in &order {
        positions[*index] = positions[*index].max(least);
        least = positions[*index] + gap;
    }
    let mut most = to;
    for index in order.iter().rev() {
        positions[*index] = positions[*index].min(most);
        most = positions[*index] - gap;
    }
}

/// The end of an axis that starts at zero, and the distance between its marks: round numbers, at most six marks.
fn axis(most: f64) -> (f64, f64) {
    if !(most.is_finite() && most > 0.0) {
        return (1.0, 1.0);
    }
    let power = 10f64.powf((most / 5.0).log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power);
    let step = step.into_iter().find(|step| most / step <= 5.0 + 1e-9).unwrap_or(10.0 * power);
    ((most / step - 1e-9).ceil() * step, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_make_room_for_each_other() {
        let mut places = [50.0, 50.0, 52.0, 200.0];
        spread(&mut places, 10.0, 0.0, 210.0);
        let mut sorted = places;
        sorted.sort_by(f64::total_cmp);
        assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] >= 10.0 - 1e-9), "{places:?}");
        assert!((places[0] - 40.67).abs() < 0.1 && places[3] == 200.0, "{places:?}");
        let mut edge = [0.0, 1.0, 99.0, 100.0];
        spread(&mut edge, 10.0, 0.0, 100.0);
        assert_eq!(edge, [0.0, 10.0, 90.0, 100.0]);
    }

    #[test]
    fn charts_that_are_too_long_for_a_sheet_are_divided() {
        let height: fn(&[f64]) -> f64 = |groups| groups.iter().sum();
        assert_eq!(
            sheets(vec![400.0, 400.0, 400.0, 2000.0, 10.0], height),
            [vec![400.0, 400.0], vec![400.0], vec![2000.0], vec![10.0]]
        );
        assert!(sheets(Vec::new(), height).is_empty());
    }

    #[test]
    fn axes_end_at_round_numbers() {
        for (most, wanted) in [
            (3.0, (3.0, 1.0)),
            (7.0, (8.0, 2.0)),
            (0.011, (0.0125, 0.0025)),
            (63.0, (80.0, 20.0)),
            (12_345.0, (12_500.0, 2_500.0)),
            (0.0, (1.0, 1.0)),
            (f64::NAN, (1.0, 1.0)),
        ] {
            let (end, step) = axis(most);
            let near = |one: f64, other: f64| (one - other).abs() < 1e-9 * other.abs();
            assert!(near(end, wanted.0) && near(step, wanted.1), "{most}: {end} {step}");
        }
    }

    #[test]
    fn long_text_is_shortened_by_characters() {
        assert_eq!(fitted("short", 100.0), ("short".into(), true));
        let (shown, whole) = fitted("äöüäöüäöü", 40.0);
        assert!(
            !whole && shown.starts_with("äö") && shown.ends_with('…') && width(&shown) <= 40.0,
            "{shown}"
        );
        assert_eq!(fitted("anything", 0.0), ("…".into(), false));
    }
}
