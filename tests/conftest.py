"""Settings for all tests. No test is timed: on a busy machine, hypothesis would take a
slow example for a fault.
"""

import contextlib

with contextlib.suppress(ImportError):
    # The README's first command reads this file, but has no hypothesis.
    import hypothesis

    hypothesis.settings.register_profile("cheesebench", deadline=None)
    hypothesis.settings.load_profile("cheesebench")
