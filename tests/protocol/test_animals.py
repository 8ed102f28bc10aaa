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
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cheesebench.interfaces import RUNNING, STAY, AuditSettings
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.runs import DARKNESS
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.protocol import Catalogue, load_protocol, with_arena
from cheesebench.protocol.csv_files import COLUMNS, MEASURED, row_of
from tests.arenas import examine, examine_text
from tests.protocol.animals import (
    FOUR,
    HEADER,
    LATENCY,
    NAMED,
    TWO_MICE,
    found_in,
    loaded,
    written,
)

SHIPPED = Path(__file__).parents[2] / "protocols"


def test_the_resolved_text_needs_no_file(tmp_path: Path) -> None:
    specification = loaded(tmp_path, FOUR + NAMED, TWO_MICE)
    (again, found) = examine_text(specification.text, "elsewhere.yaml")
    assert again is not None, found
    assert again.references == specification.references
    assert again.sha256 == specification.sha256


@pytest.mark.parametrize(
    ("rows", "icc"),
    [
        ("m1,1,4,4\nm2,1,4,0\n", 1.0),
        # Three of four and one of four: as in the test of ``clustering`` by hand.
        ("m1,1,2,2\nm1,2,2,1\nm2,1,2,1\nm2,2,2,0\n", 0.2),
        ("m1,1,4,2\nm2,1,4,2\n", 0.0),
        ("m1,1,4,4\nm2,1,4,4\n", None),
        ("m1,1,4,2\n", None),
        ("m1,1,1,1\nm2,1,1,0\n", None),
    ],
)
def test_the_clustering_of_animals_is_that_of_their_rows(
    tmp_path: Path, rows: str, icc: float | None
) -> None:
    found = loaded(tmp_path, FOUR + NAMED, f"{HEADER}\n{rows}").animals_icc
    assert found == (icc if icc is None else pytest.approx(icc))


