"""References computed from animals: a file beside the protocol, its curve, and the
trials of the estimand.
"""

from __future__ import annotations

import csv
import math
import os
import re
import shutil
import statistics
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cheesebench.diagnostics import Diagnostic
from cheesebench.interfaces import RUNNING, STAY, AuditSettings
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.runs import DARKNESS
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.protocol import Catalogue, Specification, load_protocol, with_arena
from cheesebench.protocol.csv_files import COLUMNS, MEASURED, row_of
from tests.arenas import examine, examine_text

SHIPPED = Path(__file__).parents[2] / "protocols"
MAZE = """version: 1
paradigm: maze
dimension: d
arena: {map: "SZ", legend: {S: box, Z: goal}}
start: {at: box}
trial: {limit: 9, start: run, states: {run: {rules: [{enter: goal, reward: 1, end: found}]}}}
success: last == found
"""
HEADER = ",".join(COLUMNS)


def written(
    folder: Path, keys: str, csv: str | bytes = ""
) -> tuple[Specification | None, list[Diagnostic]]:
    """Load the little maze with these keys and a file of animals beside it."""
    (folder / "animals.csv").write_bytes(
        csv if isinstance(csv, bytes) else csv.encode()
    )
    path = folder / "maze.protocol.yaml"
    path.write_text(MAZE + keys, encoding="utf-8")
    return examine(path)


def loaded(folder: Path, keys: str, csv: str = "") -> Specification:
    specification, found = written(folder, keys, csv)
    assert specification is not None, found
    return specification


FOUR = "schedule: {one: {sessions: 2, trials: 4}}\n"
NAMED = "reference: [{measure: success, animals: animals.csv, status: counted}]\n"
TWO_MICE = f"{HEADER},sex\nm1,1,4,1,F\nm1,2,4,3,F\n\nm2,1,4,2,M\nm2,2,2,2,M\n"


def test_value_spread_and_curve_are_those_of_the_animals(tmp_path: Path) -> None:
    found = loaded(tmp_path, FOUR + NAMED, TWO_MICE).reference
    assert found is not None
    own = [4 / 8, 4 / 6]
    assert (found.value, found.sd) == pytest.approx(
        (statistics.fmean(own), statistics.stdev(own))
    )
    assert (found.n_animals, found.kind, found.over) == (2, "measured", (1, 2))
    assert found.curve == pytest.approx((0.375, 0.875))
    assert found.curve_sd == pytest.approx(
        (statistics.stdev([0.25, 0.5]), statistics.stdev([0.75, 1]))
    )


def test_the_value_is_over_the_trials_of_the_estimand(tmp_path: Path) -> None:
    found = loaded(tmp_path, FOUR + NAMED + "estimand: {last: 4}\n", TWO_MICE).reference
    assert found is not None
    assert (found.value, found.over) == (0.875, (2,))


@pytest.mark.parametrize(
    ("where", "value", "over"),
    [
        ("session == 2", 0.8, (2,)),
        ("session < 2 or trial > 3", (4 * 0.2 + 0.8) / 5, (1, 2)),
        ("steps < 5", 0.5, (1, 2)),
    ],
)
def test_a_curve_gives_the_value_of_the_trials_that_where_takes(
    where: str, value: float, over: tuple[int, ...], tmp_path: Path
) -> None:
    curve = "reference: [{measure: success, curve: [0.2, 0.8], status: x}]"
    found = loaded(tmp_path, f"{FOUR}estimand: {{where: {where}}}\n{curve}").reference
    assert found is not None
    assert found.value == pytest.approx(value)
    assert found.over == over


def test_animals_are_compared_in_the_sessions_that_where_takes(tmp_path: Path) -> None:
    keys = FOUR + NAMED + "estimand: {where: session == 2}\n"
    found = loaded(tmp_path, keys, TWO_MICE).reference
    assert found is not None
    assert (found.value, found.over) == (0.875, (2,))


