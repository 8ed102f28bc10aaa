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
        "default of --protocols if neither the command line nor the ini file sets it: names, files and directories, "
        "separated as in PATH",
    ),
    EnvironmentVariable("CHEESEBENCH_MODELS", "a YAML file of your own models, used if --models is not given"),
    EnvironmentVariable(
        "OPENAI_API_KEY",
        "the key of a server that speaks the OpenAI protocol; the backend's option api_key_env renames it",
    ),
    EnvironmentVariable("OPENAI_BASE_URL", "address of that server, used if --base-url is not given"),
    EnvironmentVariable(
        "VLLM_API_KEY", "the key of a vLLM server that is already running; the backend's option api_key_env renames it"
    ),
    EnvironmentVariable(
        "VLLM_WORKER_MULTIPROCESSING_METHOD", "set to spawn if vLLM runs in this process, unless already set"
    ),
    EnvironmentVariable("VLLM_LOGGING_LEVEL", "set to WARNING if vLLM runs in this process, unless already set"),
    EnvironmentVariable(
        "LITELLM_LOCAL_MODEL_COST_MAP", "set to True for litellm, unless already set: litellm then fetches nothing"
    ),
    EnvironmentVariable(
        "LITELLM_MODE", "set to PRODUCTION for litellm, unless already set: litellm then reads no .env file"
    ),
    EnvironmentVariable("LITELLM_LOG", "set to ERROR for litellm, unless already set"),
    EnvironmentVariable("RAY_ADDRESS", "the cluster of --executor ray, used if --executor-option address is not given"),
    EnvironmentVariable("RAY_USAGE_STATS_ENABLED", "set to 0 for Ray, unless already set: it then reports nothing"),
    EnvironmentVariable(
        "GITHUB_STEP_SUMMARY", "the file to which the report's summary is appended; GitHub Actions sets it"
    ),
    EnvironmentVariable(
        "GITHUB_ACTIONS", "if true, everything except a PASS becomes an annotation of the job; GitHub Actions sets it"
    ),
    EnvironmentVariable("NO_COLOR", "if set, neither pytest nor cheesebench uses colours"),
    EnvironmentVariable("PYTEST_ADDOPTS", "more options of pytest; 'cheesebench study' puts its own before them"),
    EnvironmentVariable(
        "XDG_STATE_HOME",
        "directory of cheesebench/key, which shows that a run was made by you on this machine (default: "
        "~/.local/state)",
    ),
    EnvironmentVariable("TERM", "if dumb: no progress line, and 'cheesebench play' draws without moving the cursor"),
    EnvironmentVariable("PATH", "directories searched for a vllm command, after that of this Python"),
)
