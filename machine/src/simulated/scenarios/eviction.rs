//! Entries leave a CPU's caches by themselves, one without the other.

use super::super::scenario::Scenario;
use super::PAGE;
use super::copy::FORK_AND_WRITER;
use super::tables::BORROWER_WALKS_FREED_TABLES;

pub(in super::super) const FORGETFUL_BORROWER: Scenario = Scenario {
    name: "forgetful-borrower",
    about: "a CPU that borrows a space forgets a translation and keeps the way to its table, which another CPU frees",
    setup: BORROWER_WALKS_FREED_TABLES.setup,
    cpus: BORROWER_WALKS_FREED_TABLES.cpus,
    walked: &[PAGE],
    forgotten: &[PAGE],
    ..Scenario::BASE
};

pub(in super::super) const FORGETFUL_WRITER: Scenario = Scenario {
    name: "forgetful-writer",
    about: "a CPU that stores to a page forgets where it is, and walks again, while another one forks and copies the page",
    setup: FORK_AND_WRITER.setup,
    cpus: FORK_AND_WRITER.cpus,
    forgotten: &[PAGE],
    bounds: [2, 3, 4],
    ..Scenario::BASE
};
