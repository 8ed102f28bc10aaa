"""Requests that a server would refuse are refused before the run, because the first
question is the run's own first request.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cheesebench.chat import ChatFaultError, Message, without_system
from cheesebench.experiment.calling import said
from cheesebench.experiment.log import RunLog
from cheesebench.testing.fake_server import Answer, Call, FakeServer
from tests.pytest_plugin.test_models import walk

LIST = """
models:
  plain:
    backend: openai
    id: tiny
    drops: [{drops}]
    options: {{base_url: "{url}", headers: {{api-key: GATEWAY_KEY}}}}
"""


def refuse(status: int, message: str) -> Answer:
    return Answer(status=status, error={"message": message})


def without(part: str) -> Callable[[Call], str | Answer]:
    """A server that refuses requests with this part."""
    refusals = {
        "system": refuse(400, "System role not supported"),
        "seed": refuse(422, "extra_forbidden: seed"),
        "tools": refuse(400, "registry/tiny does not support tools"),
        "tool_choice": refuse(400, "Value error, tool_choice: required is refused"),
        "temperature": refuse(400, "Unsupported value: 'temperature'"),
        "max_tokens": refuse(400, "Unsupported parameter: 'max_tokens'"),
    }

    def script(call: Call) -> str | Answer:
        sent = part in call.body or any(
            one["role"] == part for one in call.body["messages"]
        )
        return refusals[part] if sent else walk(call)

    return script


@pytest.mark.parametrize(
    ("part", "agent", "remedy"),
    [
        ("system", "llm", "'drops: [[]system]', which moves the system prompt to"),
        ("seed", "llm", "'drops: [[]seed]'."),
        ("tools", "llm-tools", "Try --agent llm, which needs no tools."),
        ("tool_choice", "llm-tools", "Try --agent llm, which needs no tools."),
        ("temperature", "llm", "Try --temperature none"),
        ("max_tokens", "llm", "'drops: [[]max_tokens]'."),
    ],
)
def test_what_is_refused_is_refused_before_the_run(
    project: pytest.Pytester, part: str, agent: str, remedy: str
) -> None:
    with FakeServer(without(part)) as server:
        given = ("--model=openai/tiny", "--base-url", server.base_url, "lab")
        result = project.runpytest(*given, "--agent", agent)
        assert server.count == 1
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"ERROR: The model 'openai/tiny' does not answer: bad request: *{remedy}*"]
    )
    assert not list(project.path.glob("results/*"))


@pytest.mark.parametrize(
    "words",
    [
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "Only user and assistant roles are supported!",
        "messages.0.role: Input should be 'user' or 'assistant'",
        "Developer instruction is not enabled for this model",
    ],
)
def test_words_about_a_system_role_have_its_remedy(words: str) -> None:
    assert "'drops: [system]'" in said(ChatFaultError("bad_request", words))


def test_a_breakdown_has_one_remedy(project: pytest.Pytester) -> None:
    refusal = refuse(500, "The template has no place for the system prompt")
    with FakeServer(lambda call: refusal) as server:
        given = ("--model=openai/tiny", "--base-url", server.base_url, "lab")
        result = project.runpytest(*given)
    [line] = [line for line in result.errlines if line.startswith("ERROR")]
    assert line.endswith(
        "which moves the system prompt to the beginning of the first user message."
    )


def test_an_unknown_certificate_is_no_question_of_a_key(
    project: pytest.Pytester,
) -> None:
    refusal = refuse(401, "The proxy has a certificate that is not trusted")
    with FakeServer(lambda call: refusal) as server:
        given = ("--model=openai/tiny", "--base-url", server.base_url, "lab")
        result = project.runpytest(*given)
    [line] = [line for line in result.errlines if line.startswith("ERROR")]
    assert line.endswith("the authority that signed it in SSL_CERT_FILE.")


def test_a_model_without_a_system_role_behind_a_gateway_with_a_key_of_its_own(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_KEY", "gate-0123456789-way")

    def script(call: Call) -> str | Answer:
        if call.headers.get("api-key") != "gate-0123456789-way":
            return refuse(401, "no key")
        if "api-version=2024-10-21" not in call.path:
            return refuse(404, "no such version")
        return without("system")(call)

    with FakeServer(script) as server:
        url = f"{server.base_url}?api-version=2024-10-21"
        (project.path / "own.yaml").write_text(
            LIST.format(url=url, drops="system, max_tokens"), encoding="utf-8"
        )
        given = ("--models=own.yaml", "--model=plain", "lab", "-k", "east")
        result = project.runpytest(*given, "--cheese-run-id=one")
        result.assert_outcomes(passed=1)
        first, *later = server.calls
    assert "max_tokens" not in first.body
    [message] = first.body["messages"]
    assert message["role"] == "user"
    assert "seed" in first.body
    assert first.body not in [call.body for call in later], "it is paid once"
    with RunLog.open_read_only(project.path / "results" / "one") as log:
        assert log.calls.totals().calls == 1 + len(later)
        assert "gate-0123456789-way" not in "".join(log.dump())
    said = result.stdout.str() + result.stderr.str()
    assert "gate-0123456789-way" not in said


def test_a_resumed_run_is_asked_its_next_question_and_pays_nothing_twice(
    project: pytest.Pytester,
) -> None:
    def calls() -> int:
        with RunLog.open_read_only(project.path / "results" / "one") as log:
            return log.calls.totals().calls

    with FakeServer(walk) as server:
        given = ("--model=openai/tiny", "--base-url", server.base_url, "lab", "-k=east")
        project.runpytest(*given, "--cheese-run-id=one", "--cheese-max-tokens=2000")
        assert 0 < calls() == server.count
        project.runpytest(*given, "--resume=one", "--cheese-max-tokens=2000")
        assert calls() == server.count, "nothing is asked beyond a spent budget"
        asked_before = server.count
        project.runpytest(*given, "--resume=one", "--cheese-max-tokens=1000000")
        assert server.count > asked_before
    assert calls() == server.count
    assert all("READY" not in str(call.body) for call in server.calls)
    asked = [str(call.body) for call in server.calls]
    assert len({*asked}) == len(asked)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("api-key=gate-0123456789-way", "*not the name of an environment variable*"),
        ("Host=GATEWAY_KEY", "*cannot set 'Host'*"),
        ("api-key=NOWHERE_KEY", "*NOWHERE_KEY (header api-key) is not set, or empty*"),
        ("api-key=PLAIN", "*could be written into reports*"),
    ],
)
def test_a_header_that_cannot_be_meant(
    project: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    given: str,
    error: str,
) -> None:
    monkeypatch.setenv("PLAIN", "long-enough-to-be-one")
    result = project.runpytest(
        "--model=openai/tiny",
        "--base-url=http://127.0.0.1:9/v1",
        f"--cheese-backend-option=headers={given}",
        "lab",
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {error}"])
    assert "gate-0123456789-way" not in result.stdout.str() + result.stderr.str()


def test_the_system_s_text_before_the_first_user_s() -> None:
    system, first = Message("system", ("Rules.",)), Message("user", ("Go.", b"png"))
    answer = Message("assistant", ("STAY",))
    assert without_system((system, first, answer)) == (
        Message("user", ("Rules.\n\nGo.", b"png")),
        answer,
    )
    assert without_system((system, Message("user", (b"png",)))) == (
        Message("user", ("Rules.", b"png")),
    )
    assert without_system((system,)) == (Message("user", ("Rules.",)),)
    assert without_system((first,)) == (first,)


def test_the_first_question_of_a_control_is_what_its_subject_asks(
    project: pytest.Pytester,
) -> None:
    """A blind subject sees something else, so another question's answer is of no
    use.
    """
    with FakeServer(walk) as server:
        given = ("--model=openai/tiny", "--base-url", server.base_url, "lab")
        result = project.runpytest(*given, "--design=smoke", "--control=blind")
    assert result.ret == pytest.ExitCode.OK
