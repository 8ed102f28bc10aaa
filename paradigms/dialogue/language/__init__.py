"""Dialogue protocols: a graph that is described, conditions of the questions, and checks that they have answers."""
