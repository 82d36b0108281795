//! Loads and stores.

use super::map::GUARD;
use super::page::{Page, Source, marks};
use super::{Model, WRITE};
use crate::program::{PAGE, USER_END};
use crate::trace::Answer;

/// Pages that a stack may have.
const STACK_LIMIT: u64 = 2048;

impl Model {
    pub(super) fn load(&mut self, process: u8, at: u64, observed: Option<&Answer>) -> Answer {
        let number = at / PAGE;
        let Some(page) = self.touched(process, at) else { return Answer::NotMapped };
        if page.rights == 0 {
            return Answer::NotAllowed;
        }
        match page.source {
            Source::Shared { object, index } => {
                let object = self.objects.entry(object).or_default();
                if index >= object.pages {
                    return Answer::Bus;
                }
                Answer::Number(object.bring_in(index))
            }
            Source::Private => {
                let has_gone = page.is_loose && observed == Some(&Answer::Number(0)) && page.value != 0;
                if page.is_loose && page.value != 0 {
                    self.loosen("MADV_FREE may drop pages at any time, or not at all");
                }
                if let Some(page) = self.space(process).pages.get_mut(&number) {
                    if has_gone {
                        page.drop_content();
                    }
                    page.present = Some(true);
                    return Answer::Number(page.value);
                }
                Answer::NotMapped
            }
        }
    }

    pub(super) fn store(&mut self, process: u8, at: u64, value: u64) -> Answer {
        let Some(page) = self.touched(process, at) else { return Answer::NotMapped };
        if page.rights & WRITE == 0 {
            return Answer::NotAllowed;
        }
        match page.source {
            Source::Shared { object, index } => {
                let object = self.objects.entry(object).or_default();
                if index >= object.pages {
                    return Answer::Bus;
                }
                object.store(index, value);
            }
            Source::Private => {
                if let Some(page) = self.space(process).pages.get_mut(&(at / PAGE)) {
                    (page.value, page.is_loose, page.is_written, page.present) =
                        (value, false, true, Some(true));
                }
            }
        }
        Answer::Done
    }

    /// The page of an address, after a stack has grown down to it if it may.
    fn touched(&mut self, process: u8, at: u64) -> Option<Page> {
        if at >= USER_END {
            return None;
        }
        let number = at / PAGE;
        if let Some(page) = self.space(process).pages.get(&number) {
            return Some(*page);
        }
        let space = self.space(process);
        let (&above, page) = space.pages.range(number..).next()?;
        let mut grown = *page;
        if !page.has(marks::GROWS_DOWN) || number < 16 {
            return None;
        }
        let mut end = above;
        while space.are_alike(end) {
            end += 1;
        }
        if end + 1 - number > STACK_LIMIT {
            return None;
        }
        if let Some((below, page)) = space.pages.range(..number).next_back() {
            let is_in_the_way = !page.has(marks::GROWS_DOWN) && page.rights != 0;
            if is_in_the_way && number - (below + 1) < GUARD {
                return None;
            }
        }
        grown.drop_content();
        if grown.has(marks::LOCKED) {
            grown.present = None;
        }
        for new in number..above {
            space.pages.insert(new, grown);
        }
        Some(grown)
    }
}
