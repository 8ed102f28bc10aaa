"""The shipped protocols: one ``*.protocol.yaml`` per paradigm and edition; data only."""
