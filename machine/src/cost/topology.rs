//! How far CPUs are from each other.

use super::parameters::{Parameters, Time, nanoseconds};

/// CPUs on sockets: CPU n is on socket n / size.
#[derive(Clone, Debug)]
pub(super) struct Topology {
    socket: usize,
    sockets: usize,
    cores: usize,
    line: [Time; 4],
    deliver: [Time; 4],
}

impl Topology {
    pub(super) fn new(cpus: usize, parameters: &Parameters) -> Self {
        let socket = parameters.socket as usize;
        let further = parameters.line_cross - parameters.line;
        let by_hops = |hops: usize, base: f64, hop: f64| nanoseconds((base + hop * hops as f64).max(0.0));
        Topology {
            socket,
            sockets: cpus.div_ceil(socket),
            cores: parameters.cores as usize,
            line: [0, 1, 2, 3].map(|hops| by_hops(hops, parameters.line, further)),
            deliver: [0, 1, 2, 3].map(|hops| {
                by_hops(hops, parameters.deliver + parameters.deliver_exit, parameters.deliver_hop)
            }),
        }
    }

    /// Up to four sockets are all neighbours; more are the corners of a cube.
    fn hops(&self, one: usize, other: usize) -> usize {
        let (one, other) = (one / self.socket, other / self.socket);
        let apart = (one ^ other).count_ones() as usize;
        if self.sockets <= 4 { apart.min(1) } else { apart.min(3) }
    }

    /// A line that `from` has written last comes to `to`.
    pub(super) fn line(&self, from: usize, to: usize) -> Time {
        self.line[self.hops(from, to)]
    }

    /// An interrupt on its way.
    pub(super) fn deliver(&self, from: usize, to: usize) -> Time {
        self.deliver[self.hops(from, to)]
    }

    /// Whether another of the first `running` CPUs is on this one's core.
    pub(super) fn shares_core(&self, cpu: usize, running: usize) -> bool {
        self.cores > 0 && (cpu >= self.cores || cpu + self.cores < running)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_is_never_nearer() {
        let topology = Topology::new(512, &Parameters::START);
        let at = |other| (topology.line(0, other), topology.deliver(0, other));
        assert!(at(1) < at(64) && at(64) < at(3 * 64) && at(3 * 64) < at(7 * 64));
        let small = Topology::new(256, &Parameters::START);
        assert_eq!(small.line(0, 64), small.line(0, 3 * 64));
    }

    #[test]
    fn cores_are_shared_when_there_are_more_threads() {
        let topology = Topology::new(72, &Parameters { cores: 36.0, ..Parameters::START });
        assert!(!topology.shares_core(3, 36) && topology.shares_core(0, 37) && topology.shares_core(36, 37));
        assert!(!Topology::new(72, &Parameters::START).shares_core(71, 72));
    }
}
