"""Interfaces to other programs: OpenEnv, Inspect, and logs of other evaluations. A run
imports nothing from this package.
"""
