"""The contestants that ``--model`` names: an agent, or a language model with the agent that prompts it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cheesebench.chat import BackendContext, BackendSpec, Connection, ModelAgentSpec, ModelEntry
from cheesebench.errors import OptionError, PluginError, did_you_mean
from cheesebench.experiment.servers import addresses
from cheesebench.interfaces import PictureView

if TYPE_CHECKING:
    from cheesebench.experiment.records import CellPlan
    from cheesebench.interfaces import View
    from cheesebench.plugin_manager import PluginManager


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageModel:
    """A language model under test: its backend, the agent that prompts it, and the settings.

    ``settings`` (JSON values) has every parameter of agent and model that can affect a reply, and ``dropped``, the
    parameters that are not sent because the model or its backend does not accept them. They are stored in, and read
    from, the plan of each cell. ``base_urls`` are its servers; none where the backend starts one or knows its own.
    """

    entry: ModelEntry
    backend: BackendSpec
    agent: ModelAgentSpec
    settings: Mapping[str, Any]
    base_urls: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


def language_model(
    plugins: PluginManager,
    entry: ModelEntry,
    *,
    agent: str = "llm",
    settings: Mapping[str, Any] | None = None,
    base_url: str | Iterable[str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> LanguageModel:
    """Return a model with its agent; ``settings`` are the user's own (strings are read as the defaults' types).

    ``base_url`` is one or several, also with commas between them; the backend's option of that name counts without it.

    Raises OptionError for settings that the agent, the model or its backend does not have.
    """
    backend, asker = plugins.backend(entry.backend), plugins.model_agent(agent)
    wanted = {name: value for name, value in (settings or {}).items() if value is not None}
    values = {**asker.settings, **{name: _typed(asker, name, value) for name, value in wanted.items()}}
    if entry.max_tokens is not None and "max_tokens" not in wanted:
        values["max_tokens"] = entry.max_tokens
    asker.check(values)
    able = {"temperature": backend.capabilities.temperature, "seed": backend.capabilities.seed}
    dropped = [name for name in ("temperature", "seed") if name in entry.drops or not able[name]]
    if "temperature" in dropped and "temperature" in wanted:
        raise OptionError(
            f"--temperature {wanted['temperature']}: the model '{entry.name}' does not support it. Remove the option."
        )
    if "temperature" in dropped:
        values["temperature"] = None
    given = dict(options or {})
    unknown = sorted(set(given) - set(backend.options))
    if unknown:
        hint = did_you_mean(unknown[0], backend.options) or f" Known: {', '.join(sorted(backend.options)) or 'none'}."
        raise OptionError(f"The backend '{backend.name}' has no option '{unknown[0]}'.{hint}")
    wishes = {**entry.options, **given}
    return LanguageModel(
        entry=entry,
        backend=backend,
        agent=asker,
        settings={
            **values,
            "backend": entry.backend,
            "id": entry.id,
            "served": dict(entry.served),
            "dropped": dropped,
        },
        base_urls=addresses(base_url) or addresses(wishes.get("base_url")),
        options=wishes,
    )


def varied(model: LanguageModel, changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of a model with some of its agent's changed; OptionError where that makes no sense."""
    agent = model.agent
    values = {name: model.settings[name] for name in agent.settings}
    values |= {name: _typed(agent, name, value) for name, value in changes.items()}
    if values.get("temperature") != model.settings.get("temperature") and "temperature" in model.settings["dropped"]:
        raise OptionError(f"The model '{model.entry.name}' does not support a temperature, so it cannot be varied.")
    agent.check(values)
    return {**model.settings, **values}


def _typed(agent: ModelAgentSpec, name: str, value: Any) -> Any:
    if name not in agent.settings:
        hint = did_you_mean(name, agent.settings) or f" Known: {', '.join(agent.settings) or 'none'}."
        raise OptionError(f"The agent '{agent.name}' has no setting '{name}'.{hint}")
    default = agent.settings[name]
    reader = agent.readers.get(name)
    if not isinstance(value, str) or (reader is None and isinstance(default, str)):
        return value
    try:
        if reader is not None:
            return reader(value)
        if isinstance(default, bool):
            return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[value.lower()]
        return type(default)(value)
    except (KeyError, ValueError):
        raise OptionError(f"{name}={value}: expected a value such as {default!r}.") from None


def check_views(name: str, model: LanguageModel | None, views: Iterable[View]) -> None:
    """Raise OptionError if ``name`` (None: an agent that acts by itself) cannot look at one of the views."""
    for view in views:
        if not isinstance(view, PictureView):
            continue
        if model is None:
            who = f"the agent '{name}' reads text"
        elif not model.entry.images:
            who = f"the model '{name}' is not registered as a vision model"
        elif not model.backend.capabilities.images:
            who = f"the backend '{model.backend.name}' cannot send images"
        else:
            continue
        raise OptionError(f"--view {view.name} draws images, but {who}. Choose a text view, such as ascii_2d.")


def replayed_models(plugins: PluginManager, plans: Iterable[CellPlan]) -> dict[str, LanguageModel]:
    """Return the language models of a recorded run, as described by its plans, without a server."""
    return {
        plan.model: LanguageModel(
            entry=ModelEntry(name=plan.model, backend=REPLAY.name, id=plan.settings["id"]),
            backend=REPLAY,
            agent=plugins.model_agent(plan.agent),
            settings=plan.settings,
        )
        for plan in plans
        if plan.agent
    }


def _no_server(context: BackendContext) -> Connection:
    raise PluginError(f"A replay has no server for '{context.entry.name}'.")


#: Stands for the backend where recorded replies are given once more.
REPLAY = BackendSpec(name="replay", connect=_no_server, probe=False, summary="replies of a finished run, without calls")
