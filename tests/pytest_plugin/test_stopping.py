"""``-x`` with a model that costs money: after the first failure nothing
more is sent.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from cheesebench.testing.fake_server import Call, FakeServer
from tests.pytest_plugin.conftest import corridor
from tests.pytest_plugin.test_models import walk

SUBJECTS, TRIALS = 20, 60


def script(call: Call) -> str:
    """One model stays in place, for the five actions of a trial; the
    other one walks.
    """
    return (
        "ACTIONS: STAY, STAY, STAY, STAY, STAY"
        if call.body["model"] == "statue"
        else walk(call)
    )


@dataclass
class Witness:
    """A pytest plugin that reads the server's count when the first
    failure is reported.
    """

    server: FakeServer
    arrived: int = 0
    in_flight: int = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.arrived:
            self.arrived, self.in_flight = self.server.count, self.server.in_flight


@pytest.mark.parametrize(
    "workers",
    [(), pytest.param(("-n2",), marks=pytest.mark.slow)],
    ids=["one process", "two workers"],
)
def test_after_the_first_failure_nothing_more_is_sent(
    project: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    lab = project.path / "lab"
    (lab / "long.protocol.yaml").write_text(
        corridor("long", trials=TRIALS), encoding="utf-8"
    )
    (lab / "short.protocol.yaml").write_text(
        corridor("short", reference=0.9, trials=2), encoding="utf-8"
    )
    # Each reply takes long enough for all subjects to have a request in flight.
    with FakeServer(script, latency=0.3) as server:
        witness = Witness(server)
        result = project.runpytest_inprocess(
            *(
                "--model",
                "openai/walker,openai/statue",
                "--base-url",
                server.base_url,
                f"--subjects={SUBJECTS}",
            ),
            *(
                "-x",
                "-k",
                "(long and walker) or (short and statue)",
                "lab",
                "--cheese-run-id=one",
                *workers,
            ),
            plugins=[witness],
        )
        result.assert_outcomes(failed=1, deselected=0 if workers else 8)
        result.stdout.fnmatch_lines(
            [
                "*short[[]ascii_2d-openai/statue[]]*",
                "1 of 2 protocols is unfinished*",
                "*--resume one",
            ]
        )
        sent = [call.body["model"] for call in server.calls]
    assert sent.count("statue") == 2 * SUBJECTS
    assert sent.count("walker") < TRIALS * SUBJECTS / 2
    if not workers:  # workers learn of another's failure a moment later
        assert server.count - witness.arrived + witness.in_flight <= SUBJECTS, (
            "a subject has sent two requests since"
        )
    assert server.given_up == 0, "what is paid for is waited for"
    assert not list((project.path / "results/one").glob("halt"))
