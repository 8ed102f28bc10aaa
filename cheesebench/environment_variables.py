"""The environment variables that CheeseBench reads or sets, for the reference page."""

from __future__ import annotations

from typing import NamedTuple


class EnvironmentVariable(NamedTuple):
    """One variable and its meaning."""

    name: str
    meaning: str


#: Ours first, then those of model servers, then those of others.
VARIABLES = (
    EnvironmentVariable(
        "CHEESEBENCH_PROTOCOLS",
        "what --protocols is where neither the command line nor the ini file says it: names, files and directories, "
        "separated as in PATH",
    ),
    EnvironmentVariable(
        "CHEESEBENCH_MODELS", "a YAML file of models of your own, where --cheese-models (or --models) names none"
    ),
    EnvironmentVariable(
        "OPENAI_API_KEY",
        "the key of a server that speaks the OpenAI protocol; the backend's option api_key_env renames it",
    ),
    EnvironmentVariable("OPENAI_BASE_URL", "where that server is, without --base-url"),
    EnvironmentVariable(
        "VLLM_API_KEY", "the key of a vLLM server that is running already; the backend's option api_key_env renames it"
    ),
    EnvironmentVariable("VLLM_WORKER_MULTIPROCESSING_METHOD", "set to spawn where vLLM runs inside, unless it is set"),
    EnvironmentVariable("VLLM_LOGGING_LEVEL", "set to WARNING where vLLM runs inside, unless it is set"),
    EnvironmentVariable(
        "LITELLM_LOCAL_MODEL_COST_MAP", "set to True for litellm, unless it is set: it fetches nothing"
    ),
    EnvironmentVariable("LITELLM_MODE", "set to PRODUCTION for litellm, unless it is set: it reads no .env file"),
    EnvironmentVariable("LITELLM_LOG", "set to ERROR for litellm, unless it is set"),
    EnvironmentVariable(
        "GITHUB_STEP_SUMMARY", "the file that the report's summary is added to; GitHub Actions sets it"
    ),
    EnvironmentVariable(
        "GITHUB_ACTIONS", "true: what is no PASS becomes an annotation of the job; GitHub Actions sets it"
    ),
    EnvironmentVariable("NO_COLOR", "set: no colours, neither from pytest nor from the command line"),
    EnvironmentVariable("PYTEST_ADDOPTS", "further options of pytest; 'cheesebench study' puts its own before them"),
    EnvironmentVariable(
        "XDG_STATE_HOME",
        "directory of cheesebench/key, which tells your own runs from a stranger's (default: ~/.local/state)",
    ),
    EnvironmentVariable("TERM", "dumb: no line of progress, and 'cheesebench play' draws without moving the cursor"),
    EnvironmentVariable("PATH", "where a vllm command is looked for, after the directory of this Python"),
)
