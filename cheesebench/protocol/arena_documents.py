"""Typed models of the key `arena`; ``documents`` has the rest of a protocol file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from cheesebench.protocol.values import Glyph, GlyphOrBlank, Name, short_form


class Model(BaseModel):
    """Base of the models of a protocol file: unknown keys are errors, and values are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=True, defer_build=True)


#: As plugins import it.
DocumentModel = Model


class LegendEntry(Model):
    """What a map character stands for: one of zone, zones and solid, or a door (which may be in zones, too)."""

    zone: Name | None = Field(None, description="The cells belong to this zone.")
    zones: list[Name] | None = Field(None, description="The cells belong to all of these zones.")
    door: Name | None = Field(None, description="Floor that a state may close.")
    solid: Name | None = Field(None, description="Never entered; FORWARD presses it.")
    glyph: GlyphOrBlank | None = Field(
        None,
        description=(
            "How it is drawn (a door: while it is closed; `' '`: not at all). A zone without a glyph looks like floor."
        ),
    )

    @model_validator(mode="after")
    def _one_kind(self) -> LegendEntry:
        given = sum(kind is not None for kind in (self.zone, self.zones, self.solid))
        if given > 1 or (self.door and self.solid) or not (given or self.door):
            raise PydanticCustomError("shape", "exactly one of 'zone', 'zones', 'door', 'solid'")
        return self


class PlacedLandmark(Model):
    """A landmark at a square of the map, ``at: [column, row]`` counted from 0 in the north-west."""

    at: tuple[int, int] = Field(description="Column and row of a square that is not floor; it may be outside the map.")
    glyph: Glyph = Field(description="How it is drawn.")

    @model_validator(mode="before")
    @classmethod
    def _pair(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("at"), list):
            return {**value, "at": tuple(value["at"])}
        return value


class Pool(Model):
    """A round pool. Zones nw ne sw se, rim, spot_nw ..., edge_n ..., centre; groups quadrant, spot, edge."""

    radius: int = Field(
        ge=3, le=40, description="In cells; a cell is water if its distance from the centre is below radius - 0.5."
    )
    sites: Literal[4, 8] | None = Field(
        None,
        description=(
            "Adds the zones site1, site2, ... (clockwise from north, at two thirds of the radius) and inner, and the "
            "group site."
        ),
    )


class Ring(Model):
    """A disc with holes near its edge. Zones hole1 ... (from north, clockwise), centre; group hole."""

    radius: int = Field(ge=4, le=40, description="In cells.")
    holes: int = Field(ge=2, le=40, description="Number of holes.")


class Radial(Model):
    """A hub with arms. Zones hub, centre, arm1 ..., cup1 ...; doors gate1 ...; groups arm, cup, gate."""

    arms: int = Field(ge=2, le=8, description="Number of arms, each rounded to the nearest compass direction.")
    length: int = Field(ge=1, le=40, description="Of an arm, in cells.")
    width: Literal[1, 3] = Field(1, description="Of an arm, in cells.")
    hub: int | None = Field(None, ge=1, le=20, description="Half width of the hub; the smallest possible by default.")


class Boxes(Model):
    """Two compartments and a doorway. Zones west, east; door gate; group side."""

    width: int = Field(5, ge=1, le=40, description="Of each compartment, in cells.")
    height: int = Field(5, ge=1, le=40, description="Of both, in cells.")
    doorway: int = Field(1, ge=1, le=40, description="Height of the doorway in cells.")


class Arena(Model):
    """The place: a map with legend and groups, or one generator."""

    map: str | None = Field(
        None,
        description="The picture: `#` is wall, `.` is floor, a blank is nothing; other characters are in `legend`.",
    )
    legend: dict[
        Glyph,
        Annotated[
            LegendEntry,
            BeforeValidator(short_form("zone", lambda v: isinstance(v, str)), json_schema_input_type=str | LegendEntry),
        ],
    ] = Field(default_factory=dict, description="What the characters of the map mean; a plain name is a zone.")
    groups: dict[Name, list[Name]] = Field(default_factory=dict, description="Ordered lists of zones (or solids).")
    pool: Pool | None = Field(None, description="A round pool, instead of a map.")
    ring: Ring | None = Field(None, description="A disc with holes, instead of a map.")
    radial: Radial | None = Field(None, description="A hub with arms, instead of a map.")
    boxes: Boxes | None = Field(None, description="Two compartments, instead of a map.")
    landmarks: dict[Name, Glyph | PlacedLandmark] | list[PlacedLandmark] = Field(
        default_factory=dict, description="Landmarks around the floor: `N: glyph` ... `NW: glyph`, or at a given place."
    )
    headings: Literal[8, 4] = Field(8, description="8: turns of 45 degrees; 4: turns of 90.")
    rotate: Name | None = Field(
        None,
        description="A column of a draw: degrees (0, 90, 180 or 270) by which the picture is rotated clockwise.",
    )
