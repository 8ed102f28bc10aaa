"""Other people's programs: OpenEnv, Inspect, and logs of other evaluations. No run
imports anything of it.
"""
