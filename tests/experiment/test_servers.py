"""Several servers for one model: real processes of different speed, some of which
die.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from cheesebench.chat import ChatFaultError, FaultKind, ModelEntry
from cheesebench.experiment import calling
from cheesebench.experiment.calling import (
    Limiter,
    ModelServer,
    Patience,
    ServerPool,
    Stay,
    each_address,
    server_name,
)
from cheesebench.experiment.cells import find_design, language_model, plan_cell
from cheesebench.experiment.language_models import (
    CallOptions,
    LanguageModels,
    UnreachableModelError,
    probe,
)
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.session import RunSession
from cheesebench.family import LanguageModel
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import Specification
from cheesebench.records import CellPlan
from cheesebench.testing.fake_server import Answer, Call, FakeServer
from tests.experiment.server_process import walk

SEED, SUBJECTS = 5, 18
ENTRY = ModelEntry(name="tiny", backend="openai", id="tiny-1")
HASTE = CallOptions(concurrency=4, patience=Patience(request=5.0, retries=2))

Cells = dict[CellPlan, Specification]


@dataclass
class Process:
    """A server as a process."""

    notes: Path
    latency: float
    port: int = 0
    base_url: str = ""
    _process: subprocess.Popen[str] | None = None

    def start(self) -> Process:
        arguments = (str(self.notes), str(self.latency), str(self.port))
        command = [sys.executable, "-m", "tests.experiment.server_process", *arguments]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.base_url = self._process.stdout.readline().strip()
        self.port = int(self.base_url.rpartition(":")[2].removesuffix("/v1"))
        return self

    def kill(self) -> None:
        """End it at once, if it still runs."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def seeds(self, what: str) -> Counter[str]:
        lines = (
            self.notes.read_text(encoding="utf-8").splitlines()
            if self.notes.exists()
            else []
        )
        return Counter(line.split()[1] for line in lines if line.startswith(what))


@dataclass
class Place:
    """Runs a model's cells with one subject more than divides evenly among few
    servers.
    """

    plugins: PluginManager
    stranger: ModuleType
    results: Path
    options: CallOptions = HASTE
    news: list[str] = field(default_factory=list)
    pools: list[ServerPool] = field(default_factory=list)

    def model(self, *urls: str) -> LanguageModel:
        return language_model(self.plugins, ENTRY, agent="talker", base_url=urls)

    def run(
        self,
        name: str,
        *urls: str,
        meanwhile: Callable[[RunLog], None] = lambda log: None,
    ) -> list[Any]:
        """Run or resume the run; return its trials and calls, without what depends on
        the time.
        """
        model = self.model(*urls)
        design = find_design("cohort", SUBJECTS)
        cells = {
            plan_cell(
                paradigm,
                "tiny",
                "ascii_2d",
                design,
                agent="talker",
                settings=model.settings,
            ): paradigm
            for paradigm in map(self.stranger.corridor, ("corridor", "hall"))
        }
        path = self.results / name
        log = (
            RunLog.open(path)
            if path.exists()
            else RunLog.create(self.results, name, cells.items(), options={})
        )
        with log:
            language = LanguageModels(log, {"tiny": model}, self.options)
            with RunSession(
                log, self.plugins, cells, seed=SEED, processes=0, language=language
            ) as session:
                session.start()
                meanwhile(log)
                session.finish()
                self.pools.append(language.channel("tiny").pool)
            self.news += language.news()
            columns = "protocol, subject, trial, call, digest, asked, reply, fault"
            return [
                *log.dump(),
                *log.select(f"SELECT {columns} FROM calls ORDER BY 1, 2, 3, 4"),
            ]


