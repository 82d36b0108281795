//! `mremap`.

use super::page::{Page, Source, marks};
use super::{EFAULT, EINVAL, ENOMEM, Model, Refusal, Result, TOO_MUCH, in_window, round_up};
use crate::program::{PAGE, USER_END};
use crate::trace::Answer;

const MAY_MOVE: u64 = 1;
const FIXED: u64 = 2;
const DONT_UNMAP: u64 = 4;

/// The arguments, with the addresses found out.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub(crate) at: u64,
    pub(crate) old: u64,
    pub(crate) new: u64,
    pub(crate) flags: u64,
    pub(crate) to: u64,
    pub(crate) slot: u8,
    pub(crate) at_block: bool,
}

impl Request {
    fn has(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }

    /// The first page, and how many there were and shall be.
    fn pages(&self) -> (u64, u64, u64) {
        (self.at / PAGE, self.old / PAGE, self.new / PAGE)
    }
}

impl Model {
    pub(super) fn remap(
        &mut self,
        process: u8,
        mut request: Request,
        observed: Option<&Answer>,
    ) -> Result<Answer> {
        let refused = Ok(Answer::Error(EINVAL));
        if request.flags & !7 != 0
            || (request.has(FIXED) && !request.has(MAY_MOVE))
            || (request.has(DONT_UNMAP) && (!request.has(MAY_MOVE) || request.old != request.new))
            || !request.at.is_multiple_of(PAGE)
        {
            return refused;
        }
        (request.old, request.new) = (round_up(request.old), round_up(request.new));
        if request.new == 0 {
            return refused;
        }
        let (first, old, new) = request.pages();
        if !self.space(process).pages.contains_key(&first) {
            return Ok(Answer::Error(EFAULT));
        }
        if (TOO_MUCH..=USER_END).contains(&request.new) {
            return Err(Refusal::Wild);
        }
        if request.has(FIXED | DONT_UNMAP) {
            return self.remap_elsewhere(process, request, observed);
        }
        let stays =
            if request.at_block { Answer::Same } else { in_window(first).map_or(Answer::Same, Answer::At) };
        if old >= new {
            if request.old != request.new
                && request.old - request.new > USER_END.saturating_sub(request.at + request.new)
            {
                return refused;
            }
            self.space(process).remove(first + new, first + old);
            return Ok(stays);
        }
        let area_end = match self.resizable(process, request, observed)? {
            Ok(end) => end,
            Err(error) => return Ok(Answer::Error(error)),
        };
        let growth_ends = first.saturating_add(new);
        let is_free = self.space(process).is_free(area_end, growth_ends.saturating_sub(area_end));
        if area_end == first + old && is_free && growth_ends <= USER_END / PAGE {
            self.grow(process, first, old, new);
            return Ok(stays);
        }
        if !request.has(MAY_MOVE) || request.new > USER_END {
            return Ok(Answer::Error(ENOMEM));
        }
        self.move_to(process, request, None, observed)
    }

    fn remap_elsewhere(
        &mut self,
        process: u8,
        mut request: Request,
        observed: Option<&Answer>,
    ) -> Result<Answer> {
        let Request { at, old, new, to, .. } = request;
        if !to.is_multiple_of(PAGE) || new > USER_END || to > USER_END - new {
            return Ok(Answer::Error(EINVAL));
        }
        if at.wrapping_add(old) > to && to + new > at {
            return Ok(Answer::Error(EINVAL));
        }
        if request.has(FIXED) {
            self.space(process).remove(to / PAGE, (to + new) / PAGE);
        }
        if old > new {
            if old - new > USER_END.saturating_sub(at + new) {
                return Ok(Answer::Error(EINVAL));
            }
            self.space(process).remove((at + new) / PAGE, (at + old) / PAGE);
            request.old = new;
        }
        if let Err(error) = self.resizable(process, request, observed)? {
            return Ok(Answer::Error(error));
        }
        let takes_hint = request.has(FIXED) || self.space(process).takes_hint(to, new / PAGE);
        self.move_to(process, request, takes_hint.then_some(to / PAGE), observed)
    }

    /// Whether the old range can be resized or moved: where its area ends, or the errno.
    fn resizable(
        &mut self,
        process: u8,
        request: Request,
        observed: Option<&Answer>,
    ) -> Result<std::result::Result<u64, i32>> {
        let (first, old, _) = request.pages();
        let Some(page) = self.space(process).pages.get(&first).copied() else { return Ok(Err(EFAULT)) };
        if old == 0 && matches!(page.source, Source::Private) {
            return Ok(Err(EINVAL));
        }
        let mut end = first + 1;
        let mut has_seam = false;
        let space = self.space(process);
        while space.are_alike(end - 1) {
            // Only up to the range's end does it matter whether Linux has joined what looks alike.
            has_seam |=
                end < first.saturating_add(old) && space.pages[&(end - 1)].piece != space.pages[&end].piece;
            if end >= first.saturating_add(old) && space.pages[&(end - 1)].piece != space.pages[&end].piece {
                break;
            }
            end += 1;
        }
        if first.saturating_add(old) > end {
            return Ok(Err(EFAULT));
        }
        if has_seam {
            self.loosen("Linux joins areas that are alike only if their pages have one history");
            if observed == Some(&Answer::Error(EFAULT)) {
                return Ok(Err(EFAULT));
            }
        }
        Ok(Ok(end))
    }

    /// The pages that an area gains.
    fn grow(&mut self, process: u8, first: u64, old: u64, new: u64) {
        let mut grown = self.space(process).pages[&(first + old - 1)];
        grown.drop_content();
        self.bring_in(&mut grown);
        for page in old..new {
            if let Source::Shared { index, .. } = &mut grown.source {
                *index += 1;
            }
            self.space(process).pages.insert(first + page, grown);
        }
    }

    /// A page that an area gains while it is locked is brought in, if it can be.
    fn bring_in(&mut self, page: &mut Page) {
        if page.has(marks::LOCKED) {
            page.present = None;
        }
    }

    fn move_to(
        &mut self,
        process: u8,
        request: Request,
        target: Option<u64>,
        observed: Option<&Answer>,
    ) -> Result<Answer> {
        let (first, old, new) = request.pages();
        let (target, answer) = match target {
            Some(target) => (target, in_window(target).map_or(Answer::There, Answer::At)),
            None if matches!(observed, Some(Answer::Error(_))) => {
                return Err(Refusal::Expected(vec![Answer::Chosen]));
            }
            None => (self.place(request.slot), Answer::Chosen),
        };
        let template = self.space(process).pages[&first];
        let piece = self.piece(template.piece);
        for page in 0..new {
            let mut moved = template;
            moved.drop_content();
            if let Source::Shared { index, .. } = &mut moved.source {
                *index += page;
            }
            if page < old {
                moved = self.space(process).pages[&(first + page)];
                moved.marks = template.marks;
            } else {
                self.bring_in(&mut moved);
            }
            moved.piece = piece;
            self.space(process).pages.insert(target + page, moved);
        }
        for page in first..first + old {
            if request.has(DONT_UNMAP) {
                self.space(process).pages.entry(page).and_modify(|left| {
                    left.drop_content();
                    left.marks &= !marks::LOCKED;
                    left.piece = piece ^ 2;
                });
            } else {
                self.space(process).pages.remove(&page);
            }
        }
        Ok(answer)
    }
}
