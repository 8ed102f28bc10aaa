"""Designs, subjects, scheduling and the run log."""
