"""Reports: a run summary rendered for people."""
