"""``cheesebench people``: the pages on which people live through the paradigms of a run."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cheesebench.interfaces import ACTIONS
from cheesebench.redaction import quoted
from cheesebench.server import pages
from cheesebench.server.door import Door, Serving
from cheesebench.server.participants import Participant, Participants, Shown, as_text, picture_of

if TYPE_CHECKING:
    from aiohttp import web

#: Methods that these pages need.
METHODS = ("GET", "HEAD", "POST")


class People:
    """Answers the requests of people: an invitation with what is recorded, and a page for each who agreed."""

    def __init__(self, participants: Participants, instructions: str, consent: Sequence[str] = ()) -> None:
        """``instructions`` are what a model is told, ``consent`` further paragraphs that people agree to."""
        self._participants = participants
        self._instructions = [part.split("\n") for part in instructions.split("\n\n")]
        self._consent = tuple(consent)

    def serving(self, door: Door) -> Serving:
        """Return the server of these pages."""
        routes = [
            ("GET", "", self.invitation),
            ("POST", "join", self.join),
            ("GET", "seat/{seat}/", self.seat_page),
            ("GET", "seat/{seat}/now", self.now),
            ("POST", "seat/{seat}/act", self.act),
        ]
        return Serving(door, routes, explains=False)

    async def invitation(self, request: web.Request) -> web.StreamResponse:
        """What a person is asked to agree to."""
        trials = sum(task.plan.trials for task in self._participants.tasks)
        return pages.page(
            "invitation.html.jinja",
            scripts=["invitation.js"],
            styles=["people.css"],
            trials=trials,
            tasks=len(self._participants.tasks),
            consent=self._consent,
        )

    async def join(self, request: web.Request) -> web.StreamResponse:
        """Give a place to a person who agreed."""
        wanted = await _content(request)
        if wanted.get("agreed") is not True:
            return _problem(400, "Nobody takes part without having agreed.")
        token = self._participants.join()
        if token is None:
            full = "All places are taken." if not self._participants.settled else "Enough people have taken part."
            return _problem(409, f"{full} Thank you for wanting to take part.")
        return _json({"seat": token})

    async def seat_page(self, request: web.Request) -> web.StreamResponse:
        """The page of one person."""
        self._find(request)
        return pages.page(
            "seat.html.jinja", scripts=["seat.js"], styles=["people.css"], instructions=self._instructions
        )

    async def now(self, request: web.Request) -> web.StreamResponse:
        """Where a person is: what was shown last."""
        return _json(_state(self._find(request)))

    async def act(self, request: web.Request) -> web.StreamResponse:
        """Execute one action of a person, if they saw the present moment when they chose it."""
        participant = self._find(request)
        wanted = await _content(request)
        action = wanted.get("action")
        if action not in ACTIONS:
            return _problem(400, f"The actions are {', '.join(ACTIONS)}.")
        if wanted.get("at") != participant.at:
            # Another tab of the same person, or a key that was sent twice: nothing happens, the page catches up.
            return _json(_state(participant) | {"stale": True})
        seen = self._participants.act(participant, ACTIONS.index(action))
        return _json(_state(participant) | {"shown": list(map(_shown, seen))})

    def _find(self, request: web.Request) -> Participant:
        from aiohttp import web

        participant = self._participants.find(request.match_info["seat"])
        if participant is None:
            raise web.HTTPNotFound(text="Nobody takes part at this address. Open the link that you were given again.")
        return participant


def _state(participant: Participant) -> dict[str, Any]:
    shown = participant.shown
    return {"at": participant.at, "over": participant.over, "shown": [] if shown is None else [_shown(shown)]}


def _shown(shown: Shown) -> dict[str, Any]:
    """Return what the page shows: exactly what a model is told of that step."""
    picture = picture_of(shown)
    return {
        "action": shown.action,
        "times": shown.times,
        "reward": as_text(shown) if shown.action else "",
        "ended": shown.ended,
        "text": str(shown.observation),
        "picture": None if picture is None else base64.b64encode(picture).decode(),
    }


async def _content(request: web.Request) -> dict[str, Any]:
    """Return the JSON object of a request, and nothing that a plain form of another site could send."""
    from aiohttp import web

    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="JSON is expected.")
    try:
        content = json.loads(await request.read())
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise web.HTTPBadRequest(text="A JSON object is expected.")
    return content


def _json(value: object) -> web.Response:
    from aiohttp import web

    return web.Response(text=json.dumps(value), content_type="application/json")


def _problem(status: int, text: str) -> web.Response:
    from aiohttp import web

    return web.Response(status=status, text=json.dumps({"problem": quoted(text)}), content_type="application/json")
