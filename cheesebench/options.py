"""The options of a run, each declared once: data only, cheap to import.

pytest registers all of them (``cheesebench.pytest_plugin``), a command adds the options
that it needs (``cheesebench.commands.common.add_options``), a run's manifest stores the
``recorded`` ones, and the reference page lists them all. To add an option, add an entry
to ``OPTIONS``, and a field to ``cheesebench.experiment.settings.OptionValues``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

#: Beginning of the name of the attribute in which pytest stores an option's value. The
#: two spellings of an option share the attribute.
PREFIX = "cheesebench_"
#: Prefix of the long spelling of every option, which pytest always accepts.
LONG = "--cheese-"


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """One option of a run."""

    name: str
    """The name without leading dashes: ``--NAME``; in pytest also ``--cheese-NAME``."""
    help: str
    """One or two sentences, without default and example."""
    metavar: str = ""
    """Placeholder; by default NAME, or N for a whole number."""
    type: Callable[[str], Any] = str
    default: Any = None
    """The value if neither the user nor the manifest of a resumed run gives one."""
    default_text: str = ""
    """The default in words, if ``default`` itself is not readable."""
    example: str = ""
    """A value that a person could give."""
    words: tuple[str, ...] = ()
    """Words that are allowed instead of a number."""
    choices: tuple[str, ...] = ()
    repeatable: bool = False
    commas: bool = False
    """Whether the option is repeatable, and a value may be a comma-separated list."""
    flag: bool = False
    minimum: int | None = None
    positive: bool = False
    """Whether the value must be above 0."""
    recorded: bool = False
    """Whether the manifest stores the value under ``key``. A resumed or replayed run
    takes it from there.
    """
    overridable: bool = False
    """Whether a resumed run may change the recorded value."""
    trusted_only: bool = False
    """Whether a value that a stranger's run has recorded is refused until the user
    gives it again, because it starts a program or decides where calls and keys go.
    """
    setting: str = ""
    """Name of the model agent's setting that this option sets, if any."""
    models_only: bool = False
    """Whether the option needs a language model."""
    names_run: bool = False
    """Whether the option names this run. A command that continues the run has
    ``--resume`` instead.
    """

    @property
    def key(self) -> str:
        """The name as an identifier, for the manifest and ``OptionValues``."""
        return self.name.replace("-", "_")

    @property
    def destination(self) -> str:
        return PREFIX + self.key

    @property
    def short(self) -> str:
        """The usual spelling. In pytest, another plugin's option of the same name takes
        precedence.
        """
        return f"--{self.name}"

    @property
    def long(self) -> str:
        """The spelling that pytest always accepts."""
        return f"{LONG}{self.name}"

    @property
    def value_name(self) -> str:
        """Placeholder of the value in the help. It is empty for a flag, and if the help
        lists the choices instead.
        """
        if self.metavar or self.flag or self.choices:
            return self.metavar
        return "N" if self.type is int else "NAME"

    @property
    def description(self) -> str:
        parts = [self.help]
        default = self.default_text or (
            "" if self.default in (None, ()) else str(self.default)
        )
        if default:
            parts.append(f"Default: {default}" + ("." if self.example else ""))
        if self.example:
            parts.append(f"Example: {self.short} {self.example}")
        return " ".join(parts)

    def read(self, text: str) -> Any:
        return text if text in self.words else self.type(text)

    def arguments(self) -> dict[str, Any]:
        """Return keyword arguments for ``add_argument``. An option that is not given is
        None, or False for a flag.
        """
        if self.flag:
            return {"action": "store_true", "help": self.description}
        keywords: dict[str, Any] = {"help": self.description}
        if self.choices:
            keywords["choices"] = self.choices
        if self.value_name or not self.choices:
            keywords["metavar"] = self.value_name
        if self.type is not str:
            keywords["type"] = _Reader(self)
        if self.repeatable:
            keywords["action"] = "append"
        return keywords


class _Reader:
    """Reads an option's text for argparse. ``__name__`` is for argparse's error."""

    def __init__(self, option: Option) -> None:
        self.__name__ = option.type.__name__
        self._option = option

    def __call__(self, text: str) -> Any:
        return self._option.read(text)