def test_without_rows_of_a_rate_no_clustering_is_known(tmp_path: Path) -> None:
    for keys, rows in (
        (FOUR + LATENCY, f"{','.join(MEASURED)}\nm1,1,4\nm2,1,8\nm1,2,2\nm2,2,3\n"),
        (FOUR + "reference: [{measure: success, value: 0.7, status: x}]\n", ""),
        (FOUR, ""),
    ):
        assert loaded(tmp_path, keys.replace(FOUR * 2, FOUR), rows).animals_icc is None


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
    told = [
        one for one in found if "below 0, as no value under 'counts'" in one.sentence
    ]
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
        (
            f"{HEADER}\nm,1,2000000,1\n",
            "'m,1,2000000,1' is not a valid row: '2000000' (trials) is above 1000000.",
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


@pytest.mark.parametrize(
    ("csv", "where", "said"),
    [
        (
            f"{HEADER}\nm,1,4,1\n",
            "1:1",
            "The first line must name the columns: animal,session,value (here: animal,session,trials,passed).",
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
            "'counts' says which trials of 'animals' are a success.",
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
    pooled = found_in(tmp_path, FOUR + NAMED, GROUPED)
    assert [code for code, text in pooled if "knock-out, control" in text] == [332]
    only = NAMED.replace("animals.csv,", "animals.csv, only: {group: control},")
    found = loaded(tmp_path, FOUR + only, GROUPED).reference
    assert found is not None
    assert (found.value, found.n_animals) == (0.75, 2)
    assert 332 not in [code for code, _ in found_in(tmp_path, FOUR + only, GROUPED)]
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
        found = found_in(tmp_path, FOUR + only, rows)
        said = f"'{other}' and 'control' are two groups (group)"
        assert [code for code, text in found if said in text] == [332]


def test_one_mistake_in_all_rows_is_one_finding(tmp_path: Path) -> None:
    rows = "".join(f"m{n},1,8,0.{n}\n" for n in range(1, 9)) + "m9,0,8,1\n"
    found = found_in(tmp_path, FOUR + NAMED, f"{HEADER}\n{rows}")
    assert [text for _, text in found] == [
        "'m1,1,8,0.1' is not a valid row: '0.1' (passed) is a share, not a whole number, and 7 more are like it.",
        "'m9,0,8,1' is not a valid row: '0' (session) is below 1.",
    ]


def test_a_table_with_percentages_alone_is_told_what_it_lacks(tmp_path: Path) -> None:
    table = "animal,session,pct_correct\nm1,1,80\n"
    found = written(tmp_path, FOUR + NAMED, table)[1]
    assert "'pct_correct' does not say of how many trials" in found[0].remedy
    whole = written(tmp_path, FOUR + NAMED, "rat,day,n,correct\nm1,1,10,8\n")[1]
    assert whole[0].remedy == (
        "The first line must name the columns: animal,session,trials,passed (here: rat,day,n,correct)."
    )


def test_a_margin_in_percent_is_told_as_a_share(tmp_path: Path) -> None:
    text = f"margin: 10 %\n{FOUR}{NAMED}"
    found = written(tmp_path, text, f"{HEADER}\nm1,1,10,8\n")[1]
    assert found[0].remedy == "Write 0.1 for 10 %."


@pytest.mark.parametrize(
    ("csv", "said"),
    [
        ("animal session trials passed\nm 1 4 1\n", "by commas, not by blanks."),
        ("Animal,Session,Trials,Passed\nm,1,4,1\n", "Write the names in lower case"),
        ("beast,session,trials,passed\nm,1,4,1\n", "(here: beast,session,"),
        (f"{HEADER}\n{'m' * 201},1,4,1\n", "(animal) has more than"),
        (f"{HEADER}\nm\x07,1,4,1\n", "another character that cannot be printed"),
    ],
)
def test_columns_and_names_that_are_odd(csv: str, said: str, tmp_path: Path) -> None:
    assert said in str(written(tmp_path, FOUR + NAMED, csv)[1][0])


def test_values_of_two_columns_that_no_row_has_together(tmp_path: Path) -> None:
    only = "only: {group: control, sex: F}"
    keys = FOUR + NAMED.replace("status", f"{only}, status")
    rows = f"{HEADER},group,sex\na,1,4,1,control,M\nb,1,4,1,other,F\n"
    _, [found] = written(tmp_path, keys, rows)
    assert "no row has group: control, sex: F together." in str(found)


def slips_in(folder: Path, keys: str, csv: str) -> list[str]:
    return [text for code, text in found_in(folder, keys, csv) if code == 332]


def test_a_slip_in_a_row_of_animals_is_told(tmp_path: Path) -> None:
    rows = [[f"m{n},1,{n},2", f"m{n},2,4,3"] for n in range(4, 10)]
    sound = "\n".join([HEADER, *chain.from_iterable(rows)]) + "\n"
    assert slips_in(tmp_path, FOUR + NAMED, sound) == []
    slip = sound.replace("m9,1,9", "m9,1,90")
    assert slips_in(tmp_path, FOUR + NAMED, slip) == [
        "'m9' has 90 trials in session 1, and the others have 4 to 8."
    ]
    places = [str(one) for one in written(tmp_path, FOUR + NAMED, slip)[1]]
    assert any("animals.csv:12:4: warning W332: 'm9' has 90" in one for one in places)
    # An animal may stop early, and a few rows show nothing.
    early = f"{sound}m3,1,1,1\nm3,2,4,1\n"
    assert slips_in(tmp_path, FOUR + NAMED, early) == []
    few = f"{HEADER}\nm1,1,9,2\nm2,1,9,3\nm3,1,90,3\n"
    assert slips_in(tmp_path, FOUR + NAMED, few) == []


def test_a_value_far_from_all_others_is_told(tmp_path: Path) -> None:
    values = [0.78, 0.8, 0.83, 0.86, 0.9, 0.95, 0.84, 0.88, 0.82]
    rows = "".join(f"m{n},{s},{one}\n" for n, one in enumerate(values) for s in (1, 2))
    sound = f"{','.join(MEASURED)}\n{rows}"
    assert slips_in(tmp_path, LATENCY, sound) == []
    slips = sound.replace("m3,2,0.86", "m3,2,0.0086")
    said = "'m3' has 0.0086 as 'latency' in session 2, and the others have 0.78 to 0.95"
    assert slips_in(tmp_path, LATENCY, slips) == [f"{said}."]
    slips = slips.replace("m4,2,0.9", "m4,2,90")
    assert slips_in(tmp_path, LATENCY, slips) == [f"{said}; 1 more row is as odd."]
    # One animal does not learn, and one is fast by chance.
    slow = sound.replace("m3,2,0.86", "m3,2,9").replace("m1,1,0.8", "m1,1,0.08")
    assert slips_in(tmp_path, LATENCY, slow) == []