def test_sessions_of_a_curve_weigh_as_many_trials_as_they_have_in_the_estimand(
    tmp_path: Path,
) -> None:
    keys = (
        FOUR
        + "estimand: {last: 6}\nreference: [{measure: success, curve: [0.2, 0.8], curve_sd: [0.3, 0], "
    )
    found = loaded(tmp_path, keys + "n_animals: 9, status: x}]").reference
    assert found is not None
    assert (found.value, found.sd) == pytest.approx(((2 * 0.2 + 4 * 0.8) / 6, 0.1))


def test_sessions_have_the_trials_that_the_block_has_left(tmp_path: Path) -> None:
    keys = "schedule: {one: {trials: 4, repeat: {at_most: 9, trials: 6}}}\nreference: [{measure: success, status: x, "
    found = loaded(tmp_path, keys + "curve: [0.2, 0.8]}]").reference
    assert found is not None
    assert found.value == pytest.approx((4 * 0.2 + 2 * 0.8) / 6)
    assert found.over == (1, 2)


#: Blocks with an unknown number of sessions.
OPEN = (
    "schedule: {one: {trials: 4, repeat: {at_most: 3, until: {outcome: found, count: 2}}}}\n",
    "schedule: {one: {trials: 4, until: {outcome: found, count: 2}, repeat: {at_most: 9, trials: 8}}}\n",
    "schedule: {one: {sessions: 3, trials: 4, until: {outcome: found, count: 2}}, two: {trials: 4}}\n",
)


@pytest.mark.parametrize("schedule", OPEN)
@pytest.mark.parametrize("given", ["curve: [0.2, 0.8, 0.9]", "animals: animals.csv"])
def test_where_sessions_depend_on_the_subject_the_value_is_written(
    tmp_path: Path, schedule: str, given: str
) -> None:
    keys = schedule + f"reference: [{{measure: success, {given}, status: x}}]"
    specification, found = written(tmp_path, keys, TWO_MICE)
    assert specification is None
    assert [
        (one.code, "depends on the subject" in one.sentence)
        for one in found
        if one.severity == "error"
    ] == [(226, True)]
    assert (
        loaded(
            tmp_path, keys.replace("status", "over: [1, 2], status"), TWO_MICE
        ).reference
        is not None
    )
    if "curve" in given:
        one = loaded(tmp_path, keys.replace("status", "value: 0.4, status")).reference
        assert one is not None
        assert (one.value, len(one.curve)) == (0.4, 3)


def test_a_standard_error_is_a_deviation_over_the_root_of_n(tmp_path: Path) -> None:
    keys = (
        FOUR
        + "reference: [{measure: success, value: 0.775, sem: 0.014, n_animals: 4, status: x}]"
    )
    found = loaded(tmp_path, keys).reference
    assert found is not None
    assert found.sd == pytest.approx(0.014 * math.sqrt(4))


def test_a_number_of_animals_alone_is_declared(tmp_path: Path) -> None:
    found = loaded(
        tmp_path,
        FOUR + "reference: [{measure: success, value: 0.8, n_animals: 12, status: x}]",
    ).reference
    assert found is not None
    assert (found.kind, found.sd) == ("declared", None)


def test_the_resolved_text_needs_no_file(tmp_path: Path) -> None:
    specification = loaded(tmp_path, FOUR + NAMED, TWO_MICE)
    (again, found) = examine_text(specification.text, "elsewhere.yaml")
    assert again is not None, found
    assert again.references == specification.references
    assert again.sha256 == specification.sha256


def test_other_animals_are_another_protocol(tmp_path: Path) -> None:
    before = loaded(tmp_path, FOUR + NAMED, TWO_MICE).sha256
    assert (
        loaded(tmp_path, FOUR + NAMED, TWO_MICE.replace("m1,1,4,1", "m1,1,4,2")).sha256
        != before
    )


def test_an_edition_reads_the_file_beside_its_parent(tmp_path: Path) -> None:
    parent = loaded(tmp_path, FOUR + NAMED, TWO_MICE)
    child = tmp_path / "elsewhere" / "maze.other.protocol.yaml"
    child.parent.mkdir()
    child.write_text(
        "version: 1\nextends: maze\nparadigm: maze\nedition: other\n", encoding="utf-8"
    )
    specification, found = examine(child, Catalogue([tmp_path]))
    assert specification is not None, found
    assert specification.references == parent.references