@pytest.fixture
def place(
    plugins: PluginManager,
    stranger: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Place:
    import talker  # type: ignore[import-not-found]

    monkeypatch.setattr(calling, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(calling, "FIRST_ABSENCE", 0.05)
    plugins.register(
        SimpleNamespace(cheesebench_model_agents=lambda: [talker.TALKER]), name="talker"
    )
    return Place(plugins, stranger, tmp_path)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[list[Process]]:
    """Three servers of different speed."""
    found = [
        Process(tmp_path / f"notes-{n}", latency)
        for n, latency in enumerate((0.002, 0.02, 0.008))
    ]
    try:
        for process in found:
            process.start()
        yield found
    finally:
        for process in found:
            process.kill()


@pytest.fixture
def undisturbed(place: Place) -> list[Any]:
    with FakeServer(walk) as server:
        return place.run("undisturbed", server.base_url)


def urls(processes: list[Process]) -> list[str]:
    return [process.base_url for process in processes]


def within_a_tenth(numbers: list[int]) -> bool:
    even = sum(numbers) / len(numbers)
    return all(abs(number - even) <= 0.1 * even for number in numbers)


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "this never happened"
        time.sleep(0.005)


def test_a_call_that_is_tried_again_is_told_once_a_minute() -> None:
    told: list[tuple[str, str]] = []
    pool = ServerPool([], lambda kind, line: told.append((kind, line)))
    pool.retrying("server: HTTP 500", 1, 6, 1.0)
    assert told == [], "nobody would notice"
    pool.retrying("server: HTTP 500", 2, 6, 20.4)
    pool.retrying("server: HTTP 500", 3, 6, 40.0)
    pool.retrying("rate limit: HTTP 429", 3, None, 40.0)
    assert told == [("retry", "server: HTTP 500; retry 2 of 6 in 20 s")]


def test_servers_of_different_speed_share_the_subjects_evenly(
    place: Place, processes: list[Process], undisturbed: list[Any]
) -> None:
    assert place.run("three", *urls(processes)) == undisturbed
    [pool] = place.pools[1:]
    assert [server.subjects for server in pool.servers] == [2 * SUBJECTS // 3] * 3
    answered = [process.seeds("answered") for process in processes]
    assert within_a_tenth([counts.total() for counts in answered])
    assert max(sum(answered, Counter()).values()) == 1, "nothing was asked twice"
    with RunLog.open_read_only(place.results / "three") as log:
        [load] = [entry.text for entry in log.journal(kind="server")]
    assert all(server_name(url) in load for url in urls(processes))


def test_the_subjects_of_a_server_that_is_killed_go_on_with_the_others(
    place: Place, processes: list[Process], undisturbed: list[Any]
) -> None:
    first, victim, last = processes

    def kill(log: RunLog) -> None:
        wait_for(lambda: victim.seeds("answered").total() >= 20)
        victim.kill()

    assert place.run("killed", *urls(processes), meanwhile=kill) == undisturbed
    answered = [process.seeds("answered") for process in processes]
    everything = sum(answered, Counter[str]())
    with RunLog.open_read_only(place.results / "killed") as log:
        totals = log.calls.totals()
        assert len(everything) == totals.calls, "none is lost"
        twice = {seed for seed, times in everything.items() if times > 1}
        # What it was asked and the driver had no reply to: those in flight when it
        # died, and no others.
        assert len(twice) <= HASTE.concurrency
        again = log.select("SELECT count(*) FROM calls WHERE attempts > 1")[0][0]
        assert len(twice) <= again
    assert twice <= victim.seeds("asked").keys()
    # Each of the others has its own third and half of what was left of the victim's.
    assert within_a_tenth(
        [first.seeds("answered").total(), last.seeds("answered").total()]
    )
    [line] = [line for line in place.news if "does not answer any more" in line]
    assert server_name(victim.base_url) in line
    assert "with the other 2" in line


def test_a_server_that_comes_back_has_its_subjects_again(
    place: Place, undisturbed: list[Any]
) -> None:
    counts: list[int] = []
    with FakeServer(walk) as victim, FakeServer(walk) as other:

        def restart(log: RunLog) -> None:
            wait_for(lambda: victim.count >= 10)
            other.latency = 0.05  # so that there is something left to do
            victim.stop()
            wait_for(lambda: log.journal(kind="server"))
            counts.append(victim.count)
            victim.start()
            wait_for(lambda: len(log.journal(kind="server")) > 1)
            other.latency = 0.0

        assert (
            place.run("back", victim.base_url, other.base_url, meanwhile=restart)
            == undisturbed
        )
        assert victim.count > counts[0] + 10
    assert place.news[1] == f"{server_name(victim.base_url)} answers again."
    assert all(server.guests == 0 for server in place.pools[-1].servers)


def test_when_all_have_died_the_error_says_so_and_the_run_goes_on_with_other_servers(
    place: Place,
    processes: list[Process],
    undisturbed: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calling, "LOADING", 2.0)

    def kill(log: RunLog) -> None:
        wait_for(
            lambda: (
                sum(process.seeds("answered").total() for process in processes) >= 40
            )
        )
        for process in processes:
            process.kill()

    assert place.run("all", *urls(processes), meanwhile=kill) != undisturbed
    before = sum((process.seeds("answered") for process in processes), Counter[str]())
    with RunLog.open_read_only(place.results / "all") as log:
        causes = [entry.text for entry in log.journal(kind="error")]
        recorded = log.calls.totals().calls
    assert causes
    for cause in causes:
        assert (
            "none of the 3 servers answers; the last one said: connection: http://127.0.0.1:"
            in cause
        )
    with FakeServer(walk) as other, FakeServer(walk) as another:
        assert place.run("all", other.base_url, another.base_url) == undisturbed
        with RunLog.open_read_only(place.results / "all") as log:
            assert other.count + another.count == log.calls.totals().calls - recorded
        seeds = {str(call.body["seed"]) for call in (*other.calls, *another.calls)}
        assert len(seeds & before.keys()) <= 3 * HASTE.concurrency, (
            "only what was in flight is asked again"
        )
        assert abs(other.count - another.count) <= 0.1 * (other.count + another.count)


def test_even_without_retries_a_death_costs_nobody_anything(
    place: Place, processes: list[Process], undisturbed: list[Any]
) -> None:
    place.options = CallOptions(
        concurrency=4, patience=Patience(request=5.0, retries=0)
    )

    def kill(log: RunLog) -> None:
        wait_for(lambda: processes[0].seeds("answered").total() >= 20)
        processes[0].kill()

    assert place.run("strict", *urls(processes), meanwhile=kill) == undisturbed


MISHAPS: dict[str, Answer] = {
    "hangs": Answer(fault="hang"),
    "breaks": Answer(status=500),
    "refuses the key": Answer(status=401),
    "has another model": Answer(status=404, error={"code": "model_not_found"}),
    "has no credit left": Answer(status=402),
    "speaks no HTTP": Answer(fault="noise"),
    "only refuses": Answer(status=503),
}


@pytest.mark.parametrize("mishap", MISHAPS.values(), ids=list(MISHAPS))
def test_a_server_that_does_this_from_some_call_on_is_done_without(
    place: Place,
    undisturbed: list[Any],
    mishap: Answer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calling, "REFUSING", 0.2)
    place.options = CallOptions(
        concurrency=4, patience=Patience(request=0.5, retries=3)
    )
    with (
        FakeServer(lambda call: walk(call) if call.number < 15 else mishap) as bad,
        FakeServer(walk, latency=0.004) as good,
    ):
        assert place.run("mishap", bad.base_url, good.base_url) == undisturbed
        assert good.count > 30
    assert any(
        "does not answer any more" in line and server_name(bad.base_url) in line
        for line in place.news
    )


def test_a_call_that_no_server_bears_is_not_passed_on_for_ever(place: Place) -> None:
    poisoned: set[Any] = set()

    def script(call: Call) -> str | Answer:
        if not poisoned:
            poisoned.add(call.body["seed"])
        return Answer(fault="reset") if call.body["seed"] in poisoned else walk(call)

    with FakeServer(script) as one, FakeServer(script) as two:
        place.run("poison", one.base_url, two.base_url)
        asked = [
            call for call in (*one.calls, *two.calls) if call.body["seed"] in poisoned
        ]
    with RunLog.open_read_only(place.results / "poison") as log:
        missing = {
            (record.protocol, record.subject)
            for record in log.trials()
            if record.missing
        }
    assert len(missing) == 1
    assert len(asked) <= 2 + 1 + HASTE.patience.retries


def test_each_server_has_limits_of_its_own(
    place: Place, undisturbed: list[Any]
) -> None:
    def busy(call: Call) -> str | Answer:
        if call.number < 3:
            return Answer(status=429, headers={"Retry-After": "0.3"})
        return Answer(text=walk(call), delay=0.01)

    with FakeServer(busy) as one, FakeServer(walk, latency=0.01) as two:
        assert place.run("limits", one.base_url, two.base_url) == undisturbed
        assert one.peak <= 4
        assert two.peak == 4, "the other one's wish for a pause is not its own"
        paused = [call.arrived for call in one.calls][:4]
        during = [
            call for call in two.calls if paused[0] < call.arrived < paused[0] + 0.3
        ]
        assert len(during) > 8


def test_a_server_that_is_not_there_at_the_start_is_named_and_done_without(
    place: Place,
) -> None:
    with FakeServer(walk) as gone:
        pass
    with FakeServer(walk) as here:
        said: list[str] = []
        model = place.model(gone.base_url, here.base_url)
        probe({"tiny": model}, place.results, said.append)
        [line] = said
        assert line.startswith(
            f"The run begins without {server_name(gone.base_url)}, which does not answer: connection:"
        )
        with FakeServer(walk, key="secret-of-the-other") as closed:
            model = place.model(here.base_url, closed.base_url)
            with pytest.raises(
                UnreachableModelError,
                match=f"at {server_name(closed.base_url)} does not answer: auth",
            ):
                probe({"tiny": model}, place.results)


# The pool by itself.


def pool(count: int, told: list[str] | None = None) -> ServerPool:
    found = [ModelServer(f"http://h{n}:80", None, Limiter(4)) for n in range(count)]
    return ServerPool(
        found, lambda kind, line: None if told is None else told.append(line)
    )


def fail(pool: ServerPool, number: int, kind: FaultKind = "connection") -> bool:
    return pool.failed(
        pool.servers[number], ChatFaultError(kind, "gone"), time.monotonic()
    )


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_homes_are_dealt_out_in_turn_and_kept(count: int) -> None:
    many = pool(count)
    stays = [Stay() for _ in range(50)]
    names = [many.server_for(stay).name for stay in stays]
    assert names == [many.servers[n % count].name for n in range(50)]
    assert [many.server_for(stay).name for stay in reversed(stays)] == names[::-1]


def test_guests_are_dealt_out_evenly_and_go_home(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calling, "FIRST_ABSENCE", 60.0)
    told: list[str] = []
    three = pool(3, told)
    stays = [Stay() for _ in range(30)]
    for stay in stays:
        three.server_for(stay)
    dead = three.servers[1]
    assert fail(three, 1)
    assert Counter(three.server_for(stay).name for stay in stays) == {
        "http://h0:80": 15,
        "http://h2:80": 15,
    }
    dead.retry_at = 0.0
    [tries] = [stay for stay in stays if three.server_for(stay) is dead]
    assert three.server_for(tries) is dead, "whoever tries a server does so to the end"
    three.answered(dead)
    tries.trying = None
    assert Counter(three.server_for(stay).name for stay in stays) == {
        f"http://h{n}:80": 10 for n in range(3)
    }
    assert [server.guests for server in three.servers] == [0, 0, 0]
    assert told[1] == "http://h1:80 answers again."


def test_a_dead_server_that_nobody_is_at_home_with_is_tried_by_whoever_is_new() -> None:
    two = pool(2)
    assert fail(two, 1)
    assert [two.server_for(Stay()).name for _ in range(3)] == ["http://h0:80"] * 3
    two.servers[1].retry_at = 0.0
    assert [two.server_for(Stay()).name for _ in range(3)] == [
        "http://h1:80",
        "http://h0:80",
        "http://h0:80",
    ]


def test_where_none_is_left_each_is_tried_in_turn() -> None:
    three = pool(3)
    stay = Stay()
    assert three.server_for(stay) is three.servers[0]
    assert [fail(three, number) for number in range(3)] == [True, True, False]
    for server in three.servers:
        server.retry_at = 0.0
    tried = []
    for _ in range(3):
        server = three.server_for(stay)
        tried.append(server.name)
        stay.trying = None
        assert not fail(three, three.servers.index(server)), "nobody can take it"
    assert sorted(tried) == ["http://h0:80", "http://h1:80", "http://h2:80"]


def test_a_server_that_is_retired_is_never_tried_again() -> None:
    two = pool(2)
    stay = Stay()
    assert two.server_for(stay) is two.servers[0]
    assert two.retire(two.servers[0], "authentication: no")
    two.servers[0].retry_at = 0.0
    assert two.server_for(stay) is two.server_for(Stay()) is two.servers[1]
    assert not two.retire(two.servers[1], "authentication: no"), "that was the last one"


def test_what_a_server_does_to_one_call_is_not_its_death() -> None:
    two = pool(2)
    assert not fail(two, 0, "server")
    two.answered(two.servers[0])
    assert not fail(two, 0, "server")
    assert not fail(two, 0, "rate_limit")
    assert not fail(two, 0, "bad_request")
    two.servers[0].answered_at = time.monotonic() + 1  # others are answered meanwhile
    assert not fail(two, 0, "timeout")
    assert two.servers[0].up
    assert fail(two, 0, "server"), "the third thing in a row that goes wrong"


def test_a_plain_name_with_several_private_addresses_is_several_servers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = {
        "vllm": ["10.0.0.12", "10.0.0.3", "10.0.0.12"],
        "public": ["93.184.216.34", "93.184.216.35"],
        "one": ["10.0.0.3"],
        "both": ["10.0.0.3", "fd00::1"],
        "six": ["fd00::2", "fd00::1"],
    }

    def lookup(host: str, port: int, **_: Any) -> list[tuple[Any, ...]]:
        if host not in names:
            raise socket.gaierror
        kinds = {True: socket.AF_INET6, False: socket.AF_INET}
        return [(kinds[":" in ip], 0, 0, "", (ip, port)) for ip in names[host]]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    assert each_address("http://vllm:8000/v1?x=1") == (
        "http://10.0.0.3:8000/v1?x=1",
        "http://10.0.0.12:8000/v1?x=1",
    )
    assert each_address("http://six/v1") == (
        "http://[fd00::1]/v1",
        "http://[fd00::2]/v1",
    )
    for url in (
        "https://vllm/v1",
        "http://public/v1",
        "http://one/v1",
        "http://both/v1",
        "http://nowhere/v1",
        "x:y:z",
    ):
        assert each_address(url) == (url,)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://user:secret@h:80/v1?key=secret#secret", "http://h:80"),
        ("https://H.example/secret", "https://h.example"),
        ("http://[::1]:8000/v1", "http://[::1]:8000"),
        ("http://h:port/v1", ""),
        (None, ""),
    ],
)
def test_a_name_gives_nothing_away(url: str | None, name: str) -> None:
    assert server_name(url) == name