OPTIONS = (
    Option(
        name="model",
        help=(
            "Run this model through the paradigms; repeatable (or use commas). Without paths to tests, only the "
            "paradigms run, no tests."
        ),
        example="random",
        repeatable=True,
        commas=True,
        recorded=True,
        trusted_only=True,
    ),
    Option(
        name="view",
        help="Show the arena in this view; repeatable.",
        default_text="the design's own",
        example="ascii_2d",
        repeatable=True,
        commas=True,
        recorded=True,
    ),
    Option(
        name="protocols",
        help="Run these protocols instead of the nine: a name, a *.protocol.yaml file or a directory of them; "
        "repeatable (or use commas).",
        metavar="WHAT",
        default_text="cheese_protocols in the ini file, or CHEESEBENCH_PROTOCOLS",
        example="my_protocols",
        repeatable=True,
    ),
    Option(
        name="edition",
        help="Edition of the protocols that are given by name or directory.",
        default="default",
        recorded=True,
    ),
    Option(
        name="set",
        help="Run a frozen set, whose protocols, view and agent settings never change; --protocols then chooses among "
        "its protocols.",
        metavar="NAME",
        example="2026.1",
        recorded=True,
    ),
    Option(
        name="study",
        help="Run the protocols under the settings of a study: a name (cheesebench study) or a *.study.yaml file.",
        recorded=True,
    ),
    Option(
        name="design",
        help="How many subjects and trials: smoke (wiring only, no verdict), paper, cohort, sequential (as many "
        "subjects as a verdict needs), or leaderboard (40 subjects, to rank models).",
        default_text="sequential for a language model, cohort for an agent and with --compare",
        recorded=True,
    ),
    Option(
        name="familywise",
        help="Make the verdicts on all cells of a model hold together; each then needs more evidence, in proportion to "
        "their number.",
        flag=True,
        recorded=True,
    ),
    Option(
        name="subjects",
        help=(
            "Number of subjects for each model, protocol and view, instead of the design's; with the design "
            "sequential, the maximum. Dialogues: how often each question is asked (default: 30; smoke: 2)."
        ),
        type=int,
        recorded=True,
    ),
    Option(
        name="ahead",
        help=(
            "Design sequential: auto starts the next batch of subjects early if the server is your own, has no price "
            "and has spare capacity, and no --max-cost or --max-tokens is given; these subjects count only if they are "
            "needed."
        ),
        choices=("auto", "never"),
        default="auto",
        recorded=True,
        overridable=True,
        models_only=True,
    ),
    Option(
        name="against",
        help="Show the run beside this published model; refused, with the reason, where rules or settings differ.",
        default_text="none",
        recorded=True,
    ),
    Option(
        name="seed",
        help="Seed of the run; the same seed gives the same worlds and, with built-in agents, the same records. A model may know "
        "a seed that you type.",
        type=int,
        default_text="drawn, and printed",
        minimum=0,
        recorded=True,
    ),
    Option(
        name="shard",
        help="Run only one part: 2/8 is the second of eight, always the same part. cheesebench merge joins the parts.",
        metavar="PART",
        example="2/8",
        recorded=True,
    ),
    Option(
        name="agent",
        help="Agent that asks a language model.",
        default="llm",
        recorded=True,
        models_only=True,
    ),
    Option(
        name="history",
        help="Number of past observations and replies shown to a language model: a number, or a range such as 3-7.",
        metavar="N",
        default_text="the agent's own",
        recorded=True,
        models_only=True,
        setting="history",
    ),
    Option(
        name="actions",
        help="Maximum number of actions that a language model may give in one reply.",
        type=int,
        default_text="the agent's own",
        recorded=True,
        models_only=True,
        setting="actions",
    ),
    Option(
        name="prompt",
        help=(
            "Wording of the system prompt: default, minimal, cot, few_shot, or a file with your own prompt (my.txt)."
        ),
        metavar="NAME|FILE",
        recorded=True,
        models_only=True,
        setting="prompt",
    ),
    Option(
        name="temperature",
        help="Sampling temperature, or none to leave it to the server; repeatable for dialogues.",
        metavar="T",
        type=float,
        words=("none",),
        default_text="the agent's own",
        repeatable=True,
        recorded=True,
        models_only=True,
        setting="temperature",
    ),
    Option(
        name="top-p",
        help="Nucleus sampling: only the likeliest tokens that add up to this probability.",
        metavar="P",
        type=float,
        default_text="the server's own",
        positive=True,
        recorded=True,
        models_only=True,
    ),
    Option(
        name="reasoning-effort",
        help="How long a reasoning model thinks, in the server's own word, such as low or high.",
        metavar="WORD",
        example="low",
        default_text="the server's own",
        recorded=True,
        models_only=True,
    ),
    Option(
        name="reply-tokens",
        help="Maximum number of tokens of one reply.",
        type=int,
        default_text="the model's, or the agent's own",
        recorded=True,
        models_only=True,
        setting="max_tokens",
    ),
    Option(
        name="agent-option",
        help="A setting of the agent; repeatable.",
        metavar="NAME=VALUE",
        example="unparsed=end-trial",
        repeatable=True,
        recorded=True,
        models_only=True,
    ),
    Option(
        name="backend-option",
        help="An option of the model's backend; repeatable.",
        metavar="NAME=VALUE",
        example="tensor_parallel_size=8",
        repeatable=True,
        recorded=True,
        trusted_only=True,
        models_only=True,
    ),
    Option(
        name="base-url",
        help="Address of the model's server.",
        metavar="URL",
        example="http://127.0.0.1:8000/v1",
        recorded=True,
        overridable=True,
        trusted_only=True,
    ),
    Option(
        name="models",
        help="Also read models from this YAML file.",
        metavar="FILE",
        default_text="the file in CHEESEBENCH_MODELS",
    ),
    Option(
        name="control",
        help="Run everything once more with this control: a lesion (blind, anhedonia, amnesia=trial, hide=landmarks, "
        "...), reward-shuffled, cue-off, cue-shuffled, labels-swapped, no-memory or yoked:RUN; repeatable.",
        default=(),
        repeatable=True,
        commas=True,
        recorded=True,
    ),
    Option(
        name="max-cost",
        help="Stop calling models once the run has cost this many dollars; undecided verdicts are then inconclusive.",
        metavar="DOLLARS",
        type=float,
        positive=True,
    ),
    Option(
        name="max-tokens",
        help="Stop calling models once the run has used this many tokens; undecided verdicts are then inconclusive.",
        type=int,
        positive=True,
    ),
    Option(
        name="max-minutes",
        help="Stop calling models, and begin no subject of an agent, after this many minutes; undecided verdicts are then "
        "inconclusive.",
        metavar="MINUTES",
        type=float,
        positive=True,
    ),
    Option(
        name="concurrency",
        help="Maximum number of calls in flight for each account or server; fewer at first, and after refusals and timeouts.",
        type=int,
        default=256,
        positive=True,
    ),
    Option(
        name="timeout",
        help="Time limit of one attempt of a call, in seconds; a server that reports progress may take longer.",
        metavar="SECONDS",
        type=float,
        default=300,
        positive=True,
    ),
    Option(
        name="trial-timeout",
        help="Time limit of all calls of one trial, in seconds; pauses and waiting for a slot do not count.",
        metavar="SECONDS",
        type=float,
        default=3600,
        positive=True,
    ),
    Option(
        name="retries",
        help="Maximum number of retries of a call after a fault; retries because of the server's load are not counted.",
        type=int,
        default=6,
        minimum=0,
    ),
    Option(
        name="retry-errors",
        help="With --resume: repeat calls refused because of their content (content filter, context too long).",
        flag=True,
    ),
    Option(
        name="resume",
        help="Continue this run: finished trials are kept, only the rest is run.",
        metavar="RUN-ID",
        names_run=True,
    ),
    Option(
        name="run-id",
        help="Name of the run and of its directory.",
        metavar="RUN-ID",
        default_text="date, time and a random suffix",
        names_run=True,
    ),
    Option(
        name="results",
        help="Directory of the runs.",
        metavar="DIR",
        default="results",
    ),
    Option(
        name="executor",
        help="How subjects are run: local (worker processes), threads, ray (a Ray cluster), or the name of a plugin's executor.",
        default_text="local",
    ),
    Option(
        name="executor-option",
        help="An option of the executor; repeatable.",
        metavar="NAME=VALUE",
        example="address=auto",
        repeatable=True,
    ),
    Option(
        name="processes",
        help="Number of subjects run in parallel.",
        type=int,
        default_text="one per processor",
        minimum=1,
    ),
    Option(
        name="markdown",
        help="Also write the Markdown report to this file.",
        metavar="PATH",
    ),
    Option(
        name="html",
        help="Also write the HTML report to this file: one page with charts and a player for trials.",
        metavar="PATH",
    ),
    Option(
        name="profile",
        help="Take options from [tool.cheesebench.profiles.NAME] of pyproject.toml; the command line takes precedence.",
        example="nightly",
    ),
    Option(
        name="compare",
        help="Compare with this baseline or earlier run, subject by subject. cheesebench bless writes a baseline.",
        metavar="BASELINE",
    ),
    Option(
        name="compare-fail",
        help="Exit with 1 if the run is worse than the baseline, overall or on a protocol (worse), or if the comparison "
        "on a protocol is undecided, or the baseline lacks a protocol, view or model (undecided); worse,undecided stands for "
        "both.",
        metavar="ANSWER",
        choices=("never", "worse", "undecided", "worse,undecided"),
        default_text="never",
    ),
    Option(
        name="inconclusive",
        help="How an inconclusive verdict counts for the exit code: skip or fail.",
        choices=("skip", "fail"),
        default="skip",
    ),
    Option(
        name="film",
        help="With each FAIL, show all numbers and, if it is about a pass rate, a failed trial (-v does, too).",
        flag=True,
    ),
    Option(
        name="exit-zero",
        help="Exit with 0 even if a model fails; errors still count.",
        flag=True,
    ),
)