@pytest.mark.parametrize(
    ("csv", "where"),
    [
        ("", "1:1"),
        (HEADER + "\n", "1:1"),
        ("animal,session,trials\nm,1,4\n", "1:1"),
        (f"{HEADER}\nm,1,4,5\n", "2:4"),
        (f"{HEADER}\nm,0,4,1\n", "2:2"),
        (f"{HEADER}\nm,1,0,0\n", "2:3"),
        (f"{HEADER}\nm,1,4,0.5\n", "2:4"),
        (f"{HEADER}\nm,1,4\n", "2:4"),
        (f"{HEADER}\nm,1,4,2,5\n", "2:5"),
        (f"{HEADER},session\nm,1,4,2,1\n", "1:5"),
        (f'{HEADER}\n"m,1,4,2\n', "2:1"),
        (f'{HEADER}\n\nm,1,4,2\n"n,1,4,2\nn,2,4,2\n', "4:1"),
        (f'"{HEADER}\n' + "m,1,4,2\n" * 20_000, "1:1"),
        (f"{HEADER}\n,1,4,1\n", "2:1"),
        (f"{HEADER}\nm,1,4,1\nm,1,4,2\n", "3:2"),
        (f"{HEADER}\nm,1,4,{'9' * 5000}\n", "2:4"),
        (f"{HEADER}\nm,1,4,\u0661\n", "2:4"),
        (f"{HEADER}\nNA,1,4,1\n", "2:1"),
        (f"{HEADER}\nm,1,4,#N/A\n", "2:4"),
    ],
)
def test_mistakes_are_reported_in_the_file_of_animals(
    tmp_path: Path, csv: str, where: str
) -> None:
    specification, found = written(tmp_path, FOUR + NAMED, csv)
    assert specification is None
    assert [
        f"{d.code} {Path(d.position.file).name}:{d.position.line}:{d.position.column}"
        for d in found
    ] == [f"225 animals.csv:{where}"]


def test_tables_as_spreadsheets_and_pandas_write_them(tmp_path: Path) -> None:
    rows = "m1,1.0,4.0,1.0,,\n,,,\nm1,2,4,3\n\nm2,1,4,2\nm2,2,2,2\n,,,\n,,,\n"
    found = loaded(tmp_path, FOUR + NAMED, f"{HEADER}\n{rows}").reference
    usual = loaded(tmp_path, FOUR + NAMED, TWO_MICE).reference
    assert found is not None
    assert usual is not None
    assert (found.value, found.sd, found.n_animals) == (usual.value, usual.sd, 2)


def test_minus_one_is_no_count(tmp_path: Path) -> None:
    keys = "counts: {measure: latency, at_most: 23}"
    rows = "animal,session,latency\na1,1,30\na1,1,-1\n"
    named = NAMED.replace("status", f"{keys}, status")
    _, found = written(tmp_path, FOUR + named, rows)
    told = [one for one in found if "below 0, which no count can be" in one.sentence]
    assert [one.position.line for one in told] == [3]


@pytest.mark.parametrize(
    ("csv", "why"),
    [
        (
            f"{HEADER}\nm,1,10,0.5\n",
            "'m,1,10,0.5' is not a valid row: '0.5' (passed) is a share, not a whole number.",
        ),
        (
            f"{HEADER}\nm,1,10,12\n",
            "'m,1,10,12' is not a valid row: 12 passed of 10 trials. If that is in percent",
        ),
        (
            f"{HEADER}\nm,0,10,1\n",
            "'m,0,10,1' is not a valid row: '0' (session) is below 1.",
        ),
        (
            f"{HEADER}\nm,1,10,-2\n",
            "'m,1,10,-2' is not a valid row: '-2' (passed) is below 0.",
        ),
        (
            f"{HEADER}\nm,x,10,1\n",
            "'m,x,10,1' is not a valid row: 'x' (session) is not a whole number.",
        ),
        (f"{HEADER}\nm,1,4,1\n".replace(",", ";"), "by commas, not by semicolons."),
    ],
)
def test_a_row_that_is_not_valid_says_why(tmp_path: Path, csv: str, why: str) -> None:
    _, (found,) = written(tmp_path, FOUR + NAMED, csv)
    assert why in str(found)


