"""Running models from Python and notebooks: the same engine, log and verdicts as pytest."""
