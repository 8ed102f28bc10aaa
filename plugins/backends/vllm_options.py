"""Options of a vLLM engine, the same for one behind a server and one in this process: names, meanings, flags."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from cheesebench import OptionError, quoted

#: Options that become vLLM's flags of the same name: what their values are, and what each means.
FLAGS: dict[str, tuple[type, str]] = {
    "tensor_parallel_size": (int, "number of GPUs that share one copy of the model"),
    "pipeline_parallel_size": (int, "number of groups of layers, each on its own GPUs"),
    "data_parallel_size": (
        int,
        "number of copies of the model; every subject keeps to one, where its prompts are cached",
    ),
    "max_model_len": (int, "tokens of prompt and reply together (default: the model's own limit)"),
    "gpu_memory_utilization": (float, "share of a GPU's memory for weights and cache, 0 to 1 (vLLM's default: 0.9)"),
    "max_num_seqs": (int, "maximum number of calls processed at once, per copy"),
    "max_num_batched_tokens": (int, "maximum number of tokens in one step of the engine"),
    "dtype": (str, "bfloat16, float16, float32 or auto"),
    "quantization": (str, "fp8, awq, gptq, ..."),
    "kv_cache_dtype": (str, "auto, fp8, ..."),
    "revision": (str, "branch, tag or commit of the model's repository"),
    "enforce_eager": (bool, "true: no CUDA graphs; starts faster, runs slower"),
}
#: Free-form flags for whatever else vLLM can do.
EXTRA = ("extra_args", "more flags of 'vllm serve', as on the command line")
MEANINGS: dict[str, str] = {name: meaning for name, (_, meaning) in FLAGS.items()} | {EXTRA[0]: EXTRA[1]}

_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def flags(options: Mapping[str, Any]) -> list[str]:
    """Return vLLM's command-line flags for these options; raises OptionError for a value that makes no sense.

    Extra flags come last, so that they win.
    """
    flags = []
    for name, (kind, _) in FLAGS.items():
        if (value := options.get(name)) is not None:
            flag = name.replace("_", "-")
            value = typed(name, value, kind)
            flags += [f"--{flag}" if value else f"--no-{flag}"] if kind is bool else [f"--{flag}", str(value)]
    return flags + words(options, EXTRA[0])


def words(options: Mapping[str, Any], name: str) -> list[str]:
    """Return an option that is part of a command line: a string as a shell splits it, or a list (of YAML)."""
    value = options.get(name) or []
    if isinstance(value, str):
        try:
            return shlex.split(value)
        except ValueError as error:
            raise OptionError(f"The option {name} cannot be read ({error}): {quoted(value, 100)}") from None
    if not isinstance(value, list):
        raise OptionError(f"The option {name} must be a string or a list, not {quoted(repr(value), 100)}.")
    return [item if isinstance(item, str) else json.dumps(item) for item in value]


def typed(name: str, value: Any, kind: type) -> Any:
    """Return an option's value as the kind that it has to be; strings come from the command line."""
    try:
        if kind is bool:
            return value if isinstance(value, bool) else _WORDS[str(value).lower()]
        if kind is str and isinstance(value, str) and value:
            return value
        if kind in (int, float) and not isinstance(value, bool) and (number := kind(value)) > 0:
            return number
    except (KeyError, ValueError, TypeError):
        pass
    wanted = {int: "a whole number above 0", float: "a number above 0", bool: "true or false", str: "a word"}[kind]
    raise OptionError(f"The option {name} must be {wanted}, not '{quoted(str(value), 60)}'.")


def copies(options: Mapping[str, Any]) -> int:
    """Return how many copies of the model share the work."""
    return int(typed("data_parallel_size", options.get("data_parallel_size", 1), int))


class Dealer:
    """Says which copy of the model a conversation stays with: copies are dealt out in turn, at the first call of each.

    vLLM's own balancing knows nothing of prefixes: a subject that wandered would be read anew at each call. Dealing
    keeps copies even, whichever subjects a run (or what a resumed one has left to do) is made of; which copy answers
    is no part of a record. Two sessions that share a server each deal for themselves.
    """

    def __init__(self, copies: int) -> None:
        self._copies = copies
        self._dealt: dict[str, int] = {}

    def copy_for(self, conversation: str) -> int | None:
        """Return the copy, or None where there is one only, or no conversation that could stay."""
        if self._copies < 2 or not conversation:
            return None
        return self._dealt.setdefault(conversation, len(self._dealt) % self._copies)
