"""Campaign of damaged run logs. The damage is done by a disk, by someone who writes
into the tables, or by a forger who also renews the digest.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from cheesebench.cli import main
from cheesebench.errors import CheeseBenchError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.replay import check_resumable
from fuzz.run_logs import forge

SCRIPT = """
replies:
  - {say: "LEARNINGS: ahead\nACTIONS: FORWARD, LEFT, FORWARD", times: 9}
  - {say: "I do not know"}
"""
#: Replacements for values.
VALUES: tuple[Any, ...] = (
    *(
        None,
        0,
        -1,
        1,
        10**9,
        -(2**63),
        2**63 - 1,
        0.5,
        1e308,
        "",
        "0",
        "\x00\x1b[31m",
        "x" * 10_000,
        b"\xff\xfe",
    ),
    *(
        "{}",
        "[]",
        "null",
        '{"a": 1}',
        "[[",
        '"text"',
        "1e999",
        "NaN",
        "[" * 2000,
        "\u202e\u2028",
        '{"a": "\\ud800"}',
    ),
    *(f'{{"a": {"9" * 400}}}', f'{{"a": {"[" * 300}{"]" * 300}}}'),
)
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("report", "RUN"),
    ("report", "RUN", "--format", "json"),
    ("report", "RUN", "--html", "page.html"),
    ("show", "RUN"),
    ("show", "RUN", "--call", "3"),
    ("compare", "RUN", "whole"),
    ("diff", "RUN", "whole"),
    ("bless", "RUN", "base"),
    ("export", "RUN", "--csv"),
    ("export", "RUN", "--inspect"),
    ("measures", "RUN"),
    ("runs",),
    ("merge", "RUN", "part-2", "--run-id", "merged"),
    ("merge", "part-1", "RUN", "--run-id", "merged"),
    ("resume",),
)


class Log:
    """Cases are JSON. They name the command that reads the log, and the damage."""

    name = "log"

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="cheesebench-fuzz-")
        self.directory = Path(self._folder.name)
        (self.directory / "script.yaml").write_text(SCRIPT, encoding="utf-8")
        arguments = (
            *(
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                "--model",
                "scripted:script.yaml",
            ),
            *(
                "--model",
                "random",
                "--design",
                "smoke",
                "--protocols",
                "t_maze",
                "--exit-zero",
            ),
            *("--control", "blind", "--seed", "0"),
        )
        runs = {"whole": (), "part-1": ("--shard", "1/2"), "part-2": ("--shard", "2/2")}
        running = [
            subprocess.Popen(
                (*arguments, "--cheese-run-id", name, *more),
                cwd=self.directory,
                stdout=subprocess.DEVNULL,
            )
            for name, more in runs.items()
        ]
        for name, one in zip(runs, running, strict=True):
            assert one.wait() == 0, name
            with RunLog.open(self._log(name)) as log:
                log.select("PRAGMA wal_checkpoint(TRUNCATE)")
                log.select("PRAGMA journal_mode = DELETE")
        self._whole = self._log("whole")
        with closing(sqlite3.connect(self._whole)) as connection:
            self._columns = [
                (
                    table,
                    row[1],
                    int(
                        connection.execute(f"SELECT count(*) FROM {table}").fetchone()[
                            0
                        ]
                    ),
                )
                for (table,) in connection.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'table'"
                ).fetchall()
                for row in connection.execute(f"PRAGMA table_info({table})").fetchall()
            ]

        for command in COMMANDS:
            # One case is run before anything is timed, because templates are compiled
            # and modules imported on first use.
            self.check(
                json.dumps(
                    {"command": command, "kind": "bytes", "damages": []}
                ).encode()
            )

    def _log(self, name: str) -> Path:
        return self.directory / "results" / name / "run.sqlite"

    def draw(self, chance: random.Random) -> bytes:
        """Return a command and one to three damages of one kind."""
        kind = chance.choice(
            ("bytes", "bytes", "rows", "rows", "forged", "forged", "forged")
        )
        how = {
            "bytes": self._bytes,
            "rows": self._damage_of_rows,
            "forged": self._damage_of_rows,
        }[kind]
        damages = [how(chance) for _ in range(chance.randint(1, 3))]
        return json.dumps(
            {"command": chance.choice(COMMANDS), "kind": kind, "damages": damages}
        ).encode()

    def _bytes(self, chance: random.Random) -> list[Any]:
        place, length = chance.random(), chance.choice((1, 1, 4, 100, 4096))
        how = chance.choice(("flip", "flip", "zero", "noise", "cut", "copy"))
        return [how, place, length, chance.randrange(2**32)]

    def _damage_of_rows(self, chance: random.Random) -> list[Any]:
        table, column, count = chance.choice([one for one in self._columns if one[2]])
        number = chance.randrange(count)
        how = chance.choice(("set", "set", "set", "json", "json", "delete", "twice"))
        if how == "set":
            value = chance.choice(VALUES)
            return [
                how,
                table,
                column,
                number,
                value.decode("latin-1") if isinstance(value, bytes) else value,
            ]
        return [how, table, column, number, chance.randrange(2**32)]

    def check(self, case: bytes) -> None:
        """Damage a copy of the log and read it. The result must be a report, or one
        line and exit code 2.
        """
        what = json.loads(case)
        run = self.directory / "results" / "damaged"
        shutil.rmtree(run, ignore_errors=True)
        shutil.rmtree(run.with_name("merged"), ignore_errors=True)
        run.mkdir()
        path = run / "run.sqlite"
        merged = what["command"][0] == "merge"
        origin = (
            "whole"
            if not merged
            else "part-2"
            if "part-1" in what["command"]
            else "part-1"
        )
        shutil.copyfile(self._log(origin), path)
        if what["kind"] == "bytes":
            _damage_bytes(path, what["damages"])
        else:
            before = _rows(path)
            with (
                contextlib.suppress(sqlite3.Error),
                closing(sqlite3.connect(path)) as connection,
            ):
                for damage in what["damages"]:
                    with contextlib.suppress(sqlite3.Error):
                        _damage_row(connection, damage)
                if what["kind"] == "forged":
                    forge(connection)
                connection.commit()
            if what["kind"] == "rows" and _rows(path) != before:
                with (
                    contextlib.suppress(CheeseBenchError),
                    RunLog.open_read_only(path) as log,
                ):
                    log.verify()
                    raise AssertionError("a changed log is taken for a whole one")
        _read(self.directory, run, what["command"])


def _rows(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def _damage_bytes(path: Path, damages: list[Any]) -> None:
    content = bytearray(path.read_bytes())
    for how, share, length, seed in damages:
        place = int(share * len(content))
        end = min(place + length, len(content))
        chance = random.Random(seed)
        match how:
            case "flip" if place < len(content):
                content[place] ^= 1 << chance.randrange(8)
            case "zero":
                content[place:end] = bytes(end - place)
            case "noise":
                content[place:end] = chance.randbytes(end - place)
            case "cut":
                del content[len(content) - length :]
            case "copy":
                other = chance.randrange(max(1, len(content) - length))
                content[place:end] = content[other : other + end - place]
    path.write_bytes(content)


def _damage_row(connection: sqlite3.Connection, damage: list[Any]) -> None:
    how, table, column, number, value = damage
    keys = [
        row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[5]
    ] or ["rowid"]
    names = ", ".join(keys)
    key = connection.execute(
        f"SELECT {names} FROM {table} LIMIT 1 OFFSET ?", (number,)
    ).fetchone()
    if key is None:
        return
    where = " AND ".join(f"{name} IS ?" for name in keys)
    match how:
        case "set":
            connection.execute(
                f"UPDATE {table} SET {column} = ? WHERE {where}", (value, *key)
            )
        case "json":
            (text,) = connection.execute(
                f"SELECT {column} FROM {table} WHERE {where}", key
            ).fetchone()
            try:
                content = json.loads(text)
            # An earlier damage may have left something that cannot be read.
            except (TypeError, ValueError, RecursionError):
                content = text
            mutated = _mutated(content, random.Random(value))
            connection.execute(
                f"UPDATE {table} SET {column} = ? WHERE {where}",
                (json.dumps(mutated), *key),
            )
        case "delete":
            connection.execute(f"DELETE FROM {table} WHERE {where}", key)
        case "twice":
            connection.execute(
                f"INSERT INTO {table} SELECT * FROM {table} WHERE {where}", key
            )


def _mutated(value: Any, chance: random.Random) -> Any:
    """Return a JSON value with one change in it."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(sorted(value))
        if chance.random() < 0.15:
            return {name: inner for name, inner in value.items() if name != key}
        return {**value, key: _mutated(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.9:
        place = chance.randrange(len(value))
        return [*value[:place], _mutated(value[place], chance), *value[place + 1 :]]
    return chance.choice(
        (
            *(
                None,
                True,
                -1,
                0,
                10**9,
                10**400,
                1e308,
                -1e200,
                float("nan"),
                "",
                "x",
                "\x1b[31m",
                "\ud800",
            ),
            *([], {}, [None], {"a": []}),
        )
    )


def _read(directory: Path, run: Path, command: list[str]) -> None:
    if command == ["resume"]:
        with contextlib.suppress(CheeseBenchError):
            _resume(run)
        return
    arguments = [str(run) if word == "RUN" else word for word in command]
    arguments = [
        str(directory / word) if word == "page.html" else word for word in arguments
    ]
    errors, out = io.StringIO(), io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with (
        contextlib.redirect_stderr(errors),
        contextlib.redirect_stdout(out),
        contextlib.chdir(directory),
    ):
        code = main(arguments)
    said = errors.getvalue()
    if code == 2:
        *_, last = said.splitlines()
        assert last.startswith("cheesebench: "), said
        assert last.isprintable(), said
    assert code in (0, 1, 2), code


def _resume(run: Path) -> None:
    """Read everything that a resumed run reads before its first call."""
    with RunLog.open(run) as log:
        log.verify()
        manifest, plans = log.manifest, log.plans()
        check_resumable(log, [], manifest["options"]["seed"])
        for plan in plans:
            log.completed_subjects(plan)
            for life in log.trials_by_subject(plan):
                list(log.calls.of_life(plan, life[0].subject))
                for record in life:
                    log.events(record)
            log.journal(plan)
