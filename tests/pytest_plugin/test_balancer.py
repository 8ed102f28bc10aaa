"""Two servers behind LiteLLM's proxy, as docs/servers.md shows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cheesebench.testing.fake_server import Answer, Call, FakeServer
from tests.plugins.backends.test_litellm_proxy import proxy
from tests.pytest_plugin.test_models import dump, walk

ROOT = Path(__file__).parents[2]
GIVEN = ("--model", "openai/tiny", "lab")


@pytest.mark.proxy
def test_two_servers_behind_the_file_of_the_page_one_of_which_dies(
    project: pytest.Pytester, tmp_path: Path
) -> None:
    page = (ROOT / "docs" / "servers.md").read_text(encoding="utf-8")
    [config] = re.findall(r"```yaml\n(# litellm --config.*?)```", page, re.DOTALL)
    given = (*GIVEN, "-k", "east or west")
    with FakeServer(walk) as alone:
        project.runpytest(
            *given, "--base-url", alone.base_url, "--cheese-run-id=alone"
        ).assert_outcomes(passed=2)

    def dying(call: Call) -> str | Answer:
        return walk(call) if call.number < 20 else Answer(fault="reset")

    with FakeServer(dying) as one, FakeServer(walk) as two:
        addresses = ("http://10.0.0.1:8000/v1", "http://10.0.0.2:8000/v1")
        for address, server in zip(addresses, (one, two), strict=True):
            assert config.count(address) == 1
            config = config.replace(address, server.base_url)
        with proxy(config.replace("my-model\n", "tiny\n"), tmp_path) as url:
            result = project.runpytest(
                *given, "--base-url", url, "--cheese-run-id=both"
            )
        result.assert_outcomes(passed=2)
        assert one.count > 10, "both have worked"
        assert two.count > 10
    assert dump(project, "both") == dump(project, "alone")