@pytest.mark.parametrize(
    "name",
    ["../secret.csv", "/etc/passwd", "secret.txt", "sub/../../secret.csv", "link.csv"],
)
def test_only_the_protocol_s_folder_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.csv").write_text(TWO_MICE, encoding="utf-8")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "secret.txt").write_text(TWO_MICE, encoding="utf-8")
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    specification, found = written(folder, FOUR + NAMED.replace("animals.csv", name))
    assert specification is None
    assert [d.code for d in found] == [225]


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "circle.csv").symlink_to("circle.csv")
    for name in (
        "pipe.csv",
        "folder.csv",
        "circle.csv",
        f"{'x' * 190}.csv",
        '"a\\0.csv"',
    ):
        specification, found = written(
            tmp_path, FOUR + NAMED.replace("animals.csv", name)
        )
        assert specification is None
        assert found[0].code in (102, 104, 225), found


def test_bytes_that_are_no_text_and_large_files_are_refused(tmp_path: Path) -> None:
    for content in (b"\xff\xfe\x00", HEADER.encode() + b"\n" + b"m,1,4,1\n" * 200_000):
        specification, found = written(tmp_path, FOUR + NAMED, content)
        assert specification is None
        assert {d.code for d in found} == {225}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists
    )
)
def test_a_row_is_a_row_or_none(cells: object) -> None:
    row = row_of(cells, COLUMNS)
    assert row is None or (len(row) == 4 and row[1] >= 1 and 0 <= row[3] <= row[2])
    row = row_of(cells, MEASURED)
    assert row is None or (row[1] >= 1 and math.isfinite(row[2]))


LATENCY = (
    FOUR
    + "measures: {latency: steps}\nreference: [{measure: latency, animals: animals.csv, status: x}]\n"
)


def test_animals_of_a_measure_have_its_value_in_a_session(tmp_path: Path) -> None:
    csv = "animal,session,value\nm1,1,4\nm1,2,6.5\nm2,2,-1e1\n"
    (found,) = loaded(tmp_path, LATENCY, csv).references
    assert found.value == pytest.approx((5.25 - 10) / 2)
    assert (found.n_animals, found.over) == (2, (1, 2))
    assert found.sd == pytest.approx(statistics.stdev([5.25, -10]))
    assert found.curve == pytest.approx((4, -1.75))
    inline = LATENCY.replace("animals.csv", "[[m1, 1, 4], [m1, 2, 6.5], [m2, 2, -10]]")
    assert loaded(tmp_path, inline).references == (found,)


@pytest.mark.parametrize(
    ("csv", "where", "said"),
    [
        (
            f"{HEADER}\nm,1,4,1\n",
            "1:1",
            "The first line must name the columns: animal,session,value.",
        ),
        (
            "animal,session,value\nm,1,high\n",
            "2:3",
            "'m,1,high' is not a valid row: 'high' (value) is not a number.",
        ),
        ("animal,session,value\nm,1,inf\n", "2:3", "'inf' (value) is not a number."),
        (
            "animal,session,value\nm,0,2\n",
            "2:2",
            "Write the animal, the session (from 1) and the value, a number.",
        ),
        (
            "animal,session,value\nm,1,2\nm,1,3\n",
            "3:2",
            "Session 1 of 'm' appears twice.",
        ),
    ],
)
def test_mistakes_in_animals_of_a_measure(
    tmp_path: Path, csv: str, where: str, said: str
) -> None:
    specification, (found,) = written(tmp_path, LATENCY, csv)
    assert specification is None
    assert f"animals.csv:{where}: error E225: " in str(found)
    assert said in str(found)


