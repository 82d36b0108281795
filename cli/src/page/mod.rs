//! The HTML page of results: one file that needs nothing else, for screen and paper, light and dark, without scripts.
//!
//! [`render`] makes it from one document or from several, which then stand side by side. Counts and times have sections of their
//! own and never share a chart. Each kind of chart has a file in `chart`; the other files are the page's sections, made from the
//! cases of `result::case`. Everything that comes from a file goes through the template's escaping: there is no other way into
//! the page.

mod ablation;
mod chart;
mod counts;
mod differences;
mod figures;
mod findings;
mod head;
mod instructions;
mod method;
mod prediction;
mod program;
mod runs;
mod times;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::predict;
use crate::result::Document;
use crate::result::case::Case;

/// Ours, constant: it may be written into the page as it is.
const STYLE: &str = include_str!("style.css");

/// A result and the name that it goes by on the page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Titled<'a> {
    pub(crate) name: &'a str,
    pub(crate) document: &'a Document,
}

/// A result with its records arranged.
struct Shown<'a> {
    name: &'a str,
    document: &'a Document,
    cases: Vec<Case<'a>>,
    /// Whether others stand beside it, so that its charts must say whose they are.
    among_others: bool,
}

impl Shown<'_> {
    /// The title of one of its charts.
    fn title(&self, workload: &str, case: &str) -> Markup {
        html! {
            (workload)
            @if !case.is_empty() { span.case { " " (case) } }
            @if self.among_others { span.result { (self.name) } }
        }
    }
}

/// The page.
pub(crate) fn render(results: &[Titled<'_>]) -> String {
    let shown: Vec<_> = results
        .iter()
        .map(|result| Shown {
            name: result.name,
            document: result.document,
            cases: Case::all_of(result.document),
            among_others: results.len() > 1,
        })
        .collect();
    let title = match results {
        [one] => format!("Ceasefire: {}", one.name),
        several => format!("Ceasefire: {} results side by side", several.len()),
    };
    frame(&title, &html! { (patterns()) (body(results, &shown)) })
}

/// The page of predictions, which never stand beside measurements.
pub(crate) fn render_prediction(document: &predict::Document) -> String {
    frame("Ceasefire: predictions", &prediction::body(document))
}

/// What surrounds every page.
fn frame(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                // Nothing is fetched and nothing is run, whatever a file may contain.
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    };
    page.into_string()
}

fn body(results: &[Titled<'_>], shown: &[Shown<'_>]) -> Markup {
    html! {
        header {
            p.kicker { "Ceasefire" }
            h1 { @match results { [one] => (one.name), several => { (several.len()) " results side by side" } } }
            p.lead { "What keeping translations coherent costs the same programs on Ceasefire and on Linux, in the same emulated machine." }
            (head::render(results))
            @if let Some(remarks) = each(shown, |result| head::remarks(result.document)) { (remarks) }
        }
        main {
            (overview(shown))
            (count_sections(shown))
            (time_section(shown))
            (further_figures(shown))
            (programs(shown))
            section #method {
                h2 { "How it was measured" }
                (method::render())
                @if let Some(lists) = each(shown, |result| runs::list(result.document)) { (lists) }
            }
        }
    }
}

/// A part of the page for each result that has it, under its name where there are several; nothing if none has it.
fn each(shown: &[Shown<'_>], part: impl Fn(&Shown<'_>) -> Option<Markup>) -> Option<Markup> {
    let parts: Vec<_> = shown.iter().filter_map(|result| Some((result, part(result)?))).collect();
    (!parts.is_empty()).then(|| {
        html! {
            @for (result, part) in parts {
                @if result.among_others { h3 { (result.name) } }
                (part)
            }
        }
    })
}

fn overview(shown: &[Shown<'_>]) -> Markup {
    html! {
        @if let Some(findings) = each(shown, findings::render) {
            section #findings { h2 { "What came out" } (findings) }
        }
        @if shown.len() > 1 {
            section #differences {
                h2 { "What differs" }
                (differences::counts(shown))
                @if let Some(table) = differences::ratios(shown) { h3 { "Ratios of times" } (table) }
            }
        }
    }
}

fn count_sections(shown: &[Shown<'_>]) -> Markup {
    html! {
        @if let Some(tables) = each(shown, |result| counts::table(result.document, &result.cases)) {
            section #counts { h2 { "Interrupts per operation" } (tables) }
        }
        @if let Some(charts) = counts::charts(shown) {
            section #scaling { h2 { "Interrupts per operation over CPUs" } (charts) }
        }
        @if let Some(tables) = each(shown, |result| instructions::table(&result.cases)) {
            section #instructions {
                h2 { "Instructions per operation" }
                p {
                    "Of all CPUs together, kernel and program, in deterministic mode; Linux starts on the instruction clock with one CPU only."
                }
                (tables)
            }
        }
        @if let Some(charts) = ablation::charts(shown) {
            section #ablation {
                h2 { "What each mechanism changes" }
                p { "Interrupts per operation on Ceasefire, hatched with a mechanism switched off, filled with all of them on. The line across is the lower bound." }
                (charts)
            }
        }
    }
}

