"""Lesions: what is removed from a subject's observation, reward or memory. The
language, the audit and the controls of models use them.

A lesion has a text, such as ``blind+anhedonia``, which ``Lesion.parse`` parses.
``LesionedView`` implements the lesions that change the picture.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from cheesebench.errors import OptionError, did_you_mean
from cheesebench.interfaces import PictureView, Scene, Tile, View

#: One-word lesions, each with what it removes or leaves.
WORDS: Mapping[str, str] = {
    "blind": "no picture and no text; reward, its own actions and the clock remain",
    "pose-only": "only its position and heading, and no other part of the picture or text",
    "anhedonia": "no reward",
    "naive": "no learning from its own outcomes: no reward, but everything in the protocol file",
    "memoryless": "only the present observation: the same picture always gives the same action",
}
#: Words with which ``hide`` hides all landmarks, or all text.
LANDMARKS, TEXT = "landmarks", "text"
#: The word that ``amnesia`` accepts besides states. It erases memory between trials.
TRIAL = "trial"
_NOTHING = Tile("void", " ")


@dataclass(frozen=True, slots=True, order=True)
class Lesion:
    """What a subject lacks. ``Lesion()`` is the intact subject.

    ``words`` holds keys of WORDS. ``amnesia`` holds ``trial`` (memory is erased between
    trials) or states (when a trial first enters one of them, memory of the earlier part
    of that trial is erased). ``hide`` holds ``landmarks``, names of zones, solids,
    doors or groups, ``glyph:X``, ``text`` or ``text:STATE``.
    """

    words: frozenset[str] = frozenset()
    amnesia: frozenset[str] = frozenset()
    hide: frozenset[str] = frozenset()

    def __str__(self) -> str:
        parts = [word for word in WORDS if word in self.words]
        parts += [f"amnesia={name}" for name in sorted(self.amnesia)]
        parts += [f"hide={name}" for name in sorted(self.hide)]
        return "+".join(parts) or "intact"

    @classmethod
    def parse(cls, text: str) -> Lesion:
        """Parse a text such as ``blind``, ``hide=landmarks`` or
        ``blind+amnesia=trial``.

        Raise OptionError for an invalid lesion. Whether a zone or state exists is not
        checked here.
        """
        words, amnesia, hide = set(), set(), set()
        # Do not split at a glyph that is itself a plus (hide=glyph:+).
        for part in text.strip().replace("glyph:+", "glyph:\0").split("+"):
            kind, equals, name = (
                part.strip().replace("glyph:\0", "glyph:+").partition("=")
            )
            if kind == "amnesia" and name:
                amnesia.add(name)
            elif kind == "hide" and _can_be_hidden(name):
                hide.add(name)
            elif kind in WORDS and not equals:
                words.add(kind)
            elif text.strip() != "intact":
                raise OptionError(_no_lesion(part.strip()))
        return cls(frozenset(words), frozenset(amnesia), frozenset(hide))

    def __or__(self, other: Lesion) -> Lesion:
        return Lesion(
            self.words | other.words,
            self.amnesia | other.amnesia,
            self.hide | other.hide,
        )

    @property
    def sees_nothing(self) -> bool:
        return "blind" in self.words

    @property
    def sees_pose_only(self) -> bool:
        """Whether only the pose is visible. Blindness removes even the pose."""
        return "pose-only" in self.words and not self.sees_nothing

    @property
    def changes_the_picture(self) -> bool:
        """Whether anything visible is removed."""
        return self.sees_nothing or self.sees_pose_only or bool(self.hide)

    @property
    def feels_no_reward(self) -> bool:
        return bool(self.words & {"anhedonia", "naive"})

    def leaves_no_more_than(self, other: Lesion) -> bool:
        """Return whether the other lesion leaves everything that this lesion leaves to
        a subject.
        """
        words = self.words
        words |= {"pose-only"} if self.sees_nothing else set()
        words |= {"anhedonia", "naive"} if self.feels_no_reward else set()
        sees_less = self.sees_nothing or self.sees_pose_only or self.hide >= other.hide
        return (
            words >= other.words
            and sees_less
            and (self.memoryless or self.amnesia >= other.amnesia)
        )

    @property
    def memoryless(self) -> bool:
        return "memoryless" in self.words

    @property
    def forgets_trials(self) -> bool:
        return TRIAL in self.amnesia

    @property
    def forgets_at(self) -> frozenset[str]:
        """The states on whose entry memory is erased."""
        return self.amnesia - {TRIAL}


INTACT = Lesion()


def _can_be_hidden(name: str) -> bool:
    return name != "" and (not name.startswith("glyph:") or len(name) == len("glyph:X"))


def _no_lesion(part: str) -> str:
    hint = did_you_mean(part, [*WORDS, "amnesia=trial", "hide=landmarks"])
    known = f"{', '.join(WORDS)}, amnesia=trial, amnesia=STATE, hide=landmarks, hide=ZONE, hide=glyph:X, hide=text:STATE"
    return f"'{part}' is not a lesion.{hint} Known: {known}; join several with +."


@dataclass(frozen=True, slots=True)
class Hidden:
    """The hidden parts of a scene.

    ``landmarks`` hides all landmarks, and ``text`` all text. ``squares`` are hidden
    squares, as (column, row) of the scene, and ``glyphs`` hides every tile drawn with
    one of them. ``instead`` has the tiles that are shown at some hidden squares; all
    other hidden squares are shown as empty space. Each of ``texts`` matches the text of
    a state whose text is hidden.
    """

    landmarks: bool = False
    squares: frozenset[tuple[int, int]] = frozenset()
    glyphs: frozenset[str] = frozenset()
    text: bool = False
    texts: tuple[re.Pattern[str], ...] = ()
    instead: Mapping[tuple[int, int], Tile] = field(default_factory=dict)

    def filtered(self, scene: Scene) -> Scene:
        tiles = tuple(
            tuple(
                self.instead.get((column, row), _NOTHING)
                if self._hides(tile, (column, row))
                else tile
                for column, tile in enumerate(line)
            )
            for row, line in enumerate(scene.tiles)
        )
        lines = "\n".join(scene.text)
        is_hidden = self.text or any(pattern.fullmatch(lines) for pattern in self.texts)
        return Scene(tiles, () if is_hidden else scene.text)

    def _hides(self, tile: Tile, square: tuple[int, int]) -> bool:
        return (
            square in self.squares
            or tile.glyph in self.glyphs
            or (self.landmarks and tile.kind == "landmark")
        )


#: Maximum number of scenes that a lesioned view caches.
MOST_SCENES = 256


class LesionedView:
    """A view of what a lesion leaves of each scene: nothing, the pose, or the scene
    without its hidden parts.

    It is an ordinary view, with the ``name`` of the original view.
    """

    def __init__(self, view: View, lesion: Lesion, hidden: Hidden) -> None:
        self._view, self._lesion, self._hidden = view, lesion, hidden
        self.name = view.name
        self.characters = "0123456789 ." + view.characters
        reading = getattr(view, "reading", None)
        if reading is not None:
            self.reading = reading
        #: Each scene and what is left of it, by the scene's ``id``. Comparing scenes
        #: would take as long as filtering them.
        self._left: dict[int, tuple[Scene, Scene]] = {}

    def render(self, scene: Scene, column: int, row: int, heading: int) -> str:
        if self._lesion.sees_nothing:
            return "."
        if self._lesion.sees_pose_only:
            return f"{column} {row} {heading}"
        kept = self._left.get(id(scene))
        if kept is None:
            if len(self._left) >= MOST_SCENES:
                self._left.clear()
            kept = self._left[id(scene)] = scene, self._hidden.filtered(scene)
        return self._view.render(kept[1], column, row, heading)

    def max_length(self, scene: Scene) -> int:
        if self._lesion.sees_nothing or self._lesion.sees_pose_only:
            return (
                1
                + len(str(len(scene.tiles)))
                + len(str(max(map(len, scene.tiles), default=0)))
                + 3
            )
        return self._view.max_length(self._hidden.filtered(scene))


class _LesionedPictureView(LesionedView):
    """A LesionedView of a view that draws pictures."""

    def picture_size(self, scene: Scene) -> tuple[int, int]:
        assert isinstance(self._view, PictureView)
        return self._view.picture_size(scene)


def lesioned_view(view: View, lesion: Lesion, hidden: Hidden) -> View:
    """Return the view of a subject with a lesion, or the view itself if the lesion does
    not change the picture.

    Blind and pose-only subjects get text, even if the view draws pictures.
    """
    if not lesion.changes_the_picture:
        return view
    draws = isinstance(view, PictureView) and not (
        lesion.sees_nothing or lesion.sees_pose_only
    )
    return (_LesionedPictureView if draws else LesionedView)(view, lesion, hidden)