#: Value and standard deviation of the compared trials, and number of animals, as
#: published beside the data.
@pytest.mark.parametrize(
    ("name", "sessions", "value", "sd", "animals"),
    [
        ("morris_water_maze", [4, 5], 0.671, 0.239, 35),
        ("operant_chamber", [3, 4, 5], 0.700, 0.137, 35),
        ("place_preference", [5], 0.810, 0.392, 991),
        ("t_maze", [6, 7, 8], 0.7975, 0.041, 10),
        ("t_maze", [7, 8], 0.793, 0.064, 10),
        ("../classics/animals/five_choice", range(1, 7), 0.462, 0.081, 126),
        ("../classics/animals/five_choice", [5, 6], 0.545, 0.110, 126),
    ],
)
def test_shipped_animals_are_those_of_the_sources(
    tmp_path: Path,
    name: str,
    sessions: list[int],
    value: float,
    sd: float,
    animals: int,
) -> None:
    csv = (SHIPPED / "animals" / f"{name}.csv").read_text(encoding="utf-8")
    over = f"over: {list(sessions)}, status"
    found = loaded(tmp_path, FOUR + NAMED.replace("status", over), csv).reference
    assert found is not None
    assert (found.value, found.sd) == pytest.approx((value, sd), abs=6e-4)
    assert found.n_animals == animals


def test_load_protocol_reads_animals_too(tmp_path: Path) -> None:
    loaded(tmp_path, FOUR + NAMED, TWO_MICE)
    reference = load_protocol(tmp_path / "maze.protocol.yaml").reference
    assert reference is not None
    assert reference.n_animals == 2


def table(name: str) -> list[dict[str, str]]:
    with (SHIPPED / "animals" / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_mice_and_models_have_the_same_limit_on_their_path() -> None:
    """On average, over the protocol's own trials; both in units of the longest direct
    path.
    """
    maze = ArenaParadigm(
        with_arena(load_protocol(SHIPPED / "morris_water_maze.protocol.yaml"))
    )
    assert maze.specification.reference is not None
    stated = float(
        re.findall(r"at most ([\d.]+) times", maze.specification.reference.status)[0]
    )
    budgets, longest = [], 0.0
    for subject in range(32):
        life = ArenaSubject(maze.program, DARKNESS, 0, subject)
        while life.begin_trial() is not None and life.block != "probe":
            while life.state == "ready":
                life.step(STAY)
            budgets.append(life.values["budget"])
            longest = max(
                longest, *(life.distance(f"site{number}") for number in range(1, 9))
            )
            while life.step(STAY)[2] == RUNNING:
                pass
    assert len(budgets) == 640
    assert statistics.mean(budgets) / longest == pytest.approx(stated, abs=0.01)
    for row in table("morris_water_maze"):
        assert int(row["passed"]) <= int(row["within_1_5"]) <= int(row["within_1_64"])


def test_rats_and_models_are_counted_by_one_definition() -> None:
    maze = with_arena(load_protocol(SHIPPED / "barnes_maze.protocol.yaml"))
    counted: dict[str, list[bool]] = {}
    for row in table("barnes_maze"):
        if int(row["session"]) in (4, 5):
            own = counted.setdefault(row["animal"], [])
            own.append(int(row["primary_errors"]) <= 7)
    rates = [statistics.mean(own) for own in counted.values()]
    assert maze.reference is not None
    assert maze.reference.n_animals == 16
    assert maze.reference.value == pytest.approx(statistics.mean(rates))
    [found] = ArenaParadigm(maze).audit([], AuditSettings(parts=("same-event",)))
    assert (found.verdict, found.numbers["trials"]) == ("ok", 1008)
    assert 0.1 < found.numbers["counted"] / 1008 < 0.5  # type: ignore[operator]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        # Eight wrong holes are forgiven.
        (
            ("if: errors < 7,", "if: errors < 8,"),
            "primary_errors is 8 (counted: at most 7), but 'escaped' is a success",
        ),
        # A subject that ran out of time made few errors.
        (
            (" * (last != unsearched) + 8 * (last == unsearched)", ""),
            "'unsearched' is no success",
        ),
    ],
)
def test_another_event_than_the_animals_is_found(
    change: tuple[str, str], said: str, tmp_path: Path
) -> None:
    shutil.copytree(SHIPPED / "animals", tmp_path / "animals")
    path = tmp_path / "barnes_maze.protocol.yaml"
    text = (SHIPPED / "barnes_maze.protocol.yaml").read_text(encoding="utf-8")
    assert change[0] in text
    path.write_text(text.replace(*change), encoding="utf-8")
    [found] = ArenaParadigm(with_arena(load_protocol(path))).audit(
        [], AuditSettings(parts=("same-event",))
    )
    assert found.verdict == "FAIL"
    assert said in found.text


