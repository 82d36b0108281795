//! From runs to records: the runs of one case on one side under the same conditions are one record, with the medians.

use std::collections::BTreeMap;

use super::measuring::Made;
use crate::measurement::Measurement;
use crate::result::{Mode, Record, Run, Sample};
use crate::statistics::Spread;

/// Words of a measurement line that have a place of their own in a record.
const OWN_PLACE: [&str; 5] = ["operations", "threads", "interrupts", "bound", "ns_per_op"];

/// One run's part of a record.
struct Part<'a> {
    run: &'a Run,
    measurement: &'a Measurement,
}

/// The records, by workload and in the order of its cases.
pub(super) fn of(names: &[String], made: &[Made]) -> Vec<Record> {
    let mut groups: Vec<(usize, Vec<Part<'_>>)> = Vec::new();
    for Made { subject, run, measurements } in made {
        for measurement in measurements {
            let part = Part { run, measurement };
            match groups.iter_mut().find(|(other, parts)| other == subject && belongs(&parts[0], &part)) {
                Some((_, parts)) => parts.push(part),
                None => groups.push((*subject, vec![part])),
            }
        }
    }
    groups.sort_by_key(|(subject, _)| *subject);
    groups.iter().map(|(subject, parts)| record(&names[*subject], parts)).collect()
}

fn belongs(one: &Part<'_>, other: &Part<'_>) -> bool {
    let conditions = |part: &Part<'_>| (part.run.system, part.run.mode, part.run.cpus, part.run.seed);
    conditions(one) == conditions(other)
        && one.run.without == other.run.without
        && one.measurement.case == other.measurement.case
}

fn record(workload: &str, parts: &[Part<'_>]) -> Record {
    let (run, first) = (parts[0].run, parts[0].measurement);
    let median = |value: &dyn Fn(&Measurement) -> Option<f64>| {
        Spread::of(parts.iter().filter_map(|part| value(part.measurement)))
    };
    let time = median(&Measurement::time_per_operation);
    // On the instruction clock a nanosecond is an instruction.
    let (instructions, time) = if run.mode == Mode::Deterministic { (time, None) } else { (None, time) };
    let mut figures = BTreeMap::new();
    for key in first.figures.keys().filter(|key| !OWN_PLACE.contains(&key.as_str())) {
        let of_key = median(&|measurement| measurement.figures.get(key).copied());
        figures.extend(of_key.map(|spread| (key.clone(), spread.median)));
    }
    Record {
        case: first.case.clone(),
        threads: first.threads(),
        operations: Some(first.operations()),
        interrupts_per_operation: median(&Measurement::interrupts_per_operation).map(|spread| spread.median),
        bound_per_operation: first.bound(),
        nanoseconds_per_operation: time.map(|spread| spread.median),
        nanoseconds_spread: time.map(|spread| [spread.least, spread.most]),
        instructions_per_operation: instructions.map(|spread| spread.median),
        figures,
        runs: parts
            .iter()
            .map(|part| Sample { run: part.run.id, figures: part.measurement.figures.clone() })
            .collect(),
        ..Record::unmeasured(workload, run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::System;

    fn made(id: u32, system: System, mode: Mode, line: &str) -> Made {
        let run = Run {
            id,
            system,
            without: Vec::new(),
            with: Vec::new(),
            mode,
            seed: None,
            cpus: 4,
            memory_mebibytes: 512,
            board: "q35".into(),
            command: Vec::new(),
            wall_seconds: 1.0,
            load: None,
            pair: None,
            traced: false,
            report: serde_json::Value::Null,
        };
        Made { subject: 0, run, measurements: Measurement::all_of(line).unwrap() }
    }

    #[test]
    fn times_and_instructions_never_meet_in_one_record() {
        let line = |time: u32| {
            format!("threads=4 operations=10 interrupts=30 bound=3 ns_per_op={time} promote_ticks={time}")
        };
        let all = [
            made(0, System::Ceasefire, Mode::Deterministic, &line(7000)),
            made(1, System::Ceasefire, Mode::Single, &line(20)),
            made(2, System::Ceasefire, Mode::Single, &line(40)),
            made(3, System::Ceasefire, Mode::Single, &line(90)),
        ];
        let records = of(&["flip".into()], &all);
        let [counted, timed] = &records[..] else { panic!("{records:?}") };
        assert_eq!(
            (counted.instructions_per_operation, counted.nanoseconds_per_operation),
            (Some(7000.0), None)
        );
        assert_eq!((timed.instructions_per_operation, timed.nanoseconds_per_operation), (None, Some(40.0)));
        assert_eq!(timed.nanoseconds_spread, Some([20.0, 90.0]));
        assert_eq!((timed.interrupts_per_operation, timed.bound_per_operation), (Some(3.0), Some(3.0)));
        assert_eq!(timed.figures, BTreeMap::from([("promote_ticks".to_owned(), 40.0)]));
        assert_eq!(timed.runs.iter().map(|sample| sample.run).collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn each_case_has_its_record() {
        let lines = "case=one operations=1 interrupts=-1\ncase=two operations=1 interrupts=5";
        let records = of(&["x".into()], &[made(0, System::Linux, Mode::Single, lines)]);
        let cases: Vec<_> =
            records.iter().map(|record| (record.case.as_deref(), record.interrupts_per_operation)).collect();
        assert_eq!(cases, [(Some("one"), None), (Some("two"), Some(5.0))]);
    }
}
