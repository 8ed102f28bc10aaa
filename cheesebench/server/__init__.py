"""Pages served on this machine: the runs of a directory, and paradigms for people."""
