"""``python -m cheesebench``: the command ``cheesebench``."""

import sys

from cheesebench.cli import main

if __name__ == "__main__":
    sys.exit(main())
