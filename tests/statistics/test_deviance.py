"""The sequential analysis of deviance against published tables of R and SAS,
statsmodels, and known effects.
"""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest

from cheesebench.paradigms.dialogue.statistics import sequential_deviance

#: Admissions to the six largest departments of Berkeley in 1973, R's data set
#: UCBAdmissions: admitted, rejected.
BERKELEY = {
    ("Male", "A"): (512, 313),
    ("Female", "A"): (89, 19),
    ("Male", "B"): (353, 207),
    ("Female", "B"): (17, 8),
    ("Male", "C"): (120, 205),
    ("Female", "C"): (202, 391),
    ("Male", "D"): (138, 279),
    ("Female", "D"): (131, 244),
    ("Male", "E"): (53, 138),
    ("Female", "E"): (94, 299),
    ("Male", "F"): (22, 351),
    ("Female", "F"): (24, 317),
}


def test_berkeley_as_r_has_it() -> None:
    """R: null deviance 877.06 on 11 df, residual 20.204 on 5; likelihood ratio of
    gender 93.4494 (SAS, PROC FREQ).
    """
    factors = {"gender": [g for g, _ in BERKELEY], "dept": [d for _, d in BERKELEY]}
    admitted = [yes for yes, _ in BERKELEY.values()]
    total = [yes + no for yes, no in BERKELEY.values()]
    table = sequential_deviance(
        factors, admitted, total, ["gender", "dept", "gender:dept"]
    )
    assert (table.null_df, round(table.null, 2)) == (11, 877.06)
    gender, dept, both = table.rows
    assert (gender.df, round(gender.chi2, 4)) == (1, 93.4494)
    assert (dept.df, dept.residual_df, round(dept.residual, 3)) == (5, 5, 20.204)
    assert (both.df, both.residual_df, round(both.chi2, 3)) == (5, 0, 20.204)
    assert both.residual == pytest.approx(0, abs=1e-6)
    assert both.p == pytest.approx(0.00114, abs=1e-5)


def test_budworms_as_venables_and_ripley_have_them() -> None:
    """MASS, section 7.2: NULL 124.876 on 11 df, sex 6.077 on 1 df, which leaves
    118.799.
    """
    dead = [1, 4, 9, 13, 18, 20, 0, 2, 6, 10, 12, 16]
    table = sequential_deviance(
        {"sex": ["M"] * 6 + ["F"] * 6}, dead, [20] * 12, ["sex"]
    )
    assert (table.null_df, round(table.null, 3)) == (11, 124.876)
    row = table.rows[0]
    assert (row.df, round(row.chi2, 3), round(row.residual, 3), round(row.p, 3)) == (
        1,
        6.077,
        118.799,
        0.014,
    )


def synthetic(
    seed: int, empty: float
) -> tuple[dict[str, list[object]], list[int], list[int]]:
    """Return cells of a design with an effect of a, an interaction of a and b, none of
    c; some cells are empty.
    """
    chance = np.random.default_rng(seed)
    a, b, c, successes, totals = [], [], [], [], []
    for cell in product("pqrs", "xyz", range(3)):
        if chance.random() < empty:
            continue
        predictor = {"p": -1.0, "q": 0.0, "r": 0.5, "s": 1.0}[cell[0]] + 1.2 * (
            cell[:2] == ("q", "y")
        )
        total = int(chance.integers(20, 60))
        a.append(cell[0])
        b.append(cell[1])
        c.append(cell[2])
        totals.append(total)
        successes.append(int(chance.binomial(total, 1 / (1 + np.exp(-predictor)))))
    return {"a": list(a), "b": list(b), "c": list(c)}, successes, totals


@pytest.mark.parametrize("empty", [0.0, 0.3])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_statsmodels_agrees(seed: int, empty: float) -> None:
    import pandas
    import statsmodels.api as sm
    import statsmodels.formula.api as smf

    factors, successes, totals = synthetic(seed, empty)
    terms = ["a", "b", "c", "a:b", "a:c"]
    table = sequential_deviance(factors, successes, totals, terms)
    frame = pandas.DataFrame(
        {**factors, "yes": successes, "no": np.subtract(totals, successes)}
    )
    before = 1
    for number, row in enumerate(table.rows):
        formula = "yes + no ~ " + " + ".join(
            f"C({t.replace(':', '):C(')})" for t in terms[: number + 1]
        )
        with warnings.catch_warnings():
            # Empty cells make the fit's covariance singular, not its deviance.
            warnings.simplefilter("ignore")
            model = smf.glm(formula, frame, family=sm.families.Binomial())
            fit = model.fit()
        rank = int(np.linalg.matrix_rank(model.exog))
        assert row.df == rank - before
        assert row.residual_df == len(successes) - rank
        assert row.residual == pytest.approx(fit.deviance, abs=1e-6)
        before = rank


def test_known_effects_are_found_and_absent_ones_are_not() -> None:
    chance = 0
    for seed in range(40):
        factors, successes, totals = synthetic(seed, 0.0)
        table = sequential_deviance(factors, successes, totals, ["a", "c", "b", "a:b"])
        rows = {row.term: row for row in table.rows}
        assert rows["a"].p < 1e-6
        chance += rows["c"].p < 0.05
    assert chance <= 7, "of 40 tests without an effect about two are significant"


def test_cells_without_a_success_and_terms_that_add_nothing() -> None:
    factors = {
        "a": ["p", "p", "q", "q"],
        "b": ["x", "y", "x", "y"],
        "same": ["1", "1", "2", "2"],
    }
    table = sequential_deviance(
        factors, [0, 0, 10, 10], [10, 10, 10, 10], ["a", "same", "b", "a:b"]
    )
    a, same, _, _ = table.rows
    assert a.chi2 == pytest.approx(table.null)
    assert a.residual == pytest.approx(0, abs=1e-8)
    assert (same.df, same.chi2, same.p) == (0, 0.0, 1.0)


def test_what_cannot_be_computed_is_told() -> None:
    with pytest.raises(ValueError, match="no factor 'z'"):
        sequential_deviance({"a": ["p", "q"]}, [1, 1], [2, 2], ["a:z"])
    with pytest.raises(ValueError, match="no observation"):
        sequential_deviance({"a": ["p"]}, [0], [0], ["a"])
