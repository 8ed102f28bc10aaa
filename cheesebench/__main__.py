"""Lets ``python -m cheesebench`` run the command ``cheesebench``."""

import sys

from cheesebench.interrupts import of_command

if __name__ == "__main__":
    with of_command():
        from cheesebench.cli import main

        sys.exit(main())
