"""Runs models through protocols: what pytest and Python have in common."""
