//! Files, directories, pipes and devices.
