"""Runs: their settings, cells, subjects, calls to models, scheduling, and the run
log.
"""
