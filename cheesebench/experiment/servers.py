"""The servers of one model: which of them a subject stays with, and who takes over when one of them dies.

A server keeps the beginnings of prompts in its cache, so all calls of a subject go to one server, its *home*. Homes are
dealt out in the order of the subjects' first calls, each time to the server that has the fewest: the load is even
whatever is left to do, and however fast the servers are. While its home is dead, a subject is the guest of another
server. What a record says does not depend on who answered, so nothing of this is in the records.
"""

from __future__ import annotations

import ipaddress
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit, urlunsplit

from cheesebench.chat import TRANSIENT, ChatFaultError, Connection, FaultKind
from cheesebench.errors import OptionError

if TYPE_CHECKING:
    from cheesebench.experiment.limiter import Limiter

#: What the journal calls a line about a server, and one about a call that is tried again.
Told = Literal["server", "retry"]
Tell = Callable[[Told, str], None]
#: Faults that tell of a crowd rather than of a call.
THROTTLES: frozenset[FaultKind] = frozenset({"rate_limit", "overload"})
#: Seconds until a dead server is tried again; doubled each time, up to LONGEST_ABSENCE.
FIRST_ABSENCE, LONGEST_ABSENCE = 1.0, 60.0
#: Calls in a row that a server has to break (status 500, no JSON) to count as dead: one may break it by what it asks.
BROKEN = 3
#: Seconds for which a server has to do nothing but refuse, to count as dead.
REFUSING = 60.0
#: Seconds of a pause that is worth a line, and until the next such line.
NOTICED, HUSH = 1.5, 60.0


@dataclass(slots=True, eq=False)
class ModelServer:
    """One server of a model. ``name`` is its scheme, host and port; empty where the backend knows the only one."""

    name: str
    connection: Connection | None
    limiter: Limiter
    #: Subjects that are at home here, and those that are guests.
    subjects: int = 0
    guests: int = 0
    #: Calls that it has answered.
    calls: int = 0
    up: bool = True
    #: Whether it is not asked again in this session: its key or its model is a wrong one.
    retired: bool = False
    #: When it is tried again while it is dead, and the pause before that.
    retry_at: float = 0.0
    absence: float = field(default_factory=lambda: FIRST_ABSENCE)
    #: When it last came up, and when it last answered.
    up_since: float = 0.0
    answered_at: float = 0.0
    #: Faults since then, and when the first of them came.
    faults: int = 0
    failing_since: float = 0.0


@dataclass(slots=True, eq=False)
class Stay:
    """Where a subject's calls go: its home; its host while the home is dead; a dead server that it tries again."""

    home: ModelServer | None = None
    host: ModelServer | None = None
    trying: ModelServer | None = None


