"""Interfaces to other programs, such as OpenEnv, Inspect, and logs of other
evaluations. A run imports nothing from this package.
"""
