"""Dialogue protocols: a graph that is described, conditions under which it is asked about, and their proofs."""
