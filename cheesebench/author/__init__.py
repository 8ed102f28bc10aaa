"""What authors are given to begin with: packages of plugins, and protocols, that pass their own tests."""
