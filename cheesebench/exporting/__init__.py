"""A run for other programs: tables (CSV, Parquet) and logs that Inspect AI opens."""

from __future__ import annotations
