//! Looks at the page of results in a headless browser: at several widths, light, dark and on paper.
//!
//! The pages are made by `ceasefire report` from results that are kept in `results/`; `page/probe.js` looks at them from inside,
//! `page/picture.js` at their pictures. These tests need chromium, so `cargo test` leaves them out and `./ceasefire test` runs them
//! where it is installed.

#[path = "page/browser.rs"]
mod browser;

use std::path::{Path, PathBuf};
use std::process::Command;

use browser::{Browser, View};

const PROBE: &str = include_str!("page/probe.js");
const PICTURE: &str = include_str!("page/picture.js");

/// Charts that belong to the results that are kept.
const BENCH_CHARTS: usize = 38;
const OLDER_CHARTS: usize = 14;
const COMPARE_CHARTS: usize = 2;
const HOSTILE_CHARTS: usize = 25;
const PREDICTION_CHARTS: usize = 6;

/// Text column of an A4 sheet with the style sheet's margins, at 96 dots for an inch.
const SHEET: u32 = 688;

const VIEWS: [View; 8] = [
    View { width: 400, scheme: "light", paper: false },
    View { width: 400, scheme: "dark", paper: false },
    View { width: 640, scheme: "light", paper: false },
    View { width: 900, scheme: "dark", paper: false },
    View { width: 1400, scheme: "light", paper: false },
    View { width: 1400, scheme: "dark", paper: false },
    View { width: SHEET, scheme: "light", paper: true },
    View { width: SHEET, scheme: "dark", paper: true },
];

/// A page in a folder that vanishes with it.
struct Page {
    file: PathBuf,
    charts: usize,
    _folder: tempfile::TempDir,
}

impl Page {
    /// The page of these results, in which so many charts must be.
    fn of(results: &[&str], charts: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("page.html");
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results");
        let mut command = Command::new(env!("CARGO_BIN_EXE_ceasefire"));
        command.args(["report", "--html"]).arg(&file).args(results.iter().map(|name| kept.join(name)));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Page { file, charts, _folder: folder }
    }

    /// What is wrong with the page as it is shown now.
    fn problems(&self, browser: &mut Browser, view: View) -> Vec<String> {
        let found = browser.evaluate(&format!("{PROBE}({}, {})", self.charts, view.paper));
        let mut problems: Vec<String> = serde_json::from_value(found).unwrap();
        problems.append(&mut browser.complaints);
        problems
    }

    fn assert_good(&self, browser: &mut Browser) {
        for view in VIEWS {
            browser.open(&self.file, view);
            let problems = self.problems(browser, view);
            assert!(problems.is_empty(), "{view:?}: {problems:#?}");
            // With its tables unfolded too, which paper does not show.
            browser
                .evaluate("for (const details of document.querySelectorAll('details')) details.open = true;");
            let problems = self.problems(browser, view);
            assert!(problems.is_empty(), "{view:?}, unfolded: {problems:#?}");
        }
    }
}

#[test]
#[ignore = "needs chromium: ./ceasefire test runs it"]
fn the_page_of_a_bench_is_good_in_every_view() {
    Page::of(&["bench.json"], BENCH_CHARTS).assert_good(&mut Browser::start());
}

#[test]
#[ignore = "needs chromium: ./ceasefire test runs it"]
fn several_results_side_by_side_are_good_in_every_view() {
    Page::of(&["bench.json", "older.json"], BENCH_CHARTS + OLDER_CHARTS).assert_good(&mut Browser::start());
}

#[test]
#[ignore = "needs chromium: ./ceasefire test runs it"]
fn a_comparison_is_good_in_every_view() {
    Page::of(&["compare.json"], COMPARE_CHARTS).assert_good(&mut Browser::start());
}

#[test]
#[ignore = "needs chromium: ./ceasefire test runs it"]
fn predictions_are_good_in_every_view() {
    Page::of(&["prediction.json"], PREDICTION_CHARTS).assert_good(&mut Browser::start());
}

#[test]
#[ignore = "needs chromium: ./ceasefire test runs it"]
fn whatever_a_file_says_stays_text() {
    let page = Page::of(&["hostile.json"], HOSTILE_CHARTS);
    let mut browser = Browser::start();
    page.assert_good(&mut browser);
    assert_eq!(browser.evaluate("document.title"), "Ceasefire: hostile");
    let text = browser.evaluate("document.body.textContent");
    assert!(text.as_str().unwrap().contains("<script>document.title"), "the text is not there as text");
}

