"""What the command line says of language models: who serves them, how they are asked, what it may cost."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cheesebench.errors import OptionError
from cheesebench.experiment.budget import Limits
from cheesebench.experiment.calling import Patience
from cheesebench.experiment.contestants import LanguageModel, language_model
from cheesebench.experiment.language_models import CallOptions
from cheesebench.models import resolve_model

if TYPE_CHECKING:
    from cheesebench.chat import ModelEntry
    from cheesebench.plugin_manager import PluginManager

#: Options of the interface, and the agent's settings that they are.
INTERFACE: Mapping[str, str] = {
    "history": "history",
    "actions": "actions",
    "prompt": "prompt",
    "temperature": "temperature",
    "reply_tokens": "max_tokens",
}
#: Those, and the others that decide which model it is and how it is asked: a resumed run keeps them.
RECORDED = ("agent", *INTERFACE, "agent_option", "backend_option")
#: What the query of a URL may not hold, because the URL is written down.
_SECRETS = re.compile(r"[?&][^=&#]*(key|token|secret|passw|credential|sig)[^=&#]*=.", re.IGNORECASE)


def language_models(
    plugins: PluginManager,
    names: Iterable[str],
    options: Mapping[str, Any],
    entries: Iterable[ModelEntry] = (),
) -> dict[str, LanguageModel]:
    """Return those of ``names`` that are language models; ``options`` are RECORDED ones and ``base_url``.

    Raises a CheeseBenchError for a name that is neither agent nor model, and for options that mean nothing.
    """
    settings: dict[str, Any] = {setting: options[option] for option, setting in INTERFACE.items()}
    if isinstance(settings["temperature"], list):
        # Of several, each cell takes its own; the first stands for all where they are checked.
        settings["temperature"] = settings["temperature"][0]
    settings |= pairs("cheese-agent-option", options["agent_option"] or ())
    if _SECRETS.search(options["base_url"] or ""):
        raise OptionError("--base-url holds a key, and is written down. Put the key into an environment variable.")
    backend_options = pairs("cheese-backend-option", options["backend_option"] or ())
    entries = tuple(entries)
    found = {}
    for name in names:
        if name in plugins.agents or name in plugins.respondents:
            continue
        found[name] = language_model(
            plugins,
            resolve_model(plugins, name, entries),
            agent=options["agent"],
            settings=settings,
            base_url=options["base_url"],
            options=backend_options,
        )
    served = {model.entry.backend for model in found.values()}
    if options["base_url"] and len(served) > 1:
        # One backend's key must not go to another one's server.
        raise OptionError(
            f"--base-url {options['base_url']}: the models are served in different ways ({', '.join(sorted(served))}), "
            "so one URL cannot be meant for all of them. Run them one after the other."
        )
    if not found:
        meant = [option for option in RECORDED if options[option] not in (None, [], "llm")]
        if meant:
            raise OptionError(
                f"--{meant[0].replace('_', '-')} is about language models; {', '.join(names)} is none. Leave it out."
            )
    return found


def pairs(option: str, given: Iterable[str]) -> dict[str, str]:
    """Return ``NAME=VALUE`` options as a mapping."""
    found = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise OptionError(f"--{option} {text}: expected NAME=VALUE, for example seed=1.")
        found[name.strip().replace("-", "_")] = value.strip()
    return found


def call_options(option: Callable[[str], Any]) -> CallOptions:
    """Return how calls are made; ``option`` looks an option up by its destination's name."""
    defaults, patience = CallOptions(), Patience()
    for name in ("concurrency", "timeout", "trial_timeout"):
        _positive(f"cheese-{name}", option(name))
    for name in ("max_tokens", "max_cost", "max_minutes"):
        _positive(name, option(name))
    retries = option("retries")
    if retries is not None and retries < 0:
        raise OptionError(f"--cheese-retries {retries}: the smallest number that makes sense is 0.")
    return CallOptions(
        concurrency=option("concurrency") or defaults.concurrency,
        patience=Patience(
            request=option("timeout") or patience.request,
            trial=option("trial_timeout") or patience.trial,
            retries=patience.retries if retries is None else retries,
        ),
        limits=Limits(cost=option("max_cost"), tokens=option("max_tokens"), minutes=option("max_minutes")),
        retry_errors=bool(option("retry_errors")),
    )


def check_prices(limits: Limits, models: Iterable[LanguageModel]) -> None:
    """Raise OptionError if there is a limit in dollars for a model of which nobody knows what it costs."""
    for model in models:
        if limits.cost is not None and model.entry.price is None:
            raise OptionError(
                f"--max-cost {limits.cost:g}: no price is known for '{model.entry.name}', so its cost cannot be "
                "limited. Give --max-tokens instead, or a price in a file of models (--cheese-models)."
            )


def _positive(name: str, value: float | None) -> None:
    if value is not None and not value > 0:
        raise OptionError(f"--{name.replace('_', '-')} {value}: give a number above 0.")
