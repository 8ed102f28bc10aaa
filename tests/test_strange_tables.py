"""One reader reads animals, verdicts and draws: what one of them reads, all read, and
what one refuses, all refuse at the same line and column.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cheesebench.errors import CheeseBenchError
from cheesebench.interop.scores import read_scores
from tests.arenas import examine
from tests.protocol import animals, test_csv_tables

#: By reader: the names of three columns, and two rows.
TABLES = {
    "animals": ("animal,session,trials,passed", "m1,1,4,1", "m1,2,4,3"),
    "scores": ("subject,item,score,model", "s1,1,1,m", "s1,2,0,m"),
    "draws": ("food,wait,glyph,part", "left,9,o,easy", "right,12,o,hard"),
}


def outcome(reader: str, content: bytes, folder: Path) -> str:
    """Return what a reader makes of a table or, after "refused", where and why it
    refuses it.
    """
    if reader == "scores":
        path = folder / "t.csv"
        path.write_bytes(content)
        try:
            [items] = read_scores(path).tasks.values()
        except CheeseBenchError as error:
            return f"refused {str(error).partition('t.csv:')[2]}"
        return repr([dict(items.index), *(one.tolist() for one in items.sums())])
    if reader == "draws":
        path = folder / "choice.protocol.yaml"
        path.write_text(test_csv_tables.PROTOCOL, encoding="utf-8")
        (folder / "trials.csv").write_bytes(content)
        specification, found = examine(path)
        if specification is not None:
            return repr(specification.draws)
    else:
        keys = animals.FOUR + animals.NAMED
        specification, found = animals.written(folder, keys, content)
        if specification is not None:
            return repr(specification.reference)
    [one] = [one for one in found if one.severity == "error"]
    return f"refused {one.position.line}:{one.position.column}: {one.sentence} {one.remedy}"


READ = {
    "a comma at each end": "{0},\n{1},\n{2},\n",
    "commas behind the header": "{0},,\n{1}\n{2}\n",
    "the index of pandas": ",{0}\n0,{1}\n1,{2}\n",
    "two marks of byte order": "\ufeff\ufeff{0}\n{1}\n{2}\n",
    "invisible blanks": "{0}\u200b\n\u2060{1}\u00ad\n\xa0{2}\n",
    "CR alone": "{0}\r{1}\r{2}\r",
    "rows without content": "\n,,\n{0}\n\xa0,\n{1}\n,,,\n{2}\n,,,,\n",
}


@pytest.mark.parametrize("reader", TABLES)
@pytest.mark.parametrize("form", READ.values(), ids=list(READ))
def test_what_one_reads_all_read(reader: str, form: str, tmp_path: Path) -> None:
    table = TABLES[reader]
    usual = outcome(reader, "\n".join(table).encode(), tmp_path)
    assert not usual.startswith("refused")
    assert outcome(reader, form.format(*table).encode(), tmp_path) == usual


REFUSED = {
    "UTF-16": ("{0}\n{1}\n", "utf-16", "1:1: The file is not text in UTF-8"),
    "UTF-16, no mark": ("{0}\n{1}\n", "utf-16-le", "1:1: The file is not text"),
    "Latin-1": ("{0}\n{1}\n\xfc", "latin-1", "3:1: The file is not text in UTF-8"),
    "NUL": ("{0}\n{1}\n,,\0", "utf-8", "3:3: The file is not text in UTF-8"),
    "bars": ("a|b\n1|2\n", "utf-8", "1:1: The first line names only one column. Separate the cells by commas, not by bars."),
    "decimal commas under an empty name": ("{0},\n{1},5\n", "utf-8", "2:5: The row has 5 cells"),
    "a nameless column": ("a,,b\n1,7,2\n", "utf-8", "2:2: The cell '7' is in a column without a name. Name the column"),
    "semicolons in a row": ("{0}\na;b\n", "utf-8", "2:2: The row has 1 cell, but the first line names 4 columns: 'a;b'."),
    "a comment": ("{0}\n# day 1\n{1}\n", "utf-8", "2:2: The row has 1 cell, but the first line names 4 columns: '# day 1'."),
    "an open quote": ('{0}\n{1}\na,1,"b,1\n', "utf-8", "3:3: This is not valid CSV: a quote is never closed, in '\"b,1"),
    "a stray quote": ('{0}\n"a"b,1,1,1\n', "utf-8", "2:1: This is not valid CSV: there is text after a closing quote"),
    "names in two spellings": ("{0},b,B\n{1},1,1\n", "utf-8", "1:6: The columns 'b' and 'B' differ only in capitals."),
    "no rows": ("{0}\n,,,\n", "utf-8", "1:1: The file has no rows."),
}  # fmt: skip


@pytest.mark.parametrize("reader", TABLES)
@pytest.mark.parametrize("case", REFUSED)
def test_what_one_refuses_all_refuse_at_the_same_place(
    reader: str, case: str, tmp_path: Path
) -> None:
    form, encoding, said = REFUSED[case]
    header, row, _ = TABLES[reader]
    if case == "a nameless column":
        names, cells = header.split(","), row.split(",")
        form = (
            f"{names[0]},,{','.join(names[1:])}\n{cells[0]},7,{','.join(cells[1:])}\n"
        )
    content = form.format(*TABLES[reader]).encode(encoding)
    assert outcome(reader, content, tmp_path).startswith(f"refused {said}")
