"""The run options about language models: server, agent settings, and limits on calls and cost."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cheesebench.errors import OptionError, UnknownNameError
from cheesebench.experiment.budget import Limits
from cheesebench.experiment.calling import Patience
from cheesebench.experiment.contestants import LanguageModel, language_model
from cheesebench.experiment.designs import find_design, usual_design
from cheesebench.experiment.language_models import CallOptions
from cheesebench.experiment.records import PERSON
from cheesebench.experiment.run_options import RunOptions
from cheesebench.experiment.servers import addresses, check_address
from cheesebench.models import resolve_model
from cheesebench.options import OPTIONS

if TYPE_CHECKING:
    from cheesebench.chat import ModelEntry
    from cheesebench.plugin_manager import PluginManager

#: What the query of a URL may not hold, because the URL is written down.
_SECRETS = re.compile(r"[?&][^=&#]*(key|token|secret|passw|credential|sig)[^=&#]*=.", re.IGNORECASE)


def language_models(
    plugins: PluginManager, names: Iterable[str], options: RunOptions, entries: Iterable[ModelEntry] = ()
) -> dict[str, LanguageModel]:
    """Return those of ``names`` that are language models.

    Raises a CheeseBenchError for a name that is neither agent nor model, and for options that mean nothing.
    """
    settings: dict[str, Any] = {
        option.setting: options.value(option.key) for option in OPTIONS if option.models_only and option.setting
    }
    if isinstance(settings["temperature"], list):
        # Of several, each cell takes its own; the first stands for all where they are checked.
        settings["temperature"] = settings["temperature"][0]
    if settings["prompt"] is not None:
        settings["prompt"] = _prompt(settings["prompt"])
    settings |= pairs(options, "agent_option")
    agent = options.value("agent")
    if agent in plugins.model_agents:
        usual = find_design(options.value("design") or usual_design(True)).settings
        own = plugins.model_agent(agent).settings
        settings |= {name: value for name, value in usual.items() if settings.get(name) is None and name in own}
    urls = addresses(options.value("base_url"))
    for url in urls:
        if _SECRETS.search(url):
            raise OptionError(
                "--base-url contains a key and would be recorded. Put the key into an environment variable."
            )
        check_address(url)
    backend_options = pairs(options, "backend_option")
    entries = tuple(entries)
    models = {}
    for name in names:
        if name in plugins.agents or name in plugins.respondents:
            continue
        try:
            entry = resolve_model(plugins, name, entries)
        except UnknownNameError:
            if name == PERSON:
                raise OptionError(f"--model {name}: people are run by 'cheesebench people --protocols NAME'.") from None
            raise
        models[name] = language_model(
            plugins,
            entry,
            agent=agent,
            settings=settings,
            base_url=urls,
            options=backend_options,
        )
    served = {model.entry.backend for model in models.values()}
    if urls and len(served) > 1:
        # One backend's key must not go to another one's server.
        raise OptionError(
            f"--base-url {','.join(urls)}: the models use different backends ({', '.join(sorted(served))}), so one "
            "server cannot serve all of them. Run them one after another."
        )
    if not models:
        meant = [
            option.key
            for option in OPTIONS
            if option.models_only and options.value(option.key) not in (None, [], option.default)
        ]
        if meant:
            raise OptionError(
                f"{options.spelling(meant[0])} applies only to language models, and {', '.join(names)} is not one. "
                "Remove it."
            )
    return models


#: Most bytes of a prompt from a file.
_MOST_PROMPT = 64 * 1024


def _prompt(name: str) -> str:
    """Return the name of a prompt as it is; for what looks like a file (``my.txt``, ``./mine``) the text in it."""
    path = Path(name)
    if not path.suffix and path.name == name:
        return name
    try:
        if path.exists() and not path.is_file():  # a FIFO would be waited for
            raise OSError(errno.EINVAL, "it is not a file")
        with path.open(encoding="utf-8") as file:
            text = file.read(_MOST_PROMPT + 1)
    except (OSError, ValueError) as error:  # ValueError: no UTF-8, or a path that cannot be one
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise OptionError(f"--prompt {name} cannot be read: {reason}. Name a text file.") from None
    if len(text.split()) < 2 or len(text.encode()) > _MOST_PROMPT:
        raise OptionError(f"--prompt {name}: a prompt must have more than one word and at most {_MOST_PROMPT} bytes.")
    return text.strip()


def pairs(options: RunOptions, key: str) -> dict[str, str]:
    """Return an option of the form ``NAME=VALUE`` as a mapping."""
    mapping = {}
    for text in options.value(key) or ():
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise OptionError(f"{options.spelling(key)} {text}: expected NAME=VALUE, for example seed=1.")
        mapping[name.strip().replace("-", "_")] = value.strip()
    return mapping


def call_options(options: RunOptions) -> CallOptions:
    """Return the timeouts, retries, concurrency and budget of the run's calls."""
    return CallOptions(
        concurrency=options.value("concurrency"),
        patience=Patience(
            request=options.value("timeout"),
            trial=options.value("trial_timeout"),
            retries=options.value("retries"),
        ),
        limits=Limits(
            cost=options.value("max_cost"), tokens=options.value("max_tokens"), minutes=options.value("max_minutes")
        ),
        retry_errors=bool(options.value("retry_errors")),
    )


def check_prices(limits: Limits, models: Iterable[LanguageModel]) -> None:
    """Raise OptionError if there is a limit in dollars for a model without a known price."""
    for model in models:
        if limits.cost is not None and model.entry.price is None:
            raise OptionError(
                f"--max-cost {limits.cost:g}: no price is known for '{model.entry.name}', so its cost cannot be "
                "limited. Give --max-tokens instead, or a price in a file of models (--models)."
            )
