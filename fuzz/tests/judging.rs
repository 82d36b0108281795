//! The judge accepts what can be and refuses what cannot, and texts say what they are read as.

use fuzz::{Taste, Verdict, generate, judge, pack, read, unpack};

/// The verdict on answers and an end without processes' looks being compared: the program ends with all areas gone.
fn verdict(steps: &str, answers: &str) -> Verdict {
    let program = unpack(&format!("program p threads 2 spin\n{steps}end\n")).unwrap().remove(0);
    let trace = format!("program p\nanswers {answers}\nprocess 0 areas - core - sweep maperr*24\nend p\n");
    judge(&program, &read(&trace)[0])
}

const MAPPED: &str = "0 mmap @3 1p r,w private,fixed 0x0 $0\n";
const GONE: &str = "0 munmap @3 1p\n";

fn is_explained(steps: &str, answers: &str) -> bool {
    verdict(&format!("{MAPPED}{steps}{GONE}"), &format!("@3 {answers} ok")) == Verdict::Explained(Vec::new())
}

#[test]
fn steps_in_turn_have_one_answer() {
    assert!(is_explained("0 store @3 7\n1 load @3\n", "ok =7"));
    assert!(!is_explained("0 store @3 7\n1 load @3\n", "ok =0"));
    assert!(is_explained("1 mprotect @3 1p r\n0 store @3 7\n", "ok accerr"));
    assert!(!is_explained("1 mprotect @3 1p r\n0 store @3 7\n", "ok ok"));
    assert!(is_explained("1 madvise @4 1p dontneed\n", "-12"));
}

#[test]
fn steps_at_the_same_time_have_the_answers_of_some_order() {
    let race = "0 store @3 7\n& 1 load @3\n1 load @3\n";
    assert!(is_explained(race, "ok =0 =7") && is_explained(race, "ok =7 =7"));
    assert!(!is_explained(race, "ok =7 =0") && !is_explained(race, "ok =8 =7"));
}

#[test]
fn what_linux_leaves_open_is_followed_and_told() {
    let steps = format!("{MAPPED}0 store @3 7\n0 madvise @3 1p free\n0 load @3\n{GONE}");
    for found in ["=7", "=0"] {
        let verdict = verdict(&steps, &format!("@3 ok ok {found} ok"));
        assert!(matches!(verdict, Verdict::Explained(why) if why.len() == 1), "{found}");
    }
    assert!(matches!(verdict(&steps, "@3 ok ok =6 ok"), Verdict::Wrong(_)));
}

#[test]
fn an_end_that_cannot_be_is_refused() {
    assert!(matches!(verdict(MAPPED, "@3"), Verdict::Wrong(difference) if difference.round.is_none()));
}

#[test]
fn what_is_told_of_an_end_is_what_no_order_explains() {
    let steps = "0 mmap @13 6p r,w private,fixed 0x0 $0\n1 mmap @10 9p r,w private,fixed 0x0 $6\n& 0 load @15\n1 mmap @13 1p x private,fixed 0x0 $4\n";
    let program = unpack(&format!("program p threads 2 spin\n{steps}end\n")).unwrap().remove(0);
    // That page 15 is in memory is explained by one order, and that page 13 cannot be read by none.
    let core = format!("----------000001000{}", "-".repeat(77));
    let sweep = "maperr*10,=0*3,signal-11-code-4*1,=0*5,maperr*5";
    let end = format!("process 0 areas 10-12:rw-p,13-13:--xp,14-18:rw-p core {core} sweep {sweep}");
    let trace = format!("program p\nanswers @13 @10 =0 @13\n{end}\nend p\n");
    let told = judge(&program, &read(&trace)[0]);
    assert!(matches!(&told, Verdict::Wrong(why) if why.observed == "signal-11-code-4"), "{told:?}");
}

#[test]
fn a_call_beyond_a_block_is_not_judged() {
    assert_eq!(verdict("0 mmap 0x0 1p r private 0x0 $1\n0 load $1@1\n", "$ =0"), Verdict::Wild);
}

#[test]
fn texts_are_read_as_they_were_written_and_seeds_repeat() {
    for seed in 0..200 {
        let taste = Taste { races: seed % 2 == 0, tables: seed % 5 == 0, rounds: 12 };
        let program = generate("p".into(), seed, taste);
        assert_eq!(program, generate("p".into(), seed, taste));
        assert_eq!(unpack(&pack([&program])).unwrap(), [program]);
    }
}

#[test]
fn senseless_texts_are_refused_with_their_line() {
    let refused = |steps: &str| unpack(&format!("program p threads 1 spin\n{steps}")).unwrap_err();
    assert!(refused("0 lod @3\nend\n").starts_with("line 2"));
    assert!(refused("1 load @3\nend\n").contains("before it is there"));
    assert!(refused("0 load @3\n").contains("no 'end'"));
}

#[test]
fn the_regressions_can_be_read_and_have_names_of_their_own() {
    let programs = unpack(include_str!("../regressions.txt")).unwrap();
    let names: std::collections::BTreeSet<_> = programs.iter().map(|program| &program.name).collect();
    assert!(!names.is_empty() && names.len() == programs.len());
}

#[test]
fn pages_are_brought_in_by_their_call_unless_another_one_comes_between() {
    let end = "0 mincore @4 1p\n0 munmap @4 1p\n";
    let alone = format!("0 mmap @4 1p r,w private,fixed,populate 0x0 $1\n{end}");
    let beside = alone.replace("\n0 mincore", "\n& 1 munmap @6 1p\n0 mincore");
    assert!(is_explained(&alone, "@4 %1 ok") && !is_explained(&alone, "@4 %0 ok"));
    assert!(is_explained(&beside, "@4 ok %1 ok") && is_explained(&beside, "@4 ok %0 ok"));
    let write_only = format!("0 mmap @4 1p w shared,fixed,populate 0x0 $1\n{end}");
    assert!(is_explained(&write_only, "@4 %1 ok") && !is_explained(&write_only, "@4 %0 ok"));
}
