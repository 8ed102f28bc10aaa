"""Cells that were given up because no reply could be read, and cells that a budget cut
off before that: what is asked once more when they are resumed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cheesebench.cli import main
from cheesebench.experiment.log import RunLog
from cheesebench.testing.fake_server import Call, FakeServer
from cheesebench.verification import verify

MUTE, NAMED = "I would rather not.", "ACTIONS: FORWARD, FORWARD"
#: In what is said of a cell without a reply that names an action.
ANEW = "it asks anew where no reply named an action"


class Says:
    """A server's script, whose answer can be mended."""

    def __init__(self, text: str = MUTE) -> None:
        self.text = text

    def __call__(self, call: Call) -> str:
        return self.text


def ran(project: pytest.Pytester, url: str, *options: str) -> tuple[int, str]:
    result = project.runpytest_inprocess(
        *("--model=openai/tiny", f"--base-url={url}", "--concurrency=2", "-q"),
        *options,
    )
    lines = result.outlines + result.errlines
    return int(result.ret), " ".join(" ".join(lines).split())


@pytest.fixture
def few(project: pytest.Pytester) -> str:
    return "lab/few.protocol.yaml"


@pytest.mark.parametrize(
    ("reply", "cell"),
    [(MUTE, ()), ("", ()), ("", ("--subjects=1",)), (MUTE, ("--design=smoke",))],
    ids=["prose", "empty", "one subject", "smoke"],
)
def test_what_was_given_up_is_begun_anew(
    project: pytest.Pytester,
    few: str,
    capsys: pytest.CaptureFixture[str],
    reply: str,
    cell: tuple[str, ...],
) -> None:
    """Nothing was measured, so a job that is run again measures, once its server is
    mended. What was asked before stays in the log, and in the cost.
    """
    says = Says(reply)
    with FakeServer(says) as server:
        first = ran(project, server.base_url, "--cheese-run-id=one", few, *cell)
        assert (first[0], ANEW in first[1]) == (1, True), first[1]
        asked = server.count
        assert asked <= 20, "a dozen, and those in flight"
        capsys.readouterr()
        assert main(["bless", "one", "main"]) == 2
        assert "--resume one" in capsys.readouterr().err
        # As long as the server is broken, it is found to be so once more.
        again = ran(project, server.base_url, "--resume=one", few, *cell)
        assert (again[0], ANEW in again[1]) == (1, True)
        assert server.count > asked
        asked, says.text = server.count, NAMED
        code, said = ran(project, server.base_url, "--resume=one", few, *cell)
        assert (code, ANEW in said) == (0, False), said
        assert f"begun anew 2 times: none of {asked} earlier replies named an" in said
        # What is measured is not drawn again.
        asked = server.count
        assert ran(project, server.base_url, "--resume=one", few, *cell)[0] == 0
        assert server.count == asked
    with RunLog.open_read_only(Path("results/one")) as log:
        assert log.calls.totals().attempts == asked, "nothing is forgotten"
        assert "Verified" in verify(log)
        [plan] = log.plans()
        assert not any(one.missing for one in log.trials(plan))


def test_a_cell_with_a_reply_that_was_read_is_not_begun_anew(
    project: pytest.Pytester, few: str
) -> None:
    with FakeServer(lambda call: NAMED if call.number == 3 else MUTE) as server:
        ran(project, server.base_url, "--cheese-run-id=one", few)
        asked = server.count
        ran(project, server.base_url, "--resume=one", few)
        assert server.count == asked


@pytest.mark.parametrize("mended", [False, True])
def test_what_a_budget_cut_off_before_it_was_given_up_is_continued(
    project: pytest.Pytester, few: str, mended: bool
) -> None:
    says = Says()
    with FakeServer(says) as server:
        first = ("--cheese-run-id=one", "--max-tokens=1500", few)
        code, said = ran(project, server.base_url, *first)
        assert (code, ANEW in said, "No reply named an action" in said) == (
            1,
            False,
            True,
        )
        assert (
            "unfinished; finished trials are kept. To continue, with a larger" in said
        )
        asked = server.count
        assert 0 < asked < 12
        says.text = NAMED if mended else MUTE
        code, said = ran(project, server.base_url, "--resume=one", few)
        assert (ANEW in said, "could not be measured" in said) == (not mended,) * 2
        assert server.count > asked
    with RunLog.open_read_only(Path("results/one")) as log:
        assert log.calls.totals().attempts == server.count, "nothing is paid twice"


def test_a_merged_run_begins_anew_where_a_part_was_given_up(
    project: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    says, lab = Says(), ("lab/few.protocol.yaml", "lab/west.protocol.yaml")
    with FakeServer(says) as server:
        for part, says.text in ((1, MUTE), (1, MUTE), (2, NAMED)):
            how = "--resume" if Path(f"results/part-{part}").exists() else "--run-id"
            shard = f"--shard={part}/2", f"{how}=part-{part}", "--seed=0"
            ran(project, server.base_url, *shard, *lab)
        capsys.readouterr()
        assert main(["merge", "part-1", "part-2", "--run-id", "all"]) == 1
        assert "Unfinished: 1 cell: west" in capsys.readouterr().err
        asked = server.count
        with RunLog.open_read_only(Path("results/all")) as log:
            assert log.calls.totals().attempts == asked
        code, said = ran(project, server.base_url, "--resume=all", *lab)
        assert (code, "begun anew 2 times" in said) == (0, True), said
        assert server.count > asked
    assert main(["compare", "all", "part-2"]) == 0


class FallsSilent:
    """A server's script whose first replies name actions, and whose later ones are
    empty.
    """

    def __init__(self, spoken: int) -> None:
        self.left = spoken

    def __call__(self, call: Call) -> str:
        self.left -= 1
        return NAMED if self.left >= 0 else ""


def test_subjects_that_only_empty_replies_stopped_are_not_continued(
    project: pytest.Pytester,
) -> None:
    with FakeServer(FallsSilent(4)) as server:
        options = ("--protocols=t_maze", "--design=cohort", "--subjects=2")
        code, said = ran(project, server.base_url, *options)
    assert (code, "empty replies in a row" in said) == (1, True), said
    assert "this one keeps its empty replies" in said
    assert "To continue" not in said
