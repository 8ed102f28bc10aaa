"""The front door: what pytest imports in every project of the environment, and therefore next to nothing.

Without ``--model`` nothing happens here beyond the registration of options. With it,
``cheesebench.pytest_session`` is loaded and does the work.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import pytest

#: All options store under this prefix, so that two names of one option share one value.
PREFIX = "cheesebench_"


@dataclass(frozen=True)
class _Option:
    """One option. ``yields`` says that its short name belongs to whoever else defines it."""

    name: str
    help: str
    yields: bool = True
    keywords: dict[str, Any] = field(default_factory=dict)

    @property
    def destination(self) -> str:
        return PREFIX + self.name.removeprefix("cheese-").replace("-", "_")


def _repeats(metavar: str) -> dict[str, Any]:
    return {"action": "append", "metavar": metavar}


OPTIONS = (
    _Option(
        "model",
        "Run this model through the paradigms; repeat it (or use commas) for several. "
        "Without paths, the paper's protocols run and nothing else. Example: --model random",
        keywords=_repeats("NAME"),
    ),
    _Option(
        "view",
        "Show the arena in this view; repeatable. Default: the design's own. Example: --view ascii_2d",
        keywords=_repeats("NAME"),
    ),
    _Option(
        "protocols",
        "Run these protocols instead: a name, a *.protocol.yaml file or a directory of them; repeatable. "
        "Default: cheese_protocols in the ini file, or CHEESEBENCH_PROTOCOLS. "
        "Example: --protocols=my_protocols",
        keywords=_repeats("WHAT"),
    ),
    _Option(
        "edition",
        "Edition of the protocols that are chosen by name or directory. Default: paper",
        keywords={"metavar": "NAME"},
    ),
    _Option(
        "study",
        "Run the protocols under the settings of a study: a name (cheesebench study) or a *.study.yaml file.",
        keywords={"metavar": "NAME"},
    ),
    _Option(
        "design",
        "How many subjects and trials: smoke (wiring only, no verdict), paper or cohort. Default: cohort",
        keywords={"metavar": "NAME"},
    ),
    _Option(
        "subjects",
        "Number of subjects per cell, instead of the design's.",
        keywords={"metavar": "N", "type": int},
    ),
    _Option(
        "generations",
        "Dialogues: how often each question is asked. Default: 30 (smoke: 2)",
        keywords={"metavar": "N", "type": int},
    ),
    _Option(
        "against",
        "Dialogues: compare with this published model where the paper prints one. Default: with chance",
        keywords={"metavar": "NAME"},
    ),
    _Option(
        "seed",
        "Seed of the run; the same seed gives the same records. Default: 0",
        keywords={"metavar": "N", "type": int},
    ),
    _Option(
        "agent",
        "Agent that asks a language model. Default: llm",
        keywords={"metavar": "NAME"},
    ),
    _Option(
        "base-url",
        "Where the model's server is. Example: --base-url http://127.0.0.1:8000/v1",
        keywords={"metavar": "URL"},
    ),
    _Option(
        "history",
        "Past observations and replies that a language model is shown. Default: the agent's own",
        keywords={"metavar": "N", "type": int},
    ),
    _Option(
        "actions",
        "Actions that a language model may give in one reply. Default: the agent's own",
        keywords={"metavar": "N", "type": int},
    ),
    _Option(
        "prompt",
        "Wording of the system prompt: default, minimal, cot or few_shot.",
        keywords={"metavar": "NAME"},
    ),
    _Option(
        "temperature",
        "Sampling temperature; repeatable for dialogues. Default: the agent's own",
        keywords=_repeats("T") | {"type": float},
    ),
    _Option(
        "max-cost",
        "Stop calling models once the run has cost so many dollars; the rest is inconclusive.",
        keywords={"metavar": "DOLLARS", "type": float},
    ),
    _Option(
        "max-tokens",
        "Stop calling models once the run has used so many tokens; the rest is inconclusive.",
        keywords={"metavar": "N", "type": int},
    ),
    _Option(
        "max-minutes",
        "Stop calling models after so many minutes; the rest is inconclusive.",
        keywords={"metavar": "MINUTES", "type": float},
    ),
    _Option(
        "retry-errors",
        "With --resume: ask again what was refused for what it asked (content filter, context too long).",
        keywords={"action": "store_true"},
    ),
    _Option(
        "control",
        "Also run each cell with this control: reward-shuffled, cue-off, cue-shuffled, labels-swapped or yoked:RUN; "
        "repeatable. What is learnt must vanish with what it was learnt from.",
        keywords=_repeats("NAME"),
    ),
    _Option(
        "resume",
        "Continue this run: what it has finished is kept, only the rest is run.",
        keywords={"metavar": "RUN-ID"},
    ),
    _Option(
        "inconclusive",
        "What an inconclusive verdict is for the exit status: skip (default) or fail.",
        keywords={"choices": ("skip", "fail")},
    ),
    _Option(
        "cheese-run-id",
        "Name of the run, and of its directory. Default: date, time and a random suffix",
        yields=False,
        keywords={"metavar": "RUN-ID"},
    ),
    _Option(
        "cheese-results",
        "Directory of the runs. Default: results, under the root directory",
        yields=False,
        keywords={"metavar": "DIR"},
    ),
    _Option(
        "cheese-processes",
        "Processes that run subjects side by side. Default: one for each processor",
        yields=False,
        keywords={"metavar": "N", "type": int},
    ),
    _Option(
        "cheese-markdown",
        "Also write the Markdown report to this file.",
        yields=False,
        keywords={"metavar": "PATH"},
    ),
    _Option(
        "cheese-models",
        "Also take models from this YAML file.",
        yields=False,
        keywords={"metavar": "FILE"},
    ),
    _Option(
        "cheese-agent-option",
        "A setting of the agent that asks; repeatable. Example: --cheese-agent-option unparsed=end-trial",
        yields=False,
        keywords=_repeats("NAME=VALUE"),
    ),
    _Option(
        "cheese-backend-option",
        "An option of the model's backend; repeatable. Example: --cheese-backend-option tensor_parallel_size=8",
        yields=False,
        keywords=_repeats("NAME=VALUE"),
    ),
    _Option(
        "cheese-reply-tokens",
        "Most tokens of one reply. Default: the model's, or the agent's own",
        yields=False,
        keywords={"metavar": "N", "type": int},
    ),
    _Option(
        "cheese-concurrency",
        "Most calls in flight at once; fewer as long as the server objects. Default: 256",
        yields=False,
        keywords={"metavar": "N", "type": int},
    ),
    _Option(
        "cheese-timeout",
        "Seconds that one call may take. Default: 300",
        yields=False,
        keywords={"metavar": "SECONDS", "type": float},
    ),
    _Option(
        "cheese-trial-timeout",
        "Seconds that all calls of one trial may take, waiting not counted. Default: 3600",
        yields=False,
        keywords={"metavar": "SECONDS", "type": float},
    ),
    _Option(
        "cheese-retries",
        "How often a call is tried again after a fault. Default: 6",
        yields=False,
        keywords={"metavar": "N", "type": int},
    ),
    _Option(
        "cheese-compare",
        "Compare the run with this baseline or earlier run, subject by subject. See: cheesebench bless --help",
        yields=False,
        keywords={"metavar": "BASELINE"},
    ),
    _Option(
        "compare-fail",
        "worse: exit with 1 if the run is worse than the baseline, overall or on a protocol. Default: never",
        keywords={"choices": ("never", "worse")},
    ),
    _Option(
        "cheese-html",
        "Also write the HTML report to this file: one page with charts, in which every trial can be watched.",
        yields=False,
        keywords={"metavar": "PATH"},
    ),
    _Option(
        "cheese-exit-zero",
        "Exit with 0 although a model has failed a verdict; errors still count.",
        yields=False,
        keywords={"action": "store_true"},
    ),
)


class _Setting(NamedTuple):
    """One setting of the ini file."""

    name: str
    help: str
    kind: Literal["args"]


INI = (_Setting("cheese_protocols", "What --protocols is where it is not given: names, files, directories.", "args"),)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(parser: pytest.Parser) -> Generator[None, None, None]:
    """Register our options after those of all other plugins and conftests, and give way to them."""
    yield
    taken = _taken(parser, [option.name for option in OPTIONS if option.yields])
    group = parser.getgroup("cheesebench", "CheeseBench: does a model do as well as the rodent?")
    for setting in INI:
        parser.addini(setting.name, setting.help, type=setting.kind)
    for option in OPTIONS:
        names = [] if option.name in taken else [f"--{option.name}"]
        if option.yields:
            names.append(f"--cheesebench-{option.name}")
        group.addoption(*names, dest=option.destination, help=option.help, **option.keywords)


def _taken(parser: pytest.Parser, names: list[str]) -> list[str]:
    """Return those of the names that are options already; pytest has no question for it but to parse them."""
    probes = [f"--{name}=probe" for name in names]
    try:
        _, unknown = parser.parse_known_and_unknown_args(probes)
    except pytest.UsageError:  # one of them takes no value, or none like this one
        return names if len(names) == 1 else [name for one in names for name in _taken(parser, [one])]
    return [name for name, probe in zip(names, probes, strict=True) if probe not in unknown]


def pytest_configure(config: pytest.Config) -> None:
    """Start the session's own plugin when a model is given."""
    if config.getoption(f"{PREFIX}model", None) or config.getoption(f"{PREFIX}study", None):
        from cheesebench.pytest_session import start

        start(config)
        return
    # What a project sets for all of its runs (addopts) may wait for the runs that have a model.
    typed = {str(argument).split("=", 1)[0] for argument in config.invocation_params.args}
    for option in OPTIONS:
        given = config.getoption(option.destination, None) not in (None, False)
        if given and typed & {f"--{option.name}", f"--cheesebench-{option.name}"}:
            raise pytest.UsageError(
                f"--{option.name} has no effect without a model: add --model NAME, for example --model random."
            )
