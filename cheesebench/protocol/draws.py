"""Resolves draws: their rows, and what contradicts itself in them."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence

from cheesebench.protocol import specification as spec
from cheesebench.protocol.declare import runtime_value
from cheesebench.protocol.draw_documents import MAX_ROWS, Draw
from cheesebench.protocol.features import TRUTH
from cheesebench.protocol.lookup import Lookup

#: Most subsets that an ordered ``pick`` may go through.
MAX_SUBSETS = 10_000

Rows = tuple[tuple[spec.RuntimeValue, ...], ...]


class DrawBuilder(Lookup):
    """Builds everything under ``draw``."""

    def draws(self) -> tuple[spec.DrawSpec, ...]:
        """Return all draws, in file order."""
        found = []
        for name, draw in self.document.draw.items():
            rows = self._rows(name, draw)
            self._check_rows(name, draw, rows)
            self._check_keys(name, draw, rows)
            keep_if = self.expression(draw.keep_if, ("draw", name, "keep_if"), TRUTH)
            found.append(
                spec.DrawSpec(
                    name,
                    draw.per,
                    draw.order,
                    tuple(draw.columns),
                    rows,
                    draw.pick,
                    draw.copies,
                    draw.max_run,
                    keep_if,
                    draw.sample if draw.distinct else None,
                )
            )
        return tuple(found)

    def _error(self, path: Sequence[str | int], sentence: str, remedy: str) -> None:
        *above, key = path
        position = self.root.find(above).key_position(str(key))
        self.diagnostics.error(206, position, sentence, remedy)

    def _rows(self, name: str, draw: Draw) -> Rows:
        """Return the table with its weights; empty where members are dealt out in each draw."""
        if draw.sample is not None:
            self._check_sample(name, draw)
            if draw.distinct:
                return ()
            members = self.names.arena.groups.get(draw.sample, ())
            if len(members) ** len(draw.into) > MAX_ROWS:
                sentence = f"{len(members)} members in {len(draw.into)} places are more than {MAX_ROWS} rows."
                self._error(("draw", name, "into"), sentence, "Use one draw for each variable.")
                return ()
            return tuple(itertools.product(members, repeat=len(draw.into)))
        rows: Rows = tuple(zip(*([runtime_value(cell) for cell in cells] for cells in draw.of.values()), strict=False))
        if draw.weights is None:
            return rows
        if draw.permute is not None or len(draw.weights) != len(rows):
            sentence = f"'{name}' has {len(draw.weights)} weights for {len(rows)} rows."
            remedy = "Give one for each row of 'of'."
            if draw.permute is not None:
                sentence, remedy = "Permutations are equally likely.", "Remove 'weights'."
            self._error(("draw", name, "weights"), sentence, remedy)
            return rows
        # Shares are what counts, unless rows are dealt out in blocks or cycles of so many.
        shared = math.gcd(*draw.weights) if draw.order == "random" else 1
        if sum(draw.weights) // shared > MAX_ROWS:
            sentence = f"The weights add up to {sum(draw.weights)}, more than {MAX_ROWS} rows."
            self._error(("draw", name, "weights"), sentence, "Use smaller ones.")
            return rows
        return tuple(row for row, weight in zip(rows, draw.weights, strict=True) for _ in range(weight // shared))

    def _check_rows(self, name: str, draw: Draw, rows: Rows) -> None:
        """Report too many rows, or too few to pick from."""
        place = ("draw", name)
        if draw.permute is not None and not 1 <= draw.permutations <= MAX_ROWS:
            if len(draw.into) > len(draw.permute):
                sentence = f"There are {len(draw.permute)} values, but 'into' asks for {len(draw.into)}."
                self._error((*place, "into"), sentence, "Ask for fewer.")
            else:
                sentence = f"There are {draw.permutations} permutations, more than {MAX_ROWS}."
                self._error((*place, "permute"), sentence, "Make a group of them, and deal it out with 'sample'.")
        if draw.permute is not None and len(set(draw.permute)) < len(draw.permute):
            twice = Counter(draw.permute).most_common(1)[0][0]
            self._error((*place, "permute"), f"'{twice}' appears twice in 'permute'.", "Name each value once.")
        if draw.sample is None and draw.pick is not None and draw.pick > len(rows):
            position = self.root.find((*place, "pick")).position
            self.diagnostics.error(206, position, f"'{name}' picks {draw.pick} of {len(rows)} rows.", "Pick fewer.")
        if len(rows) * draw.copies > MAX_ROWS:
            position = self.root.find(place).position
            sentence = f"{len(rows)} rows in {draw.copies} copies are more than {MAX_ROWS} of one permuted block."
            self.diagnostics.error(206, position, sentence, "Use fewer copies, or 'order: random'.")
        if draw.max_run is not None and rows:
            value, often = Counter(row[0] for row in rows).most_common(1)[0]
            if often == len(rows):
                sentence = "The first column has only one value, so its run never ends."
                self._error((*place, "max_run"), sentence, "Remove 'max_run'.")
            elif draw.order == "shuffle" and often > (len(rows) - often) * draw.max_run:
                sentence = f"'{value}' is too frequent for runs of at most {draw.max_run}."
                self._error((*place, "max_run"), sentence, "Allow longer runs.")
        subsets = math.comb(len(rows), draw.pick or 0)
        if draw.order != "random" and subsets > MAX_SUBSETS:
            sentence = f"There are {subsets} subsets to order, more than {MAX_SUBSETS}."
            self._error((*place, "pick"), sentence, "Use 'order: random'.")

    def _check_keys(self, name: str, draw: Draw, rows: Rows) -> None:
        """Report keys that do not go together."""
        place = ("draw", name)
        if draw.copies > 1 and draw.order != "shuffle":
            self._error((*place, "copies"), "'copies' is only for 'order: shuffle'.", "Remove it, or shuffle.")
        if draw.max_run is not None and (draw.order in ("cycle", "balanced", "by_subject") or draw.pick):
            self._error((*place, "max_run"), "'max_run' is only for shuffled or random rows.", "Remove it.")
        if draw.weights is not None and (draw.pick or draw.sample is not None):
            what = "pick" if draw.pick else "sample"
            self._error((*place, "weights"), f"'weights' do not go with '{what}'.", "Remove them.")
        if not draw.distinct and draw.sample is None:
            self._error((*place, "distinct"), "'distinct' is only for 'sample'.", "Remove it.")

    def _check_sample(self, name: str, draw: Draw) -> None:
        """Report a draw that deals out what is neither a group nor a set drawn before, or more than there is."""
        sample, path = draw.sample or "", ("draw", name)
        self.names.used.add(sample)
        sizes = {group: len(members) for group, members in self.names.arena.groups.items()}
        if draw.distinct:
            for before in itertools.takewhile(lambda other: other != name, self.document.draw):
                other = self.document.draw[before]
                sizes |= {column: other.pick for column in other.columns if other.pick}
        if sample not in sizes:
            what = "group, or set of a draw above," if draw.distinct else "group"
            later = [other for other, one in self.document.draw.items() if sample in one.columns and one.pick]
            if draw.distinct and later and later[0] != name:
                sentence = f"'{sample}' is not picked yet when '{name}' samples from it."
                position = self.root.find((*path, "sample")).position
                self.diagnostics.error(201, position, sentence, f"Move '{later[0]}' above '{name}'.")
                return
            self.unknown(what, sample, sizes, (*path, "sample"))
        elif draw.distinct and (draw.pick or 0) > sizes[sample]:
            position = self.root.find((*path, "pick")).position
            sentence = f"'{sample}' has {sizes[sample]} members, and '{name}' picks {draw.pick}."
            self.diagnostics.error(206, position, sentence, "Pick fewer.")
        elif draw.distinct and draw.pick and len(draw.into) > 1:
            position = self.root.find((*path, "into")).position
            sentence = f"With 'pick', '{name}' is one set, but 'into' has {len(draw.into)} variables."
            self.diagnostics.error(206, position, sentence, "Name one variable, and use a draw for each set.")
        elif draw.distinct and len(draw.into) > sizes[sample]:
            position = self.root.find((*path, "into")).position
            sentence = f"'{sample}' has {sizes[sample]} members, but 'into' asks for {len(draw.into)}."
            self.diagnostics.error(206, position, sentence, "Ask for fewer.")
        if draw.distinct and (draw.order != "random" or draw.max_run):
            position = self.root.find(path).position
            sentence = "'sample' deals out in random order: 'order' and 'max_run' do not go with it."
            self.diagnostics.error(206, position, sentence, "Remove them.")
        if not draw.distinct and draw.pick:
            sentence = "'pick' draws without replacement, and 'distinct: false' is with it."
            self._error((*path, "pick"), sentence, "Remove one of them.")