class ServerPool:
    """The servers of one model, at least one. For one event loop.

    ``tell`` is given a kind of the journal and a line: ``server`` when one dies or comes back, ``retry`` when a call is
    tried again.
    """

    def __init__(self, servers: Sequence[ModelServer], tell: Tell = lambda kind, line: None) -> None:
        self.servers = tuple(servers)
        self._tell = tell
        #: Until when (monotonic) nothing more is said of calls that are tried again.
        self._hushed_until = 0.0

    def server_for(self, stay: Stay) -> ModelServer:
        """Return who is asked next for a subject. A dead server is asked only if no other is left, or to try it."""
        if len(self.servers) == 1:
            return self.servers[0]
        if stay.trying is not None:
            return stay.trying
        if stay.home is None:
            # All who were at home with a dead server may have ended meanwhile: then whoever is new tries it.
            due = next((server for server in self.servers if not server.up and self._is_due(server)), None)
            stay.home = due or self._fewest()
            stay.home.subjects += 1
            if due is not None:
                stay.trying = due
                return due
        if stay.home.up:
            self._leave(stay)
            return stay.home
        if self._is_due(stay.home):
            stay.trying = stay.home
            return stay.home
        if stay.host is None or not stay.host.up:
            self._leave(stay)
            if not any(server.up for server in self.servers):
                return self._next_tried()
            stay.host = self._fewest()
            stay.host.guests += 1
        return stay.host

    def answered(self, server: ModelServer) -> None:
        """A reply has come; a dead server is up again."""
        now = time.monotonic()
        server.calls += 1
        server.faults, server.answered_at = 0, now
        if not server.up and not server.retired:
            server.up, server.up_since = True, now
            self._tell("server", f"{server.name} answers again.")

    def failed(self, server: ModelServer, fault: ChatFaultError, sent: float) -> bool:
        """A call that was sent at ``sent`` (monotonic) has failed; return whether another server can take it at once.

        It can if this server is dead and that one is up.
        """
        if len(self.servers) == 1 or fault.kind not in TRANSIENT:
            return False
        now = time.monotonic()
        server.failing_since = server.failing_since if server.faults else now
        server.faults += 1
        if server.up and _is_death(server, fault, sent):
            self._lose(server, str(fault))
        elif not server.up:
            self._is_due(server)  # where none is up, the next one is tried next
        return not server.up and any(other.up for other in self.servers)

    def retrying(self, text: str, retry: int, most: int | None, pause: float) -> None:
        """Say that a call is tried again in ``pause`` seconds, if somebody would notice, and once a minute at most."""
        now = time.monotonic()
        if pause < NOTICED or now < self._hushed_until:
            return
        self._hushed_until = now + HUSH
        of = "" if most is None else f" of {most}"
        self._tell("retry", f"{text}; retry {retry}{of} in {pause:.0f} s")

    def retire(self, server: ModelServer, text: str) -> bool:
        """Never ask a server again; return whether there are others."""
        if len(self.servers) == 1:
            return False
        if not server.retired:
            server.retired = True
            self._lose(server, text)
        return not all(other.retired for other in self.servers)

    def resume(self) -> None:
        """End all pauses early."""
        for server in self.servers:
            server.limiter.resume()

    @property
    def none_left(self) -> str:
        """Words for an error where all of several servers are dead; else nothing."""
        dead = len(self.servers) > 1 and not any(server.up for server in self.servers)
        return f"none of the {len(self.servers)} servers answers; the last one said: " if dead else ""

    def load(self) -> str:
        """Return how many subjects and calls each server has had, as a line for the journal."""
        return "; ".join(
            f"{server.name or 'the server'}: {server.subjects} subjects, {server.calls} calls"
            for server in self.servers
        )

    def _lose(self, server: ModelServer, text: str) -> None:
        now = time.monotonic()
        if now - server.up_since > LONGEST_ABSENCE:
            server.absence = FIRST_ABSENCE  # one that comes and goes is tried more and more rarely
        server.up, server.retry_at = False, now + server.absence
        # Whoever waits there for a place has to wait no longer.
        server.limiter.resume()
        up = sum(other.up for other in self.servers)
        rest = f"its subjects go on with the other {up}" if up > 1 else "its subjects go on with the other one"
        self._tell("server", f"{server.name} does not answer any more; {rest if up else 'no server is left'} ({text})")

    def _fewest(self) -> ModelServer:
        """Return the server with the fewest subjects, the first of those in the list, among those that are up."""
        up = [server for server in self.servers if server.up]
        return min(up or [self._next_tried()], key=lambda server: server.subjects + server.guests)

    def _next_tried(self) -> ModelServer:
        """Return the server to ask where none is up."""
        return min(self.servers, key=lambda server: (server.retired, server.retry_at))

    def _is_due(self, server: ModelServer) -> bool:
        """Return whether a dead server is to be tried now; whoever asks is the one who tries it."""
        now = time.monotonic()
        if server.retired or now < server.retry_at:
            return False
        server.retry_at, server.absence = now + server.absence, min(2 * server.absence, LONGEST_ABSENCE)
        return True

    @staticmethod
    def _leave(stay: Stay) -> None:
        if stay.host is not None:
            stay.host.guests -= 1
            stay.host = None


def _is_death(server: ModelServer, fault: ChatFaultError, sent: float) -> bool:
    """Return whether a fault says that the server is dead, and not only that a call went wrong."""
    if sent < server.up_since:  # an earlier death
        return False
    if fault.kind == "connection":
        return True
    if fault.kind == "timeout":  # others may well be answered in the meantime
        return server.answered_at < sent
    if fault.kind in THROTTLES:
        return time.monotonic() - server.failing_since > REFUSING
    return server.faults >= BROKEN


def addresses(given: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return the URLs that an option, or a started server, names: one or several, also with commas between them."""
    texts = [given] if isinstance(given, str) else list(given or ())
    return tuple(dict.fromkeys(url for text in texts for part in text.split(",") if (url := part.strip())))


def server_name(url: str | None) -> str:
    """Return scheme, host and port of a URL: what may be said about a server without giving anything away."""
    try:
        parts = urlsplit(url or "")
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    return f"{parts.scheme}://{host}{port}" if parts.scheme and host else ""


def check_address(url: str) -> None:
    """Raise OptionError for a URL that holds a user or a password, because it is written down."""
    if "@" in urlsplit(url).netloc:
        raise OptionError(
            "--base-url contains a user name or password. Put the key into an environment variable instead."
        )


def each_address(url: str) -> tuple[str, ...]:
    """Return one URL for each server behind a name; the URL itself where it stands for one.

    A plain name (``http://vllm:8000/v1``) that the name service resolves to several private addresses of one kind is
    that of several servers, such as the pods of a headless service in Kubernetes. A name with a certificate, and a
    public one, is one server: behind it is a balancer of its own.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or 80
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM) if parts.scheme == "http" else []
    except (OSError, ValueError):
        return (url,)
    # A machine may have an address of either kind; in the order of their numbers, which is the same for everybody.
    kind = min((family for family, *_ in found), default=None)
    ips = sorted({ipaddress.ip_address(where[0]) for family, *_, where in found if family == kind})
    if len(ips) < 2 or not all(ip.is_private for ip in ips):
        return (url,)
    port_text = f":{parts.port}" if parts.port else ""
    named = (f"[{ip}]" if ip.version == 6 else str(ip) for ip in ips)
    return tuple(urlunsplit(parts._replace(netloc=f"{ip}{port_text}")) for ip in named)


def is_private(url: str) -> bool:
    """Return whether the host of a URL is this machine or in a private network."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host == "localhost" or host.endswith((".localhost", ".local"))
