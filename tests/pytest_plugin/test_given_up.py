"""Cells that were given up because no reply could be read, and cells that a budget cut
off before that: what is asked once more when they are resumed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cheesebench.cli import main
from cheesebench.experiment.log import RunLog
from cheesebench.testing.fake_server import Call, FakeServer

MUTE, NAMED = "I would rather not.", "ACTIONS: FORWARD, FORWARD"
#: The end of what is said of a cell that is over.
FINAL = "Neither --resume nor a job that is run again would ask the model again"


class Says:
    """A server's script, whose answer can be mended."""

    def __init__(self) -> None:
        self.text = MUTE

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


def test_what_was_given_up_asks_nothing_anew(
    project: pytest.Pytester, few: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not even the question that a session begins with: its reply would be one more,
    which another model may have given.
    """
    says = Says()
    with FakeServer(says) as server:
        assert FINAL in ran(project, server.base_url, "--cheese-run-id=one", few)[1]
        asked, says.text = server.count, NAMED
        for more in ("--max-tokens=9000000", "--retry-errors"):
            code, said = ran(project, server.base_url, "--resume=one", more, few)
            assert (code, FINAL in said, "To continue" in said) == (1, True, False)
        assert server.count == asked
    # It does not enter a page of several runs, where its mean would be over the others.
    project.runpytest_inprocess("--model=walker", "--cheese-run-id=two", few)
    capsys.readouterr()
    assert main(["report", "one", "two", "--html", "page.html"]) == 2
    assert "(openai/tiny) was given up. Leave the run out." in capsys.readouterr().err
    # It cannot be finished, so this is not the remedy.
    assert main(["bless", "one", "main"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert (
        "--resume one would not run the missing trials again, because the run" in told
    )
    # Its server is not needed any more.
    code, said = ran(project, server.base_url, "--resume=one", few)
    assert (code, FINAL in said) == (1, True)
    with RunLog.open_read_only(Path("results/one")) as log:
        assert log.calls.totals().attempts == asked
        assert {one.missing for one in log.trials()} <= {"infrastructure", ""}


@pytest.mark.parametrize("mended", [False, True])
def test_what_a_budget_cut_off_before_it_was_given_up_is_continued(
    project: pytest.Pytester, few: str, mended: bool
) -> None:
    says = Says()
    with FakeServer(says) as server:
        first = ("--cheese-run-id=one", "--max-tokens=1500", few)
        code, said = ran(project, server.base_url, *first)
        assert (code, FINAL in said, "No reply named an action" in said) == (
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
        assert (FINAL in said, "could not be measured" in said) == (not mended,) * 2
        assert server.count > asked
    with RunLog.open_read_only(Path("results/one")) as log:
        assert log.calls.totals().attempts == server.count, "nothing is paid twice"


def test_a_merged_run_has_nothing_to_continue_where_a_part_was_given_up(
    project: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    says, lab = Says(), ("lab/few.protocol.yaml", "lab/west.protocol.yaml")
    with FakeServer(says) as server:
        for part, says.text in ((1, MUTE), (2, NAMED)):
            shard = f"--shard={part}/2", f"--cheese-run-id=part-{part}", "--seed=0"
            ran(project, server.base_url, *shard, *lab)
        capsys.readouterr()
        assert main(["merge", "part-1", "part-2", "--run-id", "all"]) == 0
        assert "Unfinished" not in capsys.readouterr().err
        asked, says.text = server.count, NAMED
        code, said = ran(project, server.base_url, "--resume=all", *lab)
        assert (code, FINAL in said, server.count) == (1, True, asked)
    assert main(["compare", "all", "part-2"]) == 0
