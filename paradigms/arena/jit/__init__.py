"""The step kernel that numba compiles (needs numba, which is imported here and nowhere else)."""
