"""Sequential cells against a real server: looks, subjects that are stopped, money, interruptions."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from cheesebench.chat import ModelEntry
from cheesebench.experiment import calling
from cheesebench.experiment.budget import Limits
from cheesebench.experiment.contestants import LanguageModel, language_model, replayed_models
from cheesebench.experiment.designs import find_design, plan_cell
from cheesebench.experiment.language_models import CallOptions, LanguageModels
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.looks import is_finished
from cheesebench.experiment.records import SETTLED, CellPlan, ReferenceValue, looks_until
from cheesebench.experiment.session import RunSession
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import Specification
from cheesebench.statistics import CellResult, Verdict, draw_sample, judge_sample
from cheesebench.statistics.course import CellCourse
from cheesebench.testing.fake_server import Answer, Call, FakeServer

SEED = 5
Cells = dict[CellPlan, Specification]
Reply = Callable[[Call], str]


def hopeless(call: Call) -> str:
    """Turn about, each subject in its own way, and get nowhere."""
    return "".join(random.Random(call.body["seed"]).choices("LRS", k=5))


def middling(call: Call) -> str:
    """Get there in some trials."""
    return "".join(random.Random(call.body["seed"]).choices("FLRS", weights=(1, 2, 2, 2), k=3))


def able(call: Call) -> str:
    """Get there nearly always, by ways of one's own."""
    return "".join(random.Random(call.body["seed"]).choices("FL", weights=(6, 1), k=3))


@pytest.fixture(autouse=True)
def haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calling, "FIRST_PAUSE", 0.01)


def sequential(plan: CellPlan) -> CellPlan:
    """Return the plan with looks; the stranger's protocols have no reference of their own."""
    return replace(plan, reference=ReferenceValue(value=0.8), looks=looks_until(plan.subjects))


class Laboratory:
    def __init__(self, plugins: PluginManager, stranger: ModuleType, results: Path) -> None:
        self.plugins, self.stranger, self.results = plugins, stranger, results

    def model(self, server: FakeServer, **entry: Any) -> LanguageModel:
        named = ModelEntry(name="tiny", backend="openai", id="tiny-1")
        return language_model(self.plugins, replace(named, **entry), agent="talker", base_url=server.base_url)

    def cells(self, model: LanguageModel, names: tuple[str, ...], most: int = 60, trials: int = 6) -> Cells:
        design = find_design("cohort", most)
        plans = [
            (plan_cell(protocol, "tiny", "ascii_2d", design, agent=model.agent.name, settings=model.settings), protocol)
            for protocol in (self.stranger.corridor(name, trials) for name in names)
        ]
        return {sequential(plan): protocol for plan, protocol in plans}

    def session(
        self,
        log: RunLog,
        model: LanguageModel,
        cells: Cells,
        options: CallOptions | None = None,
        source: RunLog | None = None,
        ahead: bool = False,
    ) -> RunSession:
        models = LanguageModels(log, {"tiny": model}, options or CallOptions(concurrency=64), source)
        return RunSession(
            log, self.plugins, cells, seed=SEED, processes=0, language=models, course_of=CellCourse, ahead=ahead
        )

    def run(
        self,
        name: str,
        reply: Reply,
        names: tuple[str, ...] = ("corridor", "hall"),
        options: CallOptions | None = None,
        most: int = 60,
        latency: int | None = None,
        ahead: bool = False,
    ) -> list[str]:
        def script(call: Call) -> Answer:
            # Another order of replies for every number.
            slow = 0.0 if latency is None else random.Random(call.number * 7919 + latency).random() ** 3 / 100
            return Answer(text=reply(call), delay=slow)

        with FakeServer(script) as server:
            model = self.model(server)
            cells = self.cells(model, names, most)
            log_file = self.results / name
            opened = (
                RunLog.open(log_file)
                if log_file.exists()
                else RunLog.create(self.results, name, cells.items(), options={"seed": SEED})
            )
            with opened as log:
                with self.session(log, model, cells, options, ahead=ahead) as session:
                    session.finish()
                return list(log.dump())

    def results_of(self, name: str) -> list[CellResult]:
        with RunLog.open_read_only(self.results / name) as log:
            return [judge_sample(plan, draw_sample(plan, log.trials_by_subject(plan))) for plan in log.plans()]


@pytest.fixture
def laboratory(plugins: PluginManager, stranger: ModuleType, tmp_path: Path) -> Laboratory:
    import talker  # type: ignore[import-not-found]

    plugins.register(SimpleNamespace(cheesebench_model_agents=lambda: [talker.TALKER]), name="talker")
    return Laboratory(plugins, stranger, tmp_path)


def looks(result: CellResult) -> tuple[int, str]:
    assert result.look is not None
    return result.look.subjects, result.look.standing


def test_a_hopeless_model_fails_after_six_subjects_whose_last_trials_are_settled(laboratory: Laboratory) -> None:
    laboratory.run("one", hopeless)
    for result in laboratory.results_of("one"):
        assert (result.verdict, *looks(result)) == (Verdict.FAIL, 6, "FAIL")
        assert result.settled > 0
        assert (result.missing, result.valid + result.settled) == (0, result.planned)
        assert result.flags.truncated
        assert "Stopped at 6 of at most 60 subjects: FAIL." in result.reason
        assert result.outcomes[SETTLED] == result.settled


