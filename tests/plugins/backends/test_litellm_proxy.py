"""litellm's proxy between the backend ``openai`` and the local server: the remains of a
fault behind a gateway.

The proxy is installed into ``CHEESEBENCH_PROXY_HOME``, or into a temporary folder (500
MB).
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import tempfile
import time
import urllib.request
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from cheesebench import ChatFaultError, ChatReply, ChatRequest, Message
from cheesebench.plugins.backends.openai import ChatCompletions
from cheesebench.testing.fake_server import Answer, Call, FakeServer

pytestmark = pytest.mark.proxy
#: Later versions lack wheels for some dependencies.
PACKAGE = "litellm[proxy]<1.93"
KEY = "sk-of-the-proxy-0123456789"
CONFIG = """
model_list:
  - model_name: tiny
    litellm_params: {{model: openai/tiny, api_base: "{url}", api_key: none-at-all, max_retries: 0}}
litellm_settings: {{num_retries: 0, request_timeout: 60}}
router_settings: {{disable_cooldowns: true, num_retries: 0}}
general_settings: {{master_key: {key}}}
"""
#: The behaviour of the server behind the proxy, and the expected result.
ANSWERS = {
    "rate_limit": Answer(
        status=429,
        error={"message": "Rate limit reached", "code": "rate_limit_exceeded"},
    ),
    "quota": Answer(
        status=429,
        error={
            "message": "You exceeded your current quota",
            "code": "insufficient_quota",
        },
    ),
    "authentication": Answer(status=401, error={"message": "bad key"}),
    "context_too_long": Answer(
        status=400, error={"message": "maximum context length is 9 tokens"}
    ),
    "overload": Answer(status=503, error={"message": "busy"}),
    "server": Answer(fault="reset"),
}


@cache
def command() -> Path:
    """Return the program of the proxy."""
    given = os.environ.get("CHEESEBENCH_PROXY_HOME")
    home = Path(given or tempfile.mkdtemp(prefix="proxy"))
    programs = home / "bin"
    if not (programs / "litellm").exists():
        venv.create(home, with_pip=True)
        for pip in (("pip", "install", "uv"), ("uv", "pip", "install", PACKAGE)):
            more = () if pip[0] == "pip" else ("--python", programs / "python")
            wheels = ("--only-binary", ":all:")
            subprocess.run(
                [programs / pip[0], *pip[1:], "--quiet", *wheels, *more],
                check=True,
                cwd=home,
            )
    return programs / "litellm"


@contextmanager
def proxy(config: str, folder: Path) -> Iterator[str]:
    """Run the proxy with this configuration; yield its base URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "config.yaml").write_text(config, encoding="utf-8")
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONPATH"
    }
    environment |= {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_MODE": "PRODUCTION",
    }
    arguments = [
        str(command()),
        "--config",
        "config.yaml",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    with (folder / "proxy.log").open("wb") as log:
        process = subprocess.Popen(
            arguments, cwd=folder, env=environment, stdout=log, stderr=log
        )
        try:
            until = time.monotonic() + 900
            while True:
                assert process.poll() is None, (folder / "proxy.log").read_text(
                    encoding="utf-8"
                )[-2000:]
                assert time.monotonic() < until, "the proxy does not get ready"
                try:
                    urllib.request.urlopen(
                        f"http://127.0.0.1:{port}/health/liveliness", timeout=5
                    ).close()
                    break
                except OSError:
                    time.sleep(0.3)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            process.wait(60)


async def ask(
    url: str, key: str, model: str, *texts: str
) -> Sequence[ChatReply | BaseException]:
    client = ChatCompletions(url, key=key)
    requests = [
        ChatRequest(model=model, messages=(Message("user", (text,)),)) for text in texts
    ]
    try:
        return await asyncio.gather(
            *map(client.complete, requests), return_exceptions=True
        )
    finally:
        await client.close()


def test_through_the_proxy(tmp_path: Path) -> None:
    def script(call: Call) -> Answer:
        return ANSWERS.get(
            call.prompt,
            Answer(text="<think>left?</think>ACTIONS: STAY", reasoning="hm"),
        )

    with (
        FakeServer(script) as server,
        proxy(CONFIG.format(url=server.base_url, key=KEY), tmp_path) as url,
    ):
        fine, *faults = asyncio.run(ask(url, KEY, "tiny", "which way?", *ANSWERS))
        [unknown] = asyncio.run(ask(url, KEY, "nothing-like-it", "?"))
        [refused] = asyncio.run(ask(url, "sk-of-somebody-else-123456", "tiny", "?"))
        asked = server.count
    assert isinstance(fine, ChatReply)
    assert (fine.text, fine.reasoning) == ("ACTIONS: STAY", "hm\nleft?")
    assert fine.usage.prompt > 0
    kinds = [
        fault.kind
        for fault in (*faults, unknown, refused)
        if isinstance(fault, ChatFaultError)
    ]
    assert kinds == [*ANSWERS, "unknown_model", "authentication"]
    assert asked == 1 + len(ANSWERS), "the proxy has retried"
