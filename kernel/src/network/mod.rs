//! Sockets: what programs of one machine say to each other.
//!
//! | noun | is |
//! |---|---|
//! | `Socket` | the open file; dropping it closes the endpoint |
//! | `Endpoint` | one end of a connection, or of none |
//! | `State` | what it is at: what has come in for it, whom it is connected to, what it is called |
//! | `Incoming` | the bounded queue of what has come in |
//! | `Address` | what an endpoint is called: a path, an abstract name, a host and port |
//! | `Rights` | descriptors on their way in a queue |
//! | the collector | makes sockets go away that only queues hold which nobody can read |
//!
//! There is no device and there are no packets on a wire: the only network is the loopback, and a connection of TCP is a pair of queues as one of
//! AF_UNIX is (docs/design/0025-sockets.md says why). What is sent is put straight into the queue of the endpoint it is for.
//!
//! Who holds whom: a `Socket` holds its endpoint, and a listener's backlog holds the sockets that nobody has accepted yet. Endpoints know each other
//! weakly, so that closing never waits for the other side.
//!
//! Locks: one spin lock for each endpoint's state, of which nobody holds two at a time; the table of ports is outside of it. User memory is touched under
//! none of them. A receiver of a stream holds the endpoint's `reading` (a sleeping lock) while it copies, and never while it waits.

mod address;
mod closing;
mod collector;
mod connection;
mod endpoint;
mod incoming;
mod interface;
mod listing;
mod names;
mod options;
mod ports;
mod receiving;
mod rights;
mod sender;
mod sending;
mod socket;
mod state;

pub(crate) use address::Address;
pub(crate) use connection::MOST_BACKLOG;
pub(crate) use endpoint::{Endpoint, Family, Kind};
pub(crate) use listing::{internet_table, unix_table};
pub(crate) use names::find as find_name;
pub(crate) use options::{Flag, Options, remembered};
pub(crate) use ports::EPHEMERAL;
pub(crate) use receiving::{Receipt, Receiving};
pub(crate) use rights::{MOST_RIGHTS, Rights};
pub(crate) use sender::Sender;
pub(crate) use sending::{MOST_DATAGRAMS, Recipient, Sending};
pub(crate) use socket::Socket;
