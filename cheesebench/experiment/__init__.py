"""Designs, subjects, scheduler and run log: from environment classes to records."""
