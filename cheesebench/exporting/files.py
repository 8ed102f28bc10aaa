"""Tables as files: CSV with the standard library, Parquet with pyarrow."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cheesebench.commands.csv_text import cell
from cheesebench.errors import OptionError
from cheesebench.exporting.tables import Kind, Row
from cheesebench.extras import install_command
from cheesebench.whole_files import written_whole

#: Rows of a group in a Parquet file, and characters of its texts: enough to compress well, little enough for any
#: memory (pyarrow has them twice, and Python once).
GROUP, GROUP_TEXT = 50_000, 8_000_000


def write_csv(path: Path, header: Mapping[str, Kind], subjects: Iterable[list[Row]]) -> int:
    """Write a table as CSV; return the number of rows. Text that a spreadsheet would compute is made harmless."""
    written = 0
    with written_whole(path, newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for rows in subjects:
            writer.writerows([cell(value) for value in row] for row in rows)
            written += len(rows)
    return written


def write_parquet(path: Path, header: Mapping[str, Kind], subjects: Iterable[list[Row]]) -> int:
    """Write a table as Parquet; return the number of rows. Raises OptionError where pyarrow is not installed."""
    arrow, parquet = _pyarrow()
    types = {"text": arrow.string(), "integer": arrow.int64(), "number": arrow.float64(), "truth": arrow.bool_()}
    schema = arrow.schema([(name, types[kind]) for name, kind in header.items()])
    written, text, waiting = 0, 0, list[Row]()
    texts = [place for place, kind in enumerate(header.values()) if kind == "text"]
    with written_whole(path, "wb") as file, parquet.ParquetWriter(file, schema, compression="zstd") as writer:

        def flush() -> None:
            columns = zip(*waiting, strict=True) if waiting else ([] for _ in header)
            arrays = [arrow.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
            waiting.clear()

        for rows in subjects:
            waiting += rows
            written += len(rows)
            text += sum(len(row[place] or "") for row in rows for place in texts)
            if len(waiting) >= GROUP or text >= GROUP_TEXT:
                flush()
                text = 0
        flush()
    return written


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise OptionError(
            "--parquet needs pyarrow, which is not installed. "
            f"Install it with: {install_command('parquet')}, or use --csv."
        ) from None
    return pyarrow, pyarrow.parquet
