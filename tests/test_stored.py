"""What counts as the stored text."""

from __future__ import annotations

import pytest

from tests.stored import are_equal


@pytest.mark.parametrize(
    ("text", "equal"),
    [
        ("rate 0.33753786599999996 of 6981.2267906399275", True),
        ("rate 0.337537866 of 6981.226790639927", True),
        ("rate 0.337537867 of 6981.226790639927", False),
        ("rate 0.337537866 of 6981.226790639927, 1", False),
        ("rates 0.337537866 of 6981.226790639927", False),
    ],
)
def test_only_the_last_digits_of_a_long_number_may_differ(
    text: str, equal: bool
) -> None:
    assert are_equal(text, "rate 0.33753786599999996 of 6981.226790639927") is equal


def test_a_long_number_may_have_a_short_neighbour() -> None:
    assert are_equal("0.5", "0.49999999999999994")
    assert not are_equal("0.50", "0.5")
