//! Simulated CPUs, walkers and TLBs for the checkers.