@pytest.mark.parametrize("reply", [hopeless, middling, able])
def test_who_is_faster_changes_nothing(laboratory: Laboratory, reply: Reply) -> None:
    expected = laboratory.run("one", reply)
    assert laboratory.run("two", reply, latency=1) == expected
    assert laboratory.run("three", reply, latency=2, options=CallOptions(concurrency=3)) == expected
    verdicts = [(result.verdict, looks(result), result.rate) for result in laboratory.results_of("one")]
    assert verdicts == [(result.verdict, looks(result), result.rate) for result in laboratory.results_of("three")]


def test_subjects_that_live_ahead_are_kept_and_do_not_count(laboratory: Laboratory) -> None:
    expected = laboratory.run("one", middling, latency=3)
    laboratory.run("two", middling, latency=3, ahead=True, options=CallOptions(concurrency=64))
    ahead = 0
    for one, two in zip(laboratory.results_of("one"), laboratory.results_of("two"), strict=True):
        assert one.look is not None
        assert two.look is not None
        assert replace(one, look=None, reason="") == replace(two, look=None, reason="")
        assert replace(two.look, beyond=0) == one.look
        ahead += two.look.beyond
    with RunLog.open_read_only(laboratory.results / "two") as log:
        counted = [line for line in log.dump() if line in set(expected)]
    assert counted == expected


@pytest.mark.parametrize("calls", [30, 100])
def test_a_run_that_is_cut_off_in_a_look_is_continued(laboratory: Laboratory, calls: int) -> None:
    """With so few tokens that it ends somewhere in a look, several times over."""
    expected = laboratory.run("one", middling, latency=4)
    for times in range(1, 100):
        options = CallOptions(concurrency=5, limits=Limits(tokens=calls * 60 * times))
        found = laboratory.run("two", middling, latency=times, options=options)
        with RunLog.open_read_only(laboratory.results / "two") as log:
            if all(is_finished(log, plan, CellCourse) for plan in log.plans()):
                break
    verdicts = [(one.verdict, looks(one)) for one in laboratory.results_of("one")]
    assert [(one.verdict, looks(one)) for one in laboratory.results_of("two")] == verdicts
    assert found == expected or "budget" in "".join(found), "only what could not matter is still missing"


def test_a_finished_run_asks_nothing_more(laboratory: Laboratory) -> None:
    expected = laboratory.run("one", hopeless)
    with FakeServer(hopeless) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model, ("corridor", "hall"))
        with RunLog.open(laboratory.results / "one") as log:
            with laboratory.session(log, model, cells) as session:
                session.finish()
            assert list(log.dump()) == expected
        assert server.count == 0


@pytest.mark.parametrize("reply", [hopeless, middling])
def test_a_run_is_replayed_without_a_call(laboratory: Laboratory, reply: Reply) -> None:
    expected = laboratory.run("one", reply, latency=5)
    with RunLog.open_read_only(laboratory.results / "one") as source:
        model = replayed_models(laboratory.plugins, source.plans())["tiny"]
        cells = laboratory.cells(model, ("corridor", "hall"))
        with RunLog.create(laboratory.results, "replay", cells.items(), options={"seed": SEED}) as log:
            with laboratory.session(log, model, cells, source=source) as session:
                session.finish()
            assert list(log.dump()) == expected
            assert log.calls.totals().calls == 0


def test_money_buys_verdicts(laboratory: Laboratory) -> None:
    """With a budget for a part of the cells, those that it reaches are decided, and no other has cost anything."""
    names = tuple(f"corridor{number}" for number in range(6))
    laboratory.run("free", hopeless, names)
    with RunLog.open_read_only(laboratory.results / "free") as log:
        spent = log.calls.totals()
    tokens = spent.prompt + spent.completion
    options = CallOptions(concurrency=64, limits=Limits(tokens=tokens // 2))
    laboratory.run("dear", hopeless, names, options)
    found = laboratory.results_of("dear")
    assert sum(result.verdict is Verdict.FAIL for result in found) >= 2
    with RunLog.open_read_only(laboratory.results / "dear") as log:
        asked = log.calls.by_cell()
    undecided = [result for result in found if result.verdict is Verdict.INCONCLUSIVE]
    assert sum(result.plan.key in asked for result in undecided) <= 2


def test_a_broken_server_is_an_error_and_the_look_goes_on_when_it_is_back(laboratory: Laboratory) -> None:
    expected = laboratory.run("one", middling)
    with FakeServer(lambda call: middling(call) if call.number < 60 else Answer(status=401)) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model, ("corridor", "hall"))
        with (
            RunLog.create(laboratory.results, "two", cells.items(), options={"seed": SEED}) as log,
            laboratory.session(log, model, cells) as session,
        ):
            session.finish()
    assert Verdict.ERROR in {result.verdict for result in laboratory.results_of("two")}
    assert laboratory.run("two", middling) == expected


def test_agents_that_act_by_themselves_live_whole_lives(laboratory: Laboratory, stranger: ModuleType) -> None:
    protocol = stranger.corridor()
    plan = sequential(plan_cell(protocol, "walker", "ascii_2d", find_design("cohort", 60)))
    dumps = []
    for number, processes in enumerate((0, 2)):
        with RunLog.create(laboratory.results, f"r{number}", [(plan, protocol)], options={"seed": SEED}) as log:
            with RunSession(
                log, laboratory.plugins, {plan: protocol}, seed=SEED, processes=processes, course_of=CellCourse
            ) as session:
                session.finish()
                progress = session.progress(plan)
            dumps.append(list(log.dump()))
            result = judge_sample(plan, draw_sample(plan, log.trials_by_subject(plan)))
            assert result.look is not None
            assert (progress.look, progress.most) == (result.look.subjects, 60)
            assert len(log.completed_subjects(plan)) == result.look.subjects
            assert result.settled == 0
    assert dumps[0] == dumps[1]