fn time_section(shown: &[Shown<'_>]) -> Markup {
    let tables = each(shown, |result| times::table(&result.cases));
    html! {
        @if let Some(tables) = tables {
            section #times {
                h2 { "Time per operation" }
                p {
                    "Ceasefire's time divided by Linux's: the median of the pairs of runs, with the least and the most. A filled circle: every "
                    "pair was faster. A diamond: every pair was slower. A hollow circle: the pairs disagree."
                }
                @if let Some(charts) = times::charts(shown) { (charts) }
                (tables)
            }
        }
    }
}

fn further_figures(shown: &[Shown<'_>]) -> Markup {
    html! {
        @if let Some(tables) = each(shown, |result| figures::tables(result.document, &result.cases)) {
            section #figures {
                h2 { "What else the workloads measured" }
                p { "Each by the program itself: with the host's clock in single mode, in instructions in deterministic mode." }
                (tables)
            }
        }
    }
}

fn programs(shown: &[Shown<'_>]) -> Markup {
    html! {
        @if let Some(sections) = each(shown, |result| program::sections(result.document)) {
            section #programs { h2 { "One program on both kernels" } (sections) }
        }
    }
}

/// Names of all workloads, in the order in which they come.
fn workloads<'a>(results: &[Shown<'a>]) -> Vec<&'a str> {
    let mut names = Vec::new();
    for case in results.iter().flat_map(|result| &result.cases) {
        if !names.contains(&case.workload) {
            names.push(case.workload);
        }
    }
    names
}

/// The hatching of bars, which the style sheet refers to.
fn patterns() -> Markup {
    html! {
        svg.patterns aria-hidden="true" width="0" height="0" {
            defs {
                pattern #hatch patternUnits="userSpaceOnUse" width="5" height="5" patternTransform="rotate(45)" {
                    rect.paper width="5" height="5" {}
                    rect.ink width="2" height="5" {}
                }
                pattern #dots patternUnits="userSpaceOnUse" width="4" height="4" {
                    rect.paper width="4" height="4" {}
                    circle.ink cx="2" cy="2" r="1" {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result;

    /// The page of results that are kept for the browser's tests (`cli/tests/page.rs`).
    fn page(names: &[&str]) -> String {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results");
        let documents = names.iter().map(|name| result::read(&folder.join(name)).unwrap());
        let documents: Vec<_> = documents.collect();
        let titled = names.iter().zip(&documents).map(|(name, document)| Titled { name, document });
        render(&titled.collect::<Vec<_>>())
    }

    fn assert_says(page: &str, texts: &[&str]) {
        for text in texts {
            assert!(page.contains(text), "the page does not say '{text}'");
        }
    }

    #[test]
    fn what_is_worse_and_what_is_absent_stands_in_words() {
        assert_says(
            &page(&["bench.json"]),
            &[
                "More interrupts per operation than Linux",
                "▲ worse than Linux: +104\u{a0}%",
                "▲ slower than Linux",
                "membarrier-loop on Ceasefire with 8 CPUs failed</strong>: the run did not end within 60 seconds",
                "lru-file-mmap-read on Ceasefire</strong>: ",
                "9f2c1b7e5a40d3c89f2c1b7e5a40d3c89f2c1b7e5a40d3c89f2c1b7e5a40d3c8",
            ],
        );
    }

    #[test]
    fn several_results_are_compared_with_the_first() {
        let page = page(&["bench.json", "older.json"]);
        assert_says(
            &page,
            &["2 results side by side", "change from <strong>bench.json</strong>", "+33\u{a0}%"],
        );
        assert_says(&page, &["that not all of the files have", "only here", "not here"]);
    }

    #[test]
    fn a_comparison_has_reasons_and_its_ablation() {
        let page = page(&["compare.json"]);
        assert_says(
            &page,
            &["Fewer interrupts than Linux: −50\u{a0}%", "8,000 promotion off", "4,000 all on"],
        );
        assert_says(
            &page,
            &["Permissions were changed.", "translations invalidated on request of another CPU"],
        );
    }

    #[test]
    fn whatever_a_file_says_stays_text() {
        let page = page(&["hostile.json"]);
        for tag in ["<script", "<img", "<b>", "<i>", "<u>", "<h1>x"] {
            assert!(!page.contains(tag), "{tag} came through");
        }
        assert_says(
            &page,
            &["&lt;script&gt;document.title=&quot;owned&quot;&lt;/script&gt;", "This result is incomplete"],
        );
        assert!(!page.contains("0.30000000000000004") && !page.contains("NaN"));
    }

    #[test]
    fn a_result_without_anything_still_makes_a_page() {
        let document = Document::new(Vec::new(), Vec::new());
        let page = render(&[Titled { name: "nothing", document: &document }]);
        assert_says(&page, &["no run was made on Linux", "How it was measured"]);
        assert!(!page.contains("<figure"));
    }
}
