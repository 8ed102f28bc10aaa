"""Sequential analysis of deviance of a binomial GLM, as R's ``anova(glm(..., binomial), test = "Chisq")``.

Factors are categorical (treatment contrasts, first level as reference; any contrasts give the same table). Columns
that depend on those before them are left out, as R's fit does, so that a term has as many degrees of freedom as it
adds to the rank: empty cells of a design cost degrees of freedom, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

#: A column is left out when less than this share of its length is new (R's ``glm.fit`` uses 1e-11 on its epsilon;
#: dummies are 0 or 1, so that anything in between tells them apart).
RANK_TOLERANCE = 1e-7
#: Linear predictors are kept within these bounds: a cell without (or with nothing but) successes has no finite
#: estimate, and its deviance is 0 long before.
_FAR = 30.0
_ROUNDS = 100
_SETTLED = 1e-9


@dataclass(frozen=True, slots=True)
class DevianceRow:
    """One term: what adding it after all those above takes from the deviance."""

    term: str
    df: int
    chi2: float
    p: float
    residual_df: int
    residual: float


@dataclass(frozen=True, slots=True)
class DevianceTable:
    """``null`` is the deviance of the intercept alone, on ``null_df`` degrees of freedom."""

    null_df: int
    null: float
    rows: tuple[DevianceRow, ...]


def sequential_deviance(
    factors: Mapping[str, Sequence[object]], successes: Sequence[int], totals: Sequence[int], terms: Sequence[str]
) -> DevianceTable:
    """Return the table; ``terms`` name factors, interactions as ``graph:domain``, in the order of their entry.

    All sequences have one value per observation; observations with a total of 0 are left out. Raises ValueError
    where a term names no factor, or there is no observation.
    """
    import numpy as np
    from scipy.special import chdtrc

    kept = [number for number, total in enumerate(totals) if total > 0]
    if not kept:
        raise ValueError("there is no observation")
    cells: dict[tuple[object, ...], int] = {}
    names = list(factors)
    cell_of = [cells.setdefault(tuple(factors[name][number] for name in names), len(cells)) for number in kept]
    rows = {name: [cell[position] for cell in cells] for position, name in enumerate(names)}
    fit = _Fit(
        np.array(cell_of),
        np.array([successes[number] for number in kept], dtype=float),
        np.array([totals[number] for number in kept], dtype=float),
    )
    basis = _Basis(len(cells))
    basis.add(np.ones(len(cells)))
    residual_df, residual = len(kept) - 1, fit.deviance(basis.columns)
    table = []
    null_df, null = residual_df, residual
    for term in terms:
        before = basis.rank
        for column in _columns(term, rows):
            basis.add(column)
        df = basis.rank - before
        after = fit.deviance(basis.columns) if df else residual
        # Rounding may leave a term that explains nothing a hair below zero.
        change = max(0.0, residual - after)
        residual, residual_df = after, residual_df - df
        p = float(chdtrc(df, change)) if df else 1.0
        table.append(DevianceRow(term, df, change, p, residual_df, residual))
    return DevianceTable(null_df, null, tuple(table))


def _columns(term: str, rows: Mapping[str, Sequence[object]]) -> list[Floats]:
    """Return the dummies of a term: for an interaction all products of those of its factors."""
    import numpy as np

    dummies: list[list[Floats]] = []
    for name in term.split(":"):
        if name not in rows:
            raise ValueError(f"there is no factor '{name}'")
        values = rows[name]
        levels = sorted(dict.fromkeys(values), key=str)
        dummies.append([np.array([float(value == level) for value in values]) for level in levels[1:]])
    return [np.prod(np.stack(columns), axis=0) for columns in product(*dummies)]


class _Basis:
    """Columns that do not depend on one another, and an orthonormal basis of what they span."""

    def __init__(self, length: int) -> None:
        import numpy as np

        self.columns: Floats = np.empty((length, 0))
        self._directions: Floats = np.empty((length, 0))

    @property
    def rank(self) -> int:
        return int(self.columns.shape[1])

    def add(self, column: Floats) -> None:
        """Add a column, unless those before it already say what it says."""
        import numpy as np

        rest = column.copy()
        for _ in range(2):  # twice is enough (Kahan)
            rest = rest - self._directions @ (self._directions.T @ rest)
        length, new = float(np.linalg.norm(column)), float(np.linalg.norm(rest))
        if length > 0 and new > RANK_TOLERANCE * length:
            self.columns = np.column_stack([self.columns, column])
            self._directions = np.column_stack([self._directions, rest / new])


class _Fit:
    """Binomial fits with logit link; observations of one cell of the design share their mean."""

    def __init__(self, cell_of: NDArray[np.int_], y: Floats, n: Floats) -> None:
        import numpy as np

        self._cell_of, self._y, self._n = cell_of, y, n
        self._sum_y, self._sum_n = np.bincount(cell_of, y), np.bincount(cell_of, n)

    def deviance(self, design: Floats) -> float:
        """Return the deviance of the fit (iteratively reweighted least squares); ``design`` has a row per cell."""
        import numpy as np
        from scipy.special import expit

        y, n = self._sum_y, self._sum_n
        mean = (y + 0.5) / (n + 1)
        predictor = np.log(mean / (1 - mean))
        best = np.inf
        for _ in range(_ROUNDS):
            weights = n * mean * (1 - mean)
            working = predictor + (y - n * mean) / weights
            weighted = design * weights[:, None]
            beta = np.linalg.lstsq(design.T @ weighted, weighted.T @ working, rcond=None)[0]
            predictor = np.clip(design @ beta, -_FAR, _FAR)
            mean = expit(predictor)
            now = self._of(mean)
            if abs(best - now) < _SETTLED * (abs(now) + 0.1):
                return now
            best = now
        return best

    def _of(self, means: Floats) -> float:
        from scipy.special import xlogy

        y, n, mean = self._y, self._n, means[self._cell_of]
        return float(2 * (xlogy(y, y / (n * mean)) + xlogy(n - y, (n - y) / (n * (1 - mean)))).sum())