COUNTED = "measures: {errors: steps}\nreference: [{measure: success, animals: animals.csv, status: x, "
COUNTED += "counts: {measure: errors, at_most: 3}}]\n"


def test_rows_of_trials_are_counted(tmp_path: Path) -> None:
    found = loaded(
        tmp_path,
        FOUR + COUNTED,
        "animal,session,errors\nm1,1,2\nm1,1,4\nm1,2,3\nm1,2,0\nm2,1,1\n",
    ).reference
    assert found is not None
    assert (found.value, found.n_animals, found.curve) == (0.875, 2, (0.75, 1.0))


@pytest.mark.parametrize(
    ("change", "rows", "said"),
    [
        (
            ("", ""),
            "m1,1,",
            "(errors) is not a number. Remove the row: a session that was not measured has no row.",
        ),
        (
            ("measure: errors", "measure: erors"),
            "m1,1,2",
            "There is no measure 'erors'.",
        ),
        (
            ("animals: animals.csv", "value: 0.5"),
            "m1,1,2",
            "'counts' says what 'success' is in 'animals'.",
        ),
        (
            ("at_most: 3", "at_most: few"),
            "m1,1,2",
            "The value of 'at_most' does not fit: 'few'.",
        ),
        (
            ("{errors: steps}", "{faults: steps}"),
            "m1,1,2",
            "There is no measure 'errors'.",
        ),
    ],
)
def test_what_cannot_be_counted_is_said(
    change: tuple[str, str], rows: str, said: str, tmp_path: Path
) -> None:
    text = (FOUR + COUNTED).replace(*change) if change[0] else FOUR + COUNTED
    found, diagnostics = written(tmp_path, text, f"animal,session,errors\n{rows}\n")
    assert found is None
    assert any(said in str(one) for one in diagnostics), diagnostics


def findings(folder: Path, keys: str, csv: str) -> list[tuple[int, str]]:
    return [(one.code, one.sentence) for one in written(folder, keys, csv)[1]]


GROUPED = f"""{HEADER},group
k1,1,4,0,knock-out
k1,2,4,0,knock-out
c1,1,4,3,control
c1,2,4,4,control
c2,1,4,2,control
c2,2,4,3,control
"""


def test_a_group_of_a_table_can_be_named_and_is_not_pooled_in_silence(
    tmp_path: Path,
) -> None:
    pooled = findings(tmp_path, FOUR + NAMED, GROUPED)
    assert [code for code, text in pooled if "knock-out, control" in text] == [332]
    only = NAMED.replace("animals.csv,", "animals.csv, only: {group: control},")
    found = loaded(tmp_path, FOUR + only, GROUPED).reference
    assert found is not None
    assert (found.value, found.n_animals) == (0.75, 2)
    assert 332 not in [code for code, _ in findings(tmp_path, FOUR + only, GROUPED)]
    for wrong, place, said in (
        ("{group: controls}", "9:68", "no row has group: controls. Did you mean"),
        (
            "{group: sham}",
            "9:68",
            "no row has group: sham. The column has knock-out, control.",
        ),
        ("{grupo: control}", "9:61", "no column 'grupo'. Did you mean 'group'?"),
    ):
        keys = FOUR + only.replace("{group: control}", wrong)
        (found_,) = written(tmp_path, keys, GROUPED)[1]
        assert f"maze.protocol.yaml:{place}: error E225: " in str(found_)
        assert said in str(found_)


