"""The commands of ``cheesebench``, one module each with ``run(options)``; ``cheesebench.cli`` imports what it needs."""
