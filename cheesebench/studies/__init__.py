"""The shipped studies: ``*.study.yaml``, data only."""