def test_a_group_in_two_spellings_is_told(tmp_path: Path) -> None:
    only = NAMED.replace("animals.csv,", "animals.csv, only: {group: control},")
    for other in ("Control", "con trol"):
        rows = GROUPED.replace("c2,1,4,2,control", f"c2,1,4,2,{other}")
        found = findings(tmp_path, FOUR + only, rows)
        said = f"'{other}' and 'control' are two groups (group)"
        assert [code for code, text in found if said in text] == [332]


def test_one_mistake_in_all_rows_is_one_finding(tmp_path: Path) -> None:
    rows = "".join(f"m{n},1,8,0.{n}\n" for n in range(1, 9)) + "m9,0,8,1\n"
    found = findings(tmp_path, FOUR + NAMED, f"{HEADER}\n{rows}")
    assert [text for _, text in found] == [
        "'m1,1,8,0.1' is not a valid row: '0.1' (passed) is a share, not a whole number, and 7 more are like it.",
        "'m9,0,8,1' is not a valid row: '0' (session) is below 1.",
    ]


ALTERNATION = (
    FOUR
    + "measures: {alternation: triads / visits}\n"
    + "reference: [{measure: alternation, animals: animals.csv, better: higher, margin: 12, range: [0, 100], status: x}]\n"
)
COUNTING = MAZE.replace(
    "states:", "watch: [{enter: box, count: [visits, triads]}], states:"
)


@pytest.mark.parametrize(
    ("change", "values", "said"),
    [
        (("", ""), (71.1, 65.5), "'alternation' lies from 0 to 1 here"),
        (("", ""), (0.71, 0.65), "lies from 0 to 1 here"),
        (("triads /", "100 * triads /"), (71.1, 65.5), ""),
        (("12, range: [0, 100]", "0.12, range: [0, 1]"), (0.71, 0.65), ""),
        (("triads / visits", "steps"), (71, 65), ""),
        (("triads / visits", "steps"), (0.71, 0.65), "seems to be in percent"),
        (
            ("triads / visits", "100 * triads / visits"),
            (0.71, 0.65),
            "'alternation' seems to be in percent, and the animals have 0.68",
        ),
        (
            ("better: higher, margin: 12, range: [0, 100], ", ""),
            (71.1, 65.5),
            "'alternation' lies from 0 to 1 here",
        ),
    ],
)
def test_percent_and_shares_are_told_apart(
    change: tuple[str, str], values: tuple[float, float], said: str, tmp_path: Path
) -> None:
    rows = "".join(
        f"m{n},{session},{value}\n"
        for n, value in enumerate(values)
        for session in (1, 2)
    )
    (tmp_path / "animals.csv").write_text(f"{','.join(MEASURED)}\n{rows}")
    path = tmp_path / "maze.protocol.yaml"
    text = COUNTING + (ALTERNATION.replace(*change) if change[0] else ALTERNATION)
    path.write_text(text, encoding="utf-8")
    found = [one.sentence for one in examine(path)[1] if one.code == 335]
    assert (len(found) == 1 and said in found[0]) if said else not found


def test_an_animal_that_dropped_out_is_told_of_measures_too(tmp_path: Path) -> None:
    head = f"{','.join(MEASURED)}\n"
    early, late = "m1,1,4\nm1,2,5\nm2,1,4\n", "m1,1,4\nm1,2,5\nm2,2,4\n"
    judged = LATENCY.replace(
        "status", "better: lower, margin: 2, range: [0, 9], status"
    )
    told = [
        text for code, text in findings(tmp_path, judged, head + early) if code == 332
    ]
    assert len(told) == 1
    assert "'m2' session 2" in told[0]
    assert 332 not in [code for code, _ in findings(tmp_path, judged, head + late)]


