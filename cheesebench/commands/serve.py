"""``cheesebench serve``: serves protocols as environments for training language models,
over OpenEnv.
"""

from __future__ import annotations

import argparse
import logging
import sys
from typing import TYPE_CHECKING

from cheesebench.commands import common
from cheesebench.errors import OptionError
from cheesebench.extras import install_command
from cheesebench.interop.asgi_guard import AsgiGuard
from cheesebench.interop.hosted import hosted
from cheesebench.interrupts import passed_to
from cheesebench.server import http_guard

if TYPE_CHECKING:
    from cheesebench.interop.openenv_server import Served


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.describe(
        parser,
        "Serves protocols as an OpenEnv environment until Ctrl-C. A client answers the prompts that a model is given "
        "in a run. reset(split='test', seed=7, subject=3) gives a life (all trials of a subject) of 'pytest --seed 7'. "
        "Any other life has a training seed, which no run draws.",
        "--openenv t_maze dnms",
        "--openenv my.protocol.yaml --episode trial --reward success --agent llm-tools",
    )
    parser.add_argument(
        "protocols",
        metavar="PROTOCOL",
        nargs="*",
        help="names or files (default: the built-in protocols)",
    )
    parser.add_argument(
        "--openenv", action="store_true", required=True, help="the interface to serve"
    )
    parser.add_argument(
        "--episode",
        choices=("life", "trial"),
        default="life",
        help="what an episode is: all trials of a subject (life, the default), or one trial",
    )
    parser.add_argument(
        "--reward",
        choices=("protocol", "success"),
        default="protocol",
        help="reward of a trial: the protocol's (default), or 1 for a success and 0 otherwise",
    )
    common.add_option(
        parser,
        "view",
        default="ascii_2d",
        action="store",
        help="a text view (default: ascii_2d)",
    )
    common.add_option(parser, "edition", default=None)
    common.add_option(parser, "agent")
    common.add_option(parser, "agent-option")
    seed = "training seed of lives that name none (default: 0)"
    parser.add_argument(
        "--seed", metavar="N", type=common.whole_number, default=0, help=seed
    )
    parser.add_argument(
        "--sessions",
        metavar="N",
        type=common.positive_number,
        default=256,
        help="maximum number of lives at a time (default: 256)",
    )
    parser.add_argument(
        "--sessions-each",
        metavar="N",
        type=common.positive_number,
        help="maximum number of lives at a time for one client (default: all, or a quarter if other machines can connect)",
    )
    parser.add_argument(
        "--address",
        metavar="ADDRESS",
        default=http_guard.LOOPBACK,
        help="listen on this address (default: 127.0.0.1, this machine only)",
    )
    parser.add_argument(
        "--host-name",
        metavar="HOST:PORT",
        action="append",
        default=[],
        help="host name by which clients reach this machine; repeatable",
    )
    parser.add_argument(
        "--port",
        metavar="N",
        type=common.port_number,
        default=8000,
        help="listen on this port (default: 8000)",
    )


def run(options: argparse.Namespace) -> int:
    try:
        # The import is here because the module imports OpenEnv, which is an extra.
        from cheesebench.interop.openenv_server import Served
    except ImportError as error:
        raise OptionError(
            f"--openenv needs OpenEnv ({error}). Install it: {install_command('openenv')}"
        ) from None
    http_guard.check_address(options.address, options.port)
    given = options.agent_option or ()
    if wrong := next((one for one in given if "=" not in one), None):
        raise OptionError(f"--agent-option {wrong}: write NAME=VALUE.")
    settings = dict(one.split("=", 1) for one in given)
    cells = hosted(
        options.protocols,
        edition=options.edition,
        agent=options.agent,
        settings=settings,
        view=options.view,
    )
    served = Served(
        cells, episode=options.episode, reward=options.reward, seed=options.seed
    )
    _listen(options, served, len(cells))
    if trained := [name for name, count in served.begun.items() if count]:
        print(
            f"Training lives: {', '.join(f'{name} {served.begun[name]}' for name in trained)}. Reports mention the "
            f"training if the model's entry (--models FILE) has:\n    trained_on: [{', '.join(trained)}]",
            file=sys.stderr,
        )
    return 0


def _listen(options: argparse.Namespace, served: Served, protocols: int) -> None:
    import uvicorn

    door = http_guard.RequestGuard(
        token="",
        address=options.address,
        port=options.port,
        names=tuple(options.host_name),
    )
    local = door.is_local
    each = options.sessions_each or max(1, options.sessions // (1 if local else 4))
    at = f"http://{options.address}:{options.port}"
    most = f"{common.counted(options.sessions, 'session')} at a time, {each} for one client"
    open_door = (
        ""
        if local
        else f"Anybody who reaches {options.address}:{options.port} can play these protocols and read their prompts, "
        "including the prompts of lives that verdicts use. Let only your own machines in.\n"
    )
    print(
        f"OpenEnv at {at}: {common.counted(protocols, 'protocol')}, {most}. Ctrl-C stops the server.\n{open_door}",
        end="",
        file=sys.stderr,
        flush=True,
    )
    server = uvicorn.Server(
        uvicorn.Config(
            AsgiGuard(served.app(options.sessions), door, each),
            host=options.address,
            port=options.port,
            log_level="warning",
            ws_max_size=AsgiGuard.largest,
        )
    )
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    with passed_to(lambda: setattr(server, "should_exit", True)):
        server.run()


def _is_news(record: logging.LogRecord) -> bool:
    """Return whether to show a line of uvicorn's log. Lines that only say that the
    guard has refused a WebSocket are left out, because any page in a browser can cause
    them.
    """
    return "returned without completing handshake" not in record.getMessage()
