"""Templates of plugin packages and protocols, which pass their own tests."""
