"""Numbers that others have published, as data with their source; see ``cheesebench.statistics.published``."""
