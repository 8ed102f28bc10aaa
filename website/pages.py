"""The generated parts of pages, under the names that pages use for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from website import (
    animals,
    attacks,
    built_in,
    commands,
    keys,
    lesions,
    models,
    protocols,
    published,
    readme,
    runs,
    verdicts,
)

#: Functions that return the Markdown for ``<!-- generated: NAME -->``, by name.
PARTS: Mapping[str, Callable[[], str]] = {
    "animals": animals.animals,
    "attacks": attacks.attacks,
    "classics": lesions.classics,
    "keys": keys.protocol_keys,
    "dialogue-keys": keys.dialogue_keys,
    "findings": keys.findings,
    "commands": commands.commands,
    "options": commands.options,
    "ini": commands.ini_settings,
    "environment": commands.environment,
    "hook-version": built_in.hook_version,
    "agents": built_in.agents,
    "backends": built_in.backends,
    "views": built_in.views,
    "reporters": built_in.reporters,
    "designs": built_in.designs,
    "studies": built_in.studies,
    "models": models.models,
    "protocols": protocols.protocols,
    "published": published.numbers,
    "readme": readme.readme,
    "run-log": runs.run_log,
    "verdicts": verdicts.verdicts,
    "thresholds": verdicts.thresholds,
    "outcomes": verdicts.outcomes,
    "flags": verdicts.flags,
    "examples": verdicts.examples,
}
