"""Sequential analysis of deviance of a binomial GLM, as R's ``anova(glm(..., binomial), test = "Chisq")``.

The fits are statsmodels' (extra ``cogeval``). Factors are categorical (treatment contrasts, first level as reference;
any contrasts give the same table). A term has as many degrees of freedom as it adds to the rank of the design: empty
cells cost degrees of freedom, and nothing else.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from cheesebench.errors import OptionError
from cheesebench.extras import install_command

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

#: A column is left out when less than this share of its length is new.
RANK_TOLERANCE = 1e-9
#: Rounds and tolerance of a fit: far finer than any figure that is printed.
_ROUNDS, _SETTLED = 100, 1e-8


@dataclass(frozen=True, slots=True)
class DevianceRow:
    """One term: by how much adding it after all those above reduces the deviance."""

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
    where a term names no factor, or there is no observation, and OptionError where statsmodels is not installed.
    """
    import numpy as np
    from scipy.special import chdtrc

    kept = [number for number, total in enumerate(totals) if total > 0]
    if not kept:
        raise ValueError("there is no observation")
    rows = {name: [values[number] for number in kept] for name, values in factors.items()}
    answers = np.array([(successes[number], totals[number] - successes[number]) for number in kept], dtype=float)
    design: list[Floats] = [np.ones(len(kept))]
    null_df, null = residual_df, residual = _fit(answers, design)
    table = []
    for term in terms:
        design += _columns(term, rows)
        after_df, after = _fit(answers, design)
        df = residual_df - after_df
        # Rounding may leave a term that explains nothing a hair below zero.
        change = max(0.0, residual - after) if df else 0.0
        residual, residual_df = after, after_df
        table.append(DevianceRow(term, df, change, float(chdtrc(df, change)) if df else 1.0, residual_df, residual))
    return DevianceTable(null_df, null, tuple(table))


@dataclass(frozen=True, slots=True)
class Coefficient:
    """Log odds of a level of a factor against the factor's first level, with standard error, z and two-sided p."""

    factor: str
    level: str
    reference: str
    estimate: float
    se: float
    z: float
    p: float


def coefficients(
    factors: Mapping[str, Sequence[object]], successes: Sequence[int], totals: Sequence[int]
) -> tuple[Coefficient, ...]:
    """Return the main effects of factors in a fit of all of them together, without interactions.

    Factors of one level are left out. Raises OptionError where statsmodels is not installed.
    """
    import numpy as np

    kept = [number for number, total in enumerate(totals) if total > 0]
    rows = {name: [values[number] for number in kept] for name, values in factors.items()}
    named = [
        (name, str(level), str(levels[0]))
        for name, values in rows.items()
        for levels in [_levels(values)]
        for level in levels[1:]
    ]
    if not named:
        return ()
    answers = np.array([(successes[number], totals[number] - successes[number]) for number in kept], dtype=float)
    design = [np.ones(len(kept)), *(column for name in rows for column in _columns(name, rows))]
    columns, chosen = _independent(design)
    fit = _fitted(answers, columns)
    places = {column: place for place, column in enumerate(chosen)}
    return tuple(
        Coefficient(
            *names, *(float(values[places[number]]) for values in (fit.params, fit.bse, fit.tvalues, fit.pvalues))
        )
        for number, names in enumerate(named, start=1)
        if number in places
    )


def _fit(answers: Floats, design: Sequence[Floats]) -> tuple[int, float]:
    """Return residual degrees of freedom and residual deviance of a fit; ``answers`` has successes and failures."""
    fit = _fitted(answers, _independent(design)[0])
    return int(fit.df_resid), float(fit.deviance)


def _independent(design: Sequence[Floats]) -> tuple[Floats, list[int]]:
    """Return linearly independent columns, and their indices.

    Without the others a fit is several times faster, and the same.
    """
    import numpy as np
    from scipy.linalg import qr

    columns = np.column_stack(design)
    triangle, order = qr(columns, mode="r", pivoting=True)
    sizes = np.abs(np.diag(triangle))
    chosen = np.sort(order[: len(sizes)][sizes > RANK_TOLERANCE * sizes[0]])
    return columns[:, chosen], chosen.tolist()


def _fitted(answers: Floats, columns: Floats) -> Any:
    """Return the fit of statsmodels."""
    try:
        from statsmodels.genmod.families import Binomial
        from statsmodels.genmod.generalized_linear_model import GLM
    except ImportError:
        raise OptionError(
            f"The analysis of deviance needs statsmodels. Install it: {install_command('cogeval')}"
        ) from None
    with warnings.catch_warnings():
        # Cells without (or with nothing but) successes have no finite estimate; the deviance is right all the same.
        warnings.simplefilter("ignore")
        return GLM(answers, columns, family=Binomial()).fit(maxiter=_ROUNDS, tol=_SETTLED, wls_method="qr")


def _levels(values: Sequence[object]) -> list[object]:
    return sorted(dict.fromkeys(values), key=str)


def _columns(term: str, rows: Mapping[str, Sequence[object]]) -> list[Floats]:
    """Return the dummies of a term: for an interaction all products of those of its factors."""
    import numpy as np

    dummies: list[list[Floats]] = []
    for name in term.split(":"):
        if name not in rows:
            raise ValueError(f"there is no factor '{name}'")
        values = rows[name]
        dummies.append([np.array([float(value == level) for value in values]) for level in _levels(values)[1:]])
    return [np.prod(np.stack(columns), axis=0) for columns in product(*dummies)]