#: The options by key.
BY_KEY = {option.key: option for option in OPTIONS}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of pytest's ini file, a list of words."""

    name: str
    help: str
    kind: str = "args"


INI = (
    Setting("cheese_protocols", "Default of --protocols: names, files, directories."),
)


class EnvironmentVariable(NamedTuple):
    """One environment variable and its meaning."""

    name: str
    meaning: str


#: First CheeseBench's own variables, then variables for model servers, then variables
#: of other programs.
VARIABLES = (
    EnvironmentVariable(
        "CHEESEBENCH_PROTOCOLS",
        "default of --protocols if neither the command line nor the ini file sets it: names, files and directories, "
        "separated as in PATH",
    ),
    EnvironmentVariable(
        "CHEESEBENCH_MODELS",
        "a YAML file of your own models, used if --models is not given",
    ),
    EnvironmentVariable(
        "OPENAI_API_KEY",
        "the key of a server that speaks the OpenAI protocol; the backend's option api_key_env names another variable",
    ),
    EnvironmentVariable(
        "OPENAI_BASE_URL",
        "the address of a server that speaks the OpenAI protocol, used if --base-url is not given",
    ),
    EnvironmentVariable(
        "VLLM_API_KEY",
        "the key of a vLLM server that is already running; the backend's option api_key_env names another variable",
    ),
    EnvironmentVariable(
        "VLLM_WORKER_MULTIPROCESSING_METHOD",
        "set to spawn if vLLM runs in this process, unless already set",
    ),
    EnvironmentVariable(
        "VLLM_LOGGING_LEVEL",
        "set to WARNING if vLLM runs in this process, unless already set",
    ),
    EnvironmentVariable(
        "LITELLM_LOCAL_MODEL_COST_MAP",
        "set to True for litellm, unless already set: litellm then downloads no price list",
    ),
    EnvironmentVariable(
        "LITELLM_MODE",
        "set to PRODUCTION for litellm, unless already set: litellm then reads no .env file",
    ),
    EnvironmentVariable("LITELLM_LOG", "set to ERROR for litellm, unless already set"),
    EnvironmentVariable(
        "RAY_ADDRESS",
        "the cluster of --executor ray, used if --executor-option address is not given",
    ),
    EnvironmentVariable(
        "RAY_USAGE_STATS_ENABLED",
        "set to 0 for Ray, unless already set: it then reports nothing",
    ),
    EnvironmentVariable(
        "GITHUB_STEP_SUMMARY",
        "the file to which the report is appended, which GitHub shows as the job's summary; GitHub Actions sets it",
    ),
    EnvironmentVariable(
        "GITHUB_ACTIONS",
        "if true, what is wrong with the run (a FAIL, a loss, ...) becomes annotations of the job; GitHub Actions sets it",
    ),
    EnvironmentVariable(
        "CI",
        "if true, the end of the report names the artifact of the job instead of a command that opens a file; most CI "
        "services set it",
    ),
    EnvironmentVariable(
        "GITHUB_SERVER_URL",
        "with GITHUB_REPOSITORY and GITHUB_RUN_ID, the link to the job in a run's comment.md",
    ),
    EnvironmentVariable("GITHUB_REPOSITORY", "the repository of the job"),
    EnvironmentVariable("GITHUB_RUN_ID", "the number of the job's run"),
    EnvironmentVariable(
        "NO_COLOR", "if set, neither pytest nor cheesebench uses colours"
    ),
    EnvironmentVariable("PYTEST_ADDOPTS", "more options of pytest"),
    EnvironmentVariable(
        "XDG_CACHE_HOME",
        "the parent of two directories (default: ~/.cache): cheesebench/weights, where the parts of a model's weights "
        "are joined, and cheesebench/audits, where an audit saves its progress",
    ),
    EnvironmentVariable(
        "XDG_STATE_HOME",
        "the directory that holds the file cheesebench/key, which shows that a run was made by you on this machine "
        "(default: ~/.local/state)",
    ),
    EnvironmentVariable(
        "TERM",
        "if dumb: no colours and no progress line, and 'cheesebench play' draws without moving the cursor",
    ),
    EnvironmentVariable(
        "PATH",
        "directories searched for a vllm command, after the directory of this Python",
    ),
)