#[test]
#[ignore = "needs chromium: ./ceasefire test runs it"]
fn the_picture_shows_every_chart() {
    const BOXES: &str = "[...document.querySelectorAll('figure.chart svg')].map((svg) => {
        const box = svg.getBoundingClientRect();
        return [box.left + scrollX, box.top + scrollY, box.width, box.height].map(Math.floor);
    })";
    let page = Page::of(&["bench.json"], BENCH_CHARTS);
    let mut browser = Browser::start();
    for view in [VIEWS[0], VIEWS[5], VIEWS[6]] {
        browser.open(&page.file, view);
        let problems = |browser: &mut Browser| {
            let (boxes, picture) = (browser.evaluate(BOXES), browser.picture());
            assert_eq!(boxes.as_array().unwrap().len(), page.charts);
            browser.elsewhere(&format!("{PICTURE}('{picture}', {boxes})"))
        };
        assert_eq!(problems(&mut browser), serde_json::json!([]), "{view:?}");
        browser.evaluate("document.querySelectorAll('figure.chart svg')[3].replaceChildren();");
        assert_eq!(problems(&mut browser), serde_json::json!(["box 3 is blank"]), "{view:?}");
        browser.evaluate("document.body.style.visibility = 'hidden';");
        assert_ne!(problems(&mut browser), serde_json::json!([]), "{view:?}");
    }
}

/// Breaks a good page in many ways: each must be noticed, by its own complaint.
#[test]
#[ignore = "needs chromium: ./ceasefire test runs it"]
fn a_broken_page_is_noticed() {
    let page = Page::of(&["bench.json"], BENCH_CHARTS);
    let mut browser = Browser::start();
    let (screen, paper) = (VIEWS[0], VIEWS[6]);
    let cases = [
        (screen, "$('figure.chart').remove()", "charts: "),
        (screen, "$('figure.chart svg').style.display = 'none'", "chart is not shown"),
        (screen, "$('figure.chart svg').removeAttribute('aria-label')", "chart has no name"),
        (screen, "$('figure.chart table').remove()", "chart has no data"),
        (screen, "$('figure.chart circle.mark').setAttribute('cx', 1000)", "mark is outside"),
        (screen, "$('figure.chart g title').remove()", "no tooltip"),
        (screen, "$('figure.chart text.name').textContent = 'x'.repeat(80)", "text leaves its chart"),
        (
            screen,
            "$('figure.chart text.name').setAttribute('y', $('figure.chart text.unit').getAttribute('y')), $('figure.chart text.name').setAttribute('x', 0)",
            "texts overlap",
        ),
        (
            screen,
            "$('figure.chart .bar').parentElement.nextElementSibling.setAttribute('x', 53)",
            "text lies on a bar",
        ),
        (screen, "$('p').style.width = '2000px'", "page scrolls sideways"),
        (screen, "$('h2').style.cssText = 'width: 20px; overflow-wrap: normal'", "text leaves its box"),
        (screen, "$('p.lead').style.color = '#aaaaaa'", "contrast"),
        (screen, "$('.chart .ours.mark').style.fill = '#dddddd'", "contrast"),
        (screen, "document.body.append(document.createElement('script'))", "foreign element"),
        (screen, "document.body.setAttribute('onclick', '1')", "handler"),
        (screen, "$('code').innerHTML = '<a href=x>x</a>'", "reference"),
        (screen, "$('.wide').removeAttribute('tabindex')", "scrolled by keys"),
        (
            screen,
            "document.body.append(Object.assign(new Image(), {src: 'https://example.org/x.png'}))",
            "log: ",
        ),
        (screen, "setTimeout(() => { throw new Error('broken'); })", "error: "),
        (screen, "document.body.replaceChildren()", "text: only 0"),
        (paper, "$('figure.chart').style.breakInside = 'auto'", "chart may be cut"),
        (paper, "$('figure.chart').style.height = '1200px'", "longer than a sheet"),
        (paper, "$('.wide').style.cssText = 'width: 60px; overflow: hidden'", "text leaves its box"),
    ];
    for (view, script, complaint) in cases {
        browser.open(&page.file, view);
        let script = format!("{{ const $ = (selector) => document.querySelector(selector); {script}; }}");
        browser.evaluate(&script);
        // What the page does on its own account comes a moment later.
        browser.evaluate("new Promise((done) => setTimeout(done, 50))");
        let problems = page.problems(&mut browser, view);
        assert!(problems.iter().any(|problem| problem.contains(complaint)), "{script}: {problems:#?}");
    }
}
