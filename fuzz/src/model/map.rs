//! `mmap` of memory without a file.

use super::page::{Page, Source, marks};
use super::{
    ALL, EEXIST, EINVAL, ENOMEM, EOVERFLOW, Model, READ, Refusal, Result, Space, TOO_MUCH, WRITE, in_window,
    round_up,
};
use crate::names::{MAP_FLAGS, number};
use crate::program::{PAGE, USER_END};
use crate::trace::Answer;

/// The lowest address that a hint is raised to.
const LOWEST: u64 = 0x10000;
/// What stays free below an area that grows down, in pages.
pub(crate) const GUARD: u64 = 256;

/// The arguments, with the address found out.
pub(crate) struct Request {
    pub(crate) at: u64,
    pub(crate) is_block: bool,
    pub(crate) length: u64,
    pub(crate) rights: u64,
    pub(crate) flags: u64,
    pub(crate) offset: u64,
}

impl Request {
    fn has(&self, flag: &str) -> bool {
        self.flags & number(MAP_FLAGS, flag) != 0
    }

    /// What Linux remembers of it.
    fn marks(&self) -> u32 {
        let flags =
            [("growsdown", marks::GROWS_DOWN), ("locked", marks::LOCKED), ("noreserve", marks::NO_RESERVE)];
        flags.iter().filter(|(name, _)| self.has(name)).map(|(_, mark)| mark).sum()
    }
}

impl Model {
    pub(super) fn map(
        &mut self,
        process: u8,
        request: Request,
        slot: u8,
        observed: Option<&Answer>,
    ) -> Result<Answer> {
        let is_exact = request.has("fixed") || request.has("noreplace");
        let length = round_up(request.length);
        if !request.offset.is_multiple_of(PAGE) || request.length == 0 {
            return Ok(Answer::Error(EINVAL));
        }
        if length == 0 {
            return Ok(Answer::Error(ENOMEM));
        }
        if (request.offset / PAGE).checked_add(length / PAGE).is_none() {
            return Ok(Answer::Error(EOVERFLOW));
        }
        if length > USER_END {
            return Ok(Answer::Error(ENOMEM));
        }
        let mut at = request.at;
        // A hint that is raised is not where the program asked for.
        let mut is_raised = false;
        if is_exact {
            if at > USER_END - length {
                return Ok(Answer::Error(ENOMEM));
            }
            if !at.is_multiple_of(PAGE) {
                return Ok(Answer::Error(EINVAL));
            }
        } else {
            at &= !(PAGE - 1);
            if at != 0 && at < LOWEST {
                at = LOWEST;
                is_raised = true;
            }
        }
        let pages = length / PAGE;
        if request.has("noreplace") && !self.space(process).is_free(at / PAGE, pages) {
            return Ok(Answer::Error(EEXIST));
        }
        let is_shared = match request.flags & 0xf {
            1 if !request.has("growsdown") => true,
            2 => false,
            _ => return Ok(Answer::Error(EINVAL)),
        };
        let is_accounted = !request.has("noreserve") && (is_shared || request.rights & WRITE != 0);
        if is_accounted && length >= TOO_MUCH {
            return Ok(Answer::Error(ENOMEM));
        }
        if length >= TOO_MUCH {
            // It may work, but page by page nobody would get to its end.
            return Err(Refusal::Wild);
        }
        let is_low = request.has("32bit") && !is_exact;
        if is_low && request.is_block && at != 0 {
            // Whether a block lies low enough to be heard as a hint is the system's choice.
            return Err(Refusal::Wild);
        }
        let (first, answer) = if is_exact || !is_low && self.space(process).takes_hint(at, pages) {
            let there = if is_raised {
                self.slots[usize::from(slot)] = Some(at / PAGE);
                Answer::Chosen
            } else if request.is_block {
                Answer::There
            } else {
                in_window(at / PAGE).map_or(Answer::There, Answer::At)
            };
            (at / PAGE, there)
        } else {
            if let Some(Answer::Error(_)) | None = observed.or(Some(&Answer::Chosen)) {
                return Err(Refusal::Expected(vec![Answer::Chosen]));
            }
            (self.place(slot), Answer::Chosen)
        };
        self.put(process, first, pages, &request, is_shared);
        Ok(answer)
    }

    fn put(&mut self, process: u8, first: u64, pages: u64, request: &Request, is_shared: bool) {
        let object = self.step;
        if is_shared {
            self.objects.insert(object, super::Object { pages, ..super::Object::default() });
        }
        let is_brought_in = request.has("locked") || (request.has("populate") && !request.has("nonblock"));
        let rights = request.rights & ALL;
        let can_be_brought_in = rights & (READ | WRITE | 4) != 0;
        let piece = self.piece(0);
        self.space(process).remove(first, first + pages);
        for index in 0..pages {
            let source = if is_shared { Source::Shared { object, index } } else { Source::Private };
            let present = match (is_brought_in, is_shared) {
                (false, _) => Some(false),
                // Pages of rights that a load has not are a matter of taste.
                (true, _) if rights & READ == 0 => {
                    if can_be_brought_in {
                        None
                    } else {
                        Some(false)
                    }
                }
                (true, _) => Some(true),
            };
            if is_shared && is_brought_in && can_be_brought_in {
                self.objects.entry(object).or_default().store(index, 0);
            }
            let is_written = present == Some(true) && rights & WRITE != 0;
            let page = Page {
                rights,
                marks: request.marks(),
                source,
                piece,
                value: 0,
                is_loose: false,
                is_written,
                present,
            };
            self.space(process).pages.insert(first + index, page);
        }
    }
}

impl Space {
    pub(crate) fn is_free(&self, first: u64, pages: u64) -> bool {
        self.pages.range(first..first.saturating_add(pages)).next().is_none()
    }

    /// Whether a mapping goes where a program would like it.
    pub(crate) fn takes_hint(&self, at: u64, pages: u64) -> bool {
        let first = at / PAGE;
        if at == 0 || at > USER_END - pages * PAGE || !self.is_free(first, pages) {
            return false;
        }
        match self.pages.range(first..).next() {
            Some((above, page)) if page.has(marks::GROWS_DOWN) => {
                first + pages <= above.saturating_sub(GUARD)
            }
            _ => true,
        }
    }
}