def test_a_margin_at_the_wrong_place_is_told_where_it_goes(tmp_path: Path) -> None:
    keys = (
        LATENCY.replace("status", "better: lower, range: [0, 9], status")
        + "margin: 0.2\n"
    )
    rows = f"{','.join(MEASURED)}\nm1,1,4\nm1,2,5\n"
    told = [str(one) for one in written(tmp_path, keys, rows)[1] if one.code == 226]
    assert "Move 'margin' from line 11 to here" in str(told)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            "m1,1,4,1\nm1,2,4,3\nm2,1,4,2\n",
            "judged by their other sessions: 'm2' session 2.",
        ),
        ("M1,1,4,1\nM1,2,4,3\nm1,1,4,2\nm1,2,4,2\n", "count as two animals"),
        ("7,1,4,1\n7,2,4,3\n7.0,1,4,2\n7.0,2,4,2\n", "count as two animals"),
        (
            "m1,1,4,1\nm1,2,4,3\nm2,1,4,2\nm2,2,4,2\nm2,9,4,4\n",
            "'m2' has a session 9, but the schedule has only 2",
        ),
        (
            "".join(f"m{n},{session},4,{n}\n" for n in (1, 2) for session in (1, 2, 4)),
            "'m1' has a session 4, but the schedule has only 2",
        ),
    ],
)
def test_animals_that_are_not_those_that_are_judged(
    tmp_path: Path, rows: str, said: str
) -> None:
    found = findings(tmp_path, FOUR + NAMED, f"{HEADER}\n{rows}")
    assert [code for code, text in found if said in text] == [332]


def test_all_animals_may_have_gone_on_longer_than_the_schedule(tmp_path: Path) -> None:
    rows = "".join(
        f"m{n},{session},4,{n}\n" for n in (1, 2) for session in (1, 2, 3, 4)
    )
    found = findings(tmp_path, FOUR + NAMED, f"{HEADER}\n{rows}")
    assert [code for code, _ in found] == [334], "two animals are too few, and no more"


def test_a_table_with_percentages_alone_is_told_what_it_lacks(tmp_path: Path) -> None:
    table = "animal,session,pct_correct\nm1,1,80\n"
    found = written(tmp_path, FOUR + NAMED, table)[1]
    assert "'pct_correct' does not say of how many trials" in found[0].remedy


@pytest.mark.parametrize(
    ("rows", "code", "said"),
    [
        ("a,1,9,5\na,2,9,6\n", 333, "One animal does not show how animals differ"),
        ("a,1,9,5\na,2,9,5\nb,1,9,5\nb,2,9,5\n", 333, "2 animals that are equal"),
        (
            "a,1,9,5\na,2,9,6\nb,1,9,8\nb,2,9,8\n",
            334,
            "never passes, and none ever fails, however many subjects are run",
        ),
        (
            "".join(f"a{n},{at},9,{6 + n % 3}\n" for n in range(9) for at in (1, 2)),
            334,
            "The mean of 9 animals may be off by 0.064, which the margin of 0.02 does not cover",
        ),
    ],
)
def test_animals_that_cannot_decide_anything(
    tmp_path: Path, rows: str, code: int, said: str
) -> None:
    keys = f"{FOUR}margin: 0.02\n{NAMED}"
    found = findings(tmp_path, keys, f"{HEADER}\n{rows}")
    assert [one for one, text in found if said in text] == [code]


def test_animals_at_the_ceiling_are_no_spread(tmp_path: Path) -> None:
    rows = "".join(f"m{n},{session},4,4\n" for n in range(3) for session in (1, 2))
    found = loaded(tmp_path, FOUR + NAMED, f"{HEADER}\n{rows}").reference
    assert found is not None
    assert (found.value, found.sd, found.kind) == (1.0, None, "declared")


@pytest.mark.parametrize("value", ["240", "-24", "inf", "1e400", "\u0663", "1_0"])
def test_a_value_beyond_the_range_or_that_is_no_number_is_an_error(
    tmp_path: Path, value: str
) -> None:
    keys = (
        FOUR
        + "measures: {latency: steps}\nreference: [{measure: latency, animals: animals.csv, better: lower, "
        "margin: 4, range: [0, 100], status: counted}]\n"
    )
    specification, found = written(
        tmp_path, keys, f"animal,session,value\nm1,1,20\nm1,2,30\nm2,1,{value}\n"
    )
    assert specification is None
    errors = [one for one in found if one.severity == "error"]
    assert {one.code for one in errors} <= {225, 226}
    places = [(Path(one.position.file).name, one.position.line) for one in errors]
    assert places == [("animals.csv", 4)]
