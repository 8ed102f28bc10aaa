"""``cheesebench people``: lets people take part in paradigms in the browser. Their
trials are recorded as an ordinary run.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cheesebench.commands.common import (
    add_option,
    add_options,
    counted,
    describe,
    installed_catalogue,
    port_number,
)
from cheesebench.commands.project import project_protocols
from cheesebench.errors import OptionError
from cheesebench.experiment import cells as run_cells
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import check_fits, claim, locate
from cheesebench.experiment.provenance import (
    SEED_DRAWN,
    draw_seed,
    new_run_id,
    recorded_options,
)
from cheesebench.experiment.replay import recorded_protocol
from cheesebench.files import read_bytes
from cheesebench.options import BY_KEY
from cheesebench.plugin_manager import PluginManager, installed_plugins
from cheesebench.protocol import with_arena
from cheesebench.records import PERSON
from cheesebench.server import people
from cheesebench.server.http_guard import (
    LOOPBACK,
    RequestGuard,
    check_address,
    new_token,
    serve,
)

if TYPE_CHECKING:
    from cheesebench.interfaces import BaseSpecification
    from cheesebench.protocol import Specification
    from cheesebench.records import CellPlan

    Cells = dict[CellPlan, BaseSpecification]

#: The default design and view for people. A resumed run keeps the design and view that
#: it was started with.
_DESIGN, _VIEW = "cohort", "ascii_2d"
#: Maximum size in bytes of a text that people read.
_MOST_BYTES = 64 * 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Prints a link. People who open it are told what is recorded. If they agree, they see exactly what a model is "
        "shown, with the same instructions, and act by pressing keys. Each person is a subject of the run, under the "
        "model 'human'. No names and no addresses are recorded. Ctrl-C ends the command, and --resume continues the run. "
        "--resume also takes a run of a model: people then do the same protocols, and one report shows both.",
        "--protocols t_maze --subjects 20",
        "--resume 20250131-093000-ab12",
        "--protocols t_maze --address 0.0.0.0 --host-name lab.example:8765 --port 8765",
    )
    about = (
        "a name, a *.protocol.yaml file or a directory of them; repeatable, or use commas (default: "
        f"{BY_KEY['protocols'].default_text})"
    )
    add_option(parser, "protocols", default=None, help=about)
    edition = "edition of the protocols chosen by name or directory (default: default)"
    add_option(parser, "edition", default=None, help=edition)
    add_option(
        parser,
        "view",
        default=None,
        action="store",
        help=f"the view in which people see the arena (default: {_VIEW})",
    )
    add_option(
        parser,
        "design",
        default=None,
        help=f"how many people and trials, as for pytest (default: {_DESIGN})",
    )
    add_option(
        parser,
        "subjects",
        default=None,
        help="how many people can take part (default: the number of subjects in the design)",
    )
    add_option(
        parser, "seed", default=None, help="seed of the run (default: drawn at random)"
    )
    add_option(
        parser,
        "agent",
        default="llm",
        help="the agent whose instructions people get (default: llm)",
    )
    add_options(parser, "resume", "run-id", "results")
    parser.add_argument(
        "--port",
        metavar="N",
        type=port_number,
        help="listen on this port (default: any free port; if resumed, the same port as before)",
    )
    parser.add_argument(
        "--address",
        metavar="ADDRESS",
        help="listen on this address (default: 127.0.0.1, this machine only)",
    )
    parser.add_argument(
        "--host-name",
        metavar="HOST[:PORT]",
        action="append",
        help="this machine's name in the link, as people's browsers know it; repeatable",
    )
    about = "file with a text that people must agree to, besides the list of what is recorded"
    parser.add_argument("--consent", metavar="FILE", help=about)
    parser.add_argument(
        "--debriefing",
        metavar="FILE",
        help="file with the text shown at the end, beside people's own curve",
    )
    about = "completion code, or link (https://...) back to the recruiting site, which people see at the end"
    parser.add_argument("--completion", metavar="CODE", default="", help=about)
    parser.add_argument(
        "--key-times",
        action="store_true",
        help="record the time before each key press, in ms",
    )


def run(options: argparse.Namespace) -> int:
    address = options.address or LOOPBACK
    names = tuple(options.host_name or ())
    if address in ("0.0.0.0", "::") and not names:
        raise OptionError(
            f"--address {address}: name this machine as people's browsers know it, with --host-name."
        )
    consent, debriefing = _paragraphs(options.consent), _paragraphs(options.debriefing)
    plugins = installed_plugins()
    instructions = _instructions(plugins, options.agent)
    check_address(address, options.port or 0)  # Check this before a run begins.
    with _opened(options, plugins) as (log, store, cells):
        if store.setting("key_times", str(options.key_times)) != str(options.key_times):
            how = "without" if options.key_times else "with"
            raise OptionError(
                f"This run was started {how} --key-times, and its people agreed to that. Resume it {how} --key-times, too."
            )
        told = instructions(
            getattr(plugins.view(next(iter(cells)).view), "reading", "")
        )
        words = people.Words(
            instructions=told,
            consent=consent,
            debriefing=debriefing,
            completion=options.completion,
        )
        seed = log.manifest["options"]["seed"]
        participants = people.Participants(
            log,
            store,
            [_task(plugins, plan, text) for plan, text in cells.items()],
            seed,
        )
        kept = int(store.setting("port", "0"))
        guard = RequestGuard(
            token=store.setting("token", new_token()),
            address=address,
            port=kept if options.port is None else options.port,
            names=names,
            methods=people.METHODS,
        )

        def begun(port: int) -> None:
            store.keep("port", str(port))
            print(
                f"Give this link to people (run {log.run_id}, {counted(participants.places, 'place')}):"
            )
            print(f"{guard.url(port)}")
            print(
                f"Ctrl-C stops the server. To continue: cheesebench people --resume {log.run_id}",
                flush=True,
            )

        serve(
            people.People(participants, words, options.key_times).serving(guard), begun
        )
        done = [len(log.completed_subjects(plan)) for plan in cells]
        enough = " No more people are needed." if participants.complete else ""
        taken = counted(store.count(), "place")
        print(
            f"{taken} taken, {min(done)} complete.{enough} To see the results: cheesebench report {log.run_id}"
        )
    return 0


@contextlib.contextmanager
def _opened(
    options: argparse.Namespace, plugins: PluginManager
) -> Iterator[tuple[RunLog, people.ParticipantStore, Cells]]:
    """Yield the log (new or resumed, and locked for this process), the store of
    participants, and the run's cells for people.
    """
    results = Path(options.results)
    with contextlib.ExitStack() as stack:
        if options.resume is not None:
            path = locate(results, options.resume)
            stack.callback(claim(path).close)
            log = stack.enter_context(RunLog.open(path))
            cells = _resumed(log, plugins, options)
        else:
            selection = _selection(options)
            cells = _planned(options, plugins, selection)
            values: dict[str, Any] = {
                option.key: option.default for option in BY_KEY.values()
            } | {
                "model": [next(iter(cells)).model],
                "view": [next(iter(cells)).view],
                "protocols": list(selection.names),
                "edition": options.edition or "default",
                "design": options.design or _DESIGN,
                "subjects": options.subjects,
                "seed": draw_seed() if options.seed is None else options.seed,
            }
            recorded = {**recorded_options(values), SEED_DRAWN: options.seed is None}
            run_id = options.run_id or new_run_id()
            log = stack.enter_context(
                RunLog.create(
                    results,
                    run_id,
                    cells.items(),
                    options=recorded,
                    plugins=plugins.strangers(),
                )
            )
            stack.callback(claim(log.path).close)
        store = people.ParticipantStore(log.directory)
        stack.callback(store.close)
        for plan in cells:
            complete = len(log.completed_subjects(plan))
            log.note(
                "started",
                f"{plan.subjects - complete} of {plan.subjects} people to come",
                plan,
            )
            if complete == plan.subjects:
                log.note(
                    "finished",
                    f"{complete} {'person' if complete == 1 else 'people'}",
                    plan,
                )
        stack.callback(log.note, "closed", "people")
        yield log, store, cells


def _selection(options: argparse.Namespace) -> run_cells.Selection:
    """Return the given protocols or, by default, the protocols that pytest's ini file
    or the environment names.
    """
    names, where = (options.protocols, "") if options.protocols else project_protocols()
    return run_cells.Selection(
        names=tuple(names),
        edition=options.edition or "default",
        named_edition=options.edition,
        directory=Path.cwd(),
        where=where,
    )


def _planned(
    options: argparse.Namespace, plugins: PluginManager, selection: run_cells.Selection
) -> Cells:
    if not selection.names:
        raise OptionError(
            "Name the protocols, such as --protocols t_maze. 'cheesebench list' shows them all."
        )
    design = run_cells.find_design(options.design or _DESIGN, options.subjects)
    cells: Cells = {}
    for one in run_cells.selected_protocols(installed_catalogue(), selection):
        if isinstance(one, run_cells.Broken):
            raise one.error
        specification = with_arena(one)
        cells[
            _plan(specification, plugins.view(options.view or _VIEW).name, design)
        ] = specification
    return cells


def _resumed(log: RunLog, plugins: PluginManager, options: argparse.Namespace) -> Cells:
    """Return the run's cells for people. If it has none, add one for each protocol that
    its models run, except dialogues.

    Raise OptionError for options that a resumed run cannot change.
    """
    fixed = (
        "protocols",
        "edition",
        "design",
        "seed",
        "run_id",
        *(("view", "subjects") if _has_people(log) else ()),
    )
    if given := [name for name in fixed if getattr(options, name) is not None]:
        raise OptionError(
            f"A resumed run keeps the settings that it was started with. Leave --{given[0].replace('_', '-')} out."
        )
    if not _has_people(log):
        log.add_cells(_beside_models(log, plugins, options).items())
    cells = [plan for plan in log.plans() if plan.model == PERSON]
    return {plan: recorded_protocol(log, plan, plugins) for plan in cells}


def _beside_models(
    log: RunLog, plugins: PluginManager, options: argparse.Namespace
) -> Cells:
    """Return a cell for people for each protocol of a run of models, except dialogues.
    Raise OptionError if there is no such protocol.
    """
    walked = {plan.protocol: plan for plan in log.plans() if not plan.items}
    if not walked:
        raise OptionError(
            f"The run '{log.run_id}' has no protocol with an arena, and people take part only in these. Name another run."
        )
    added: Cells = {}
    for plan in walked.values():
        specification = with_arena(recorded_protocol(log, plan, plugins))
        design = run_cells.find_design(plan.design, options.subjects or plan.subjects)
        view = plugins.view(options.view or plan.view).name
        added[_plan(specification, view, design)] = specification
    return added


def _has_people(log: RunLog) -> bool:

    return any(plan.model == PERSON for plan in log.plans())


def _plan(specification: Specification, view: str, design: Any) -> CellPlan:
    plan = run_cells.plan_cell(specification, PERSON, view, design, "life")
    check_fits(plan)
    return plan


def _task(
    plugins: PluginManager, plan: CellPlan, specification: BaseSpecification
) -> people.Task:
    return people.Task(
        plan=plan,
        paradigm=plugins.compile(specification),
        view=plugins.view(plan.view),
        steps=specification.most_calls,
    )


def _instructions(plugins: PluginManager, agent: str) -> Callable[[str], str]:
    """Return the agent's function that makes instructions for people from a view's
    explanation. Raise OptionError if the agent has none.
    """
    spec = plugins.model_agent(agent)
    if spec.instructions is None:
        able = ", ".join(
            sorted(
                name
                for name, one in plugins.model_agents.items()
                if one.instructions is not None
            )
        )
        raise OptionError(
            f"--agent {agent}: this agent has no instructions for people. Use one of: {able}."
        )
    return spec.instructions


def _paragraphs(path: str | None) -> list[str]:
    if path is None:
        return []
    try:
        content = read_bytes(path, _MOST_BYTES + 1)
        text = content.decode() if len(content) <= _MOST_BYTES else ""
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise OptionError(
            f"{path} cannot be read: {why}. Name a text file (UTF-8)."
        ) from None
    if len(content) > _MOST_BYTES:
        raise OptionError(
            f"{path} has more than {_MOST_BYTES // 1024} KB. Shorten the text."
        )
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]
