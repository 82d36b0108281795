//! `madvise`.

use super::page::{Page, Source, marks};
use super::{EFAULT, EINVAL, ENOMEM, Model, READ, WRITE, round_up};
use crate::names::{ADVICE, number};
use crate::program::{PAGE, TABLE};
use crate::trace::Answer;

impl Model {
    pub(super) fn advise(
        &mut self,
        process: u8,
        at: u64,
        length: u64,
        advice: u64,
        observed: Option<&Answer>,
    ) -> Answer {
        let is_known = ADVICE.iter().any(|(_, known)| *known == advice);
        let rounded = round_up(length);
        if !is_known || !at.is_multiple_of(PAGE) || (length != 0 && rounded == 0) {
            return Answer::Error(EINVAL);
        }
        let Some(end) = at.checked_add(rounded) else { return Answer::Error(EINVAL) };
        if rounded == 0 {
            return Answer::Done;
        }
        let (first, end) = (at / PAGE, end / PAGE);
        let pages: Vec<u64> = self.space(process).pages.range(first..end).map(|(page, _)| *page).collect();
        let has_hole = pages.len() as u64 != end - first;
        if advice == number(ADVICE, "collapse") {
            let could = if has_hole { Answer::Error(ENOMEM) } else { Answer::Done };
            return self.collapse(process, &pages, end, could, observed);
        }
        for page in pages {
            if let Some(refused) = self.advise_page(process, page, advice) {
                return Answer::Error(refused);
            }
        }
        if has_hole { Answer::Error(ENOMEM) } else { Answer::Done }
    }

    fn advise_page(&mut self, process: u8, at: u64, advice: u64) -> Option<i32> {
        let is = |name| advice == number(ADVICE, name);
        let page = self.space(process).pages[&at];
        let is_private = matches!(page.source, Source::Private);
        let is_locked = page.has(marks::LOCKED);
        if is("dontneed") || is("dontneed-locked") || is("free") {
            if (is_locked && !is("dontneed-locked")) || (is("free") && !is_private) {
                return Some(EINVAL);
            }
            self.change_page(process, at, |page| match () {
                () if is("free") => page.is_loose |= page.value != 0,
                () => page.drop_content(),
            });
            if is("free") && page.present == Some(true) {
                self.change_page(process, at, |page| page.present = None);
            }
            return None;
        }
        if is("remove") {
            return self.remove_page(&page);
        }
        if is("cold") || is("pageout") {
            if let (false, Source::Shared { object, index }) = (is_locked || is("cold"), page.source) {
                self.objects.entry(object).or_default().age(index);
            }
            return is_locked.then_some(EINVAL);
        }
        if is("wipeonfork") && !is_private {
            return Some(EINVAL);
        }
        if is("populate-read") || is("populate-write") {
            return self.populate_page(process, at, is("populate-write"));
        }
        let marked = mark(&page, advice);
        if marked != page.marks {
            let piece = self.piece(page.piece);
            self.change_page(process, at, |page| (page.marks, page.piece) = (marked, piece));
        }
        None
    }

    /// Large pages are made of whole, aligned places. An area must hold one, even if it is not within what was advised; that must have
    /// a border of places in it, even if no place. Beyond that a system may refuse: areas that are alike may be several, memory that nobody
    /// has written to is none to collapse, and a place may be unfit.
    fn collapse(
        &mut self,
        process: u8,
        pages: &[u64],
        end: u64,
        could: Answer,
        observed: Option<&Answer>,
    ) -> Answer {
        let refused = Answer::Error(EINVAL);
        let space = self.space(process);
        let mut rest = pages;
        while let [first, ..] = *rest {
            let area = space.area_start(first)..space.area_end(first);
            let part_end = area.end.min(end);
            let holds_place = area.start.next_multiple_of(TABLE) + TABLE <= area.end;
            let holds_border = first.next_multiple_of(TABLE) <= part_end;
            let page = &space.pages[&first];
            if !holds_place || !holds_border || page.has(marks::NO_HUGE) {
                return refused;
            }
            rest = &rest[(part_end - first) as usize..];
        }
        if pages.is_empty() {
            return could;
        }
        self.loosen("MADV_COLLAPSE may refuse a place that could be a large page");
        for &at in pages {
            self.change_page(process, at, |page| page.present = None);
        }
        if observed == Some(&refused) { refused } else { could }
    }

    fn remove_page(&mut self, page: &Page) -> Option<i32> {
        let Source::Shared { object, index } = page.source else { return Some(EINVAL) };
        if page.has(marks::LOCKED) {
            return Some(EINVAL);
        }
        // Linux asks whether the mapping may ever be written to, and anonymous memory always may.
        self.objects.entry(object).or_default().drop_content(index);
        None
    }

    fn populate_page(&mut self, process: u8, at: u64, write: bool) -> Option<i32> {
        let page = self.space(process).pages[&at];
        if page.rights & if write { WRITE } else { READ } == 0 {
            return Some(EINVAL);
        }
        match page.source {
            Source::Shared { object, index } => {
                let object = self.objects.entry(object).or_default();
                if index >= object.pages {
                    return Some(EFAULT);
                }
                object.bring_in(index);
            }
            Source::Private => self.change_page(process, at, |page| {
                page.present = Some(true);
                // A page that was there for the taking may be one of zeroes now.
                page.is_written = write || page.is_written && !page.is_loose;
            }),
        }
        None
    }

    fn change_page(&mut self, process: u8, at: u64, change: impl FnOnce(&mut Page)) {
        self.space(process).pages.entry(at).and_modify(change);
    }
}

/// A page's marks after advice that only marks.
fn mark(page: &Page, advice: u64) -> u32 {
    let with = |set: u32, clear: u32| (page.marks & !clear) | set;
    let name = ADVICE.iter().find(|(_, known)| *known == advice).map_or("", |(name, _)| name);
    match name {
        "normal" => with(0, marks::RANDOM | marks::SEQUENTIAL),
        "random" => with(marks::RANDOM, marks::SEQUENTIAL),
        "sequential" => with(marks::SEQUENTIAL, marks::RANDOM),
        "dontfork" => with(marks::DONT_FORK, 0),
        "dofork" => with(0, marks::DONT_FORK),
        "wipeonfork" => with(marks::WIPE_ON_FORK, 0),
        "keeponfork" => with(0, marks::WIPE_ON_FORK),
        "dontdump" => with(marks::DONT_DUMP, 0),
        "dodump" => with(0, marks::DONT_DUMP),
        "mergeable" if matches!(page.source, Source::Private) => with(marks::MERGEABLE, 0),
        "unmergeable" => with(0, marks::MERGEABLE),
        "hugepage" => with(marks::HUGE, marks::NO_HUGE),
        "nohugepage" => with(marks::NO_HUGE, marks::HUGE),
        _ => page.marks,
    }
}
