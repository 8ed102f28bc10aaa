"""The compiled random numbers are those of ``Stream``, and its hash is that of ``hashlib``."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cheesebench.paradigms.arena.streams import Stream

pytest.importorskip("numba")

from cheesebench.paradigms.arena.jit.compiled import compiled
from cheesebench.paradigms.arena.jit.hashing import (
    Bytes,
    Word,
    append_byte,
    append_number,
    append_text,
    below,
    bits,
    uniform,
)

#: The first call of a compiled function takes as long as compiling it.
UNHURRIED = settings(deadline=None)
INT64 = st.integers(-(2**63), 2**63 - 1)
WORD = st.integers(0, 2**64 - 1)
BAR = ord("|")


def buffer(content: bytes = b"", room: int = 512) -> Bytes:
    """Return a buffer that begins with `content` and holds rubbish behind it."""
    message = np.full(len(content) + room, 0xAA, np.uint8)
    message[: len(content)] = np.frombuffer(content, np.uint8)
    return message


@compiled
def written(message: Bytes, base: Bytes, key: Bytes, number: int) -> int:
    """Write ``{base}{key}|{number}``."""
    length = append_text(message, 0, base)
    length = append_text(message, length, key)
    length = append_byte(message, length, BAR)
    return append_number(message, length, number)


@compiled
def drawn(message: Bytes, length: int, n: int) -> tuple[Word, int, float]:
    """Return the three kinds of numbers that a stream has for a message."""
    number = bits(message, length)
    return number, below(number, n), uniform(number)


@UNHURRIED
@given(st.binary(max_size=400), st.sampled_from([0, 1, 200]))
@example(b"", 0)
@example(b"\xff" * 128, 0)
@example(b"\xff" * 129, 0)
@example(b"\xff" * 256, 0)
def test_the_hash_is_blake2b(content: bytes, room: int) -> None:
    expected = hashlib.blake2b(content, digest_size=8).digest()
    assert int(bits(buffer(content, room), len(content))) == int.from_bytes(expected, "big")


def test_every_length_of_a_message() -> None:
    content = bytes(i * 7 % 251 for i in range(400))
    for length in range(len(content) + 1):
        expected = hashlib.blake2b(content[:length], digest_size=8).digest()
        assert int(bits(buffer(content), length)) == int.from_bytes(expected, "big"), length


@UNHURRIED
@given(
    seed=st.integers(), subject=INT64, protocol=st.text(max_size=40), key=st.text(max_size=60), number=INT64,
    n=st.integers(1, 2**31),
)  # fmt: skip
def test_the_numbers_of_a_stream(seed: int, protocol: str, subject: int, key: str, number: int, n: int) -> None:
    message, base = buffer(room=1024), buffer(f"{seed}|{protocol}|{subject}|".encode(), 0)
    length = written(message, base, buffer(key.encode(), 0), number)
    stream, whole_key = Stream(seed, protocol, subject), f"{key}|{number}"
    expected = stream.bits(whole_key), stream.below(n, whole_key), stream.uniform(whole_key)
    number_drawn, small, fraction = drawn(message, length, n)
    assert (int(number_drawn), small, fraction) == expected


@UNHURRIED
@given(st.binary(max_size=400), st.binary(max_size=400))
def test_a_text_is_appended(before: bytes, text: bytes) -> None:
    message = buffer(before)
    length = append_text(message, len(before), buffer(text, 0))
    assert bytes(message[:length]) == before + text
    assert (message[length:] == 0xAA).all()


@UNHURRIED
@given(st.binary(max_size=10), INT64 | st.integers(-1000, 1000))
@example(b"", 0)
@example(b"", -(2**63))
@example(b"", 2**63 - 1)
@example(b"", -10)
@example(b"", 10**18)
def test_a_number_is_appended(before: bytes, number: int) -> None:
    message = buffer(before, 40)
    length = append_number(message, len(before), number)
    assert bytes(message[:length]) == before + str(number).encode()
    assert (message[length:] == 0xAA).all()


@UNHURRIED
@given(st.binary(max_size=10), st.integers(0, 255))
def test_a_byte_is_appended(before: bytes, byte: int) -> None:
    message = buffer(before, 2)
    assert append_byte(message, len(before), byte) == len(before) + 1
    assert bytes(message) == before + bytes([byte, 0xAA])


@UNHURRIED
@given(WORD, st.integers(1, 2**31))
@example(2**64 - 1, 2**31)
@example(2**64 - 1, 2**31 - 1)
@example(2**63, 3)
@example(0, 1)
def test_below_is_exact(number: int, n: int) -> None:
    assert below(np.uint64(number), n) == number * n >> 64


@UNHURRIED
@given(WORD)
@example(2**64 - 1)
@example(2**11 - 1)
@example(0)
def test_uniform_is_exact(number: int) -> None:
    assert uniform(np.uint64(number)) == (number >> 11) / 2**53


def test_the_types_are_those_that_callers_count_on() -> None:
    drawn(buffer(b"x"), 1, 4)
    (signature,) = drawn.nopython_signatures  # type: ignore[attr-defined]
    assert str(signature.return_type) == "Tuple(uint64, int64, float64)"
