"""The random numbers of ``streams.Stream``, compiled: BLAKE2b (RFC 7693) with a digest of 8 bytes and no key.

A message is written piece by piece into a buffer of bytes that the caller owns; nothing is allocated here. All
arithmetic is on ``uint64``, constants too: numba makes a float of an ``int64`` and a ``uint64``, which is not exact.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cheesebench.paradigms.arena.jit.compiled import compiled

Bytes: TypeAlias = NDArray[np.uint8]
Word: TypeAlias = np.uint64
Eight: TypeAlias = tuple[Word, Word, Word, Word, Word, Word, Word, Word]
Sixteen: TypeAlias = tuple[
    Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word
]

BLOCK = 128
MINUS = np.uint8(ord("-"))
DIGIT_ZERO = np.uint64(ord("0"))
ZERO, ONE, EIGHT, TEN, ELEVEN = np.uint64(0), np.uint64(1), np.uint64(8), np.uint64(10), np.uint64(11)
LOW_HALF, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
LAST = np.uint64(0xFFFFFFFFFFFFFFFF)
TO_UNIT = 1.0 / (1 << 53)

IV0, IV1, IV2, IV3, IV4, IV5, IV6, IV7 = (
    np.uint64(0x6A09E667F3BCC908),
    np.uint64(0xBB67AE8584CAA73B),
    np.uint64(0x3C6EF372FE94F82B),
    np.uint64(0xA54FF53A5F1D36F1),
    np.uint64(0x510E527FADE682D1),
    np.uint64(0x9B05688C2B3E6C1F),
    np.uint64(0x1F83D9ABFB41BD6B),
    np.uint64(0x5BE0CD19137E2179),
)
#: The first word of the state at the start: it holds the length of the digest, and that there is no key.
START = np.uint64(0x6A09E667F3BCC908 ^ 0x01010000 ^ 8)


@compiled
def append_byte(message: Bytes, length: int, byte: int) -> int:
    """Write one byte behind the first `length` bytes of a message, which has room for it; return the new length."""
    message[length] = byte
    return length + 1


@compiled
def append_text(message: Bytes, length: int, text: Bytes) -> int:
    """Write a text (UTF-8) behind the first `length` bytes of a message, which has room; return the new length."""
    for i in range(len(text)):
        message[length + i] = text[i]
    return length + len(text)


@compiled
def append_number(message: Bytes, length: int, number: int) -> int:
    """Write an ``int64`` in decimal behind the first `length` bytes (room: 20 bytes); return the new length."""
    rest = np.uint64(number)
    if number < 0:
        rest = ZERO - rest  # exact for the smallest int64 too, which has no negative
        message[length] = MINUS
        length += 1
    end = length + 1
    larger = rest // TEN
    while larger != ZERO:
        end += 1
        larger //= TEN
    for i in range(end - 1, length - 1, -1):
        message[i] = DIGIT_ZERO + rest % TEN
        rest //= TEN
    return end


@compiled
def below(number: Word, n: int) -> int:
    """Return ``number * n >> 64``, exactly: a uniform number from 0 to n - 1, for n from 1 to 2**31."""
    factor = np.uint64(n)
    # An int64, because a caller that adds one to a uint64 would get a float.
    return int(np.int64((number >> HALF) * factor + ((number & LOW_HALF) * factor >> HALF) >> HALF))


@compiled
def uniform(number: Word) -> float:
    """Return a uniform number in [0, 1) with 53 bits."""
    return np.int64(number >> ELEVEN) * TO_UNIT


@compiled
def bits(message: Bytes, length: int) -> Word:
    """Return the 64 bits that ``Stream.bits`` returns for the first `length` bytes of a message."""
    state = (START, IV1, IV2, IV3, IV4, IV5, IV6, IV7)
    start = 0
    while length - start > BLOCK:
        state = compressed(state, words(message, start, length), np.uint64(start + BLOCK), ZERO)
        start += BLOCK
    state = compressed(state, words(message, start, length), np.uint64(length), LAST)
    return swapped(state[0])


@compiled
def swapped(word: Word) -> Word:
    """Return a word with its bytes in the opposite order (BLAKE2b ends little-endian, a stream reads big-endian)."""
    word = (word & np.uint64(0x00FF00FF00FF00FF)) << EIGHT | word >> EIGHT & np.uint64(0x00FF00FF00FF00FF)
    sixteen = np.uint64(16)
    word = (word & np.uint64(0x0000FFFF0000FFFF)) << sixteen | word >> sixteen & np.uint64(0x0000FFFF0000FFFF)
    return word << HALF | word >> HALF


@compiled
def word_at(message: Bytes, start: int, length: int) -> Word:
    """Return eight bytes of a message, little-endian; those from `length` on are zero."""
    # Written out, and with indices that have no sign to be looked at, these eight become one load: a loop takes thrice
    # as long for a whole hash.
    at, end = np.uint64(start), np.uint64(length)
    if start + 8 <= length:
        return (
            np.uint64(message[at])
            | np.uint64(message[at + ONE]) << EIGHT
            | np.uint64(message[at + np.uint64(2)]) << np.uint64(16)
            | np.uint64(message[at + np.uint64(3)]) << np.uint64(24)
            | np.uint64(message[at + np.uint64(4)]) << np.uint64(32)
            | np.uint64(message[at + np.uint64(5)]) << np.uint64(40)
            | np.uint64(message[at + np.uint64(6)]) << np.uint64(48)
            | np.uint64(message[at + np.uint64(7)]) << np.uint64(56)
        )
    word, shift = ZERO, ZERO
    while at < end:
        word |= np.uint64(message[at]) << shift
        at += ONE
        shift += EIGHT
    return word


@compiled
def words(message: Bytes, start: int, length: int) -> Sixteen:
    """Return the block of a message that begins at `start`."""
    return (
        word_at(message, start, length),
        word_at(message, start + 8, length),
        word_at(message, start + 16, length),
        word_at(message, start + 24, length),
        word_at(message, start + 32, length),
        word_at(message, start + 40, length),
        word_at(message, start + 48, length),
        word_at(message, start + 56, length),
        word_at(message, start + 64, length),
        word_at(message, start + 72, length),
        word_at(message, start + 80, length),
        word_at(message, start + 88, length),
        word_at(message, start + 96, length),
        word_at(message, start + 104, length),
        word_at(message, start + 112, length),
        word_at(message, start + 120, length),
    )


@compiled
def mixed(a: Word, b: Word, c: Word, d: Word, x: Word, y: Word) -> tuple[Word, Word, Word, Word]:
    """Mix two words of the message into four of the state (RFC 7693, 3.1: G)."""
    a = a + b + x
    d = d ^ a
    d = d >> np.uint64(32) | d << np.uint64(32)
    c = c + d
    b = b ^ c
    b = b >> np.uint64(24) | b << np.uint64(40)
    a = a + b + y
    d = d ^ a
    d = d >> np.uint64(16) | d << np.uint64(48)
    c = c + d
    b = b ^ c
    b = b >> np.uint64(63) | b << np.uint64(1)
    return a, b, c, d


@compiled
def after_round(v: Sixteen, m: Sixteen) -> Sixteen:
    """Mix a message, in the order of this round, into the state: its columns, then its diagonals."""
    v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15 = v
    v0, v4, v8, v12 = mixed(v0, v4, v8, v12, m[0], m[1])
    v1, v5, v9, v13 = mixed(v1, v5, v9, v13, m[2], m[3])
    v2, v6, v10, v14 = mixed(v2, v6, v10, v14, m[4], m[5])
    v3, v7, v11, v15 = mixed(v3, v7, v11, v15, m[6], m[7])
    v0, v5, v10, v15 = mixed(v0, v5, v10, v15, m[8], m[9])
    v1, v6, v11, v12 = mixed(v1, v6, v11, v12, m[10], m[11])
    v2, v7, v8, v13 = mixed(v2, v7, v8, v13, m[12], m[13])
    v3, v4, v9, v14 = mixed(v3, v4, v9, v14, m[14], m[15])
    return v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15


@compiled
def compressed(h: Eight, m: Sixteen, counted: Word, last: Word) -> Eight:
    """Return the state after a block (RFC 7693, 3.2: F); `counted` bytes so far, `last` all ones at the end."""
    m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, ma, mb, mc, md, me, mf = m
    v = (*h, IV0, IV1, IV2, IV3, IV4 ^ counted, IV5, IV6 ^ last, IV7)
    v = after_round(v, (m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, ma, mb, mc, md, me, mf))
    v = after_round(v, (me, ma, m4, m8, m9, mf, md, m6, m1, mc, m0, m2, mb, m7, m5, m3))
    v = after_round(v, (mb, m8, mc, m0, m5, m2, mf, md, ma, me, m3, m6, m7, m1, m9, m4))
    v = after_round(v, (m7, m9, m3, m1, md, mc, mb, me, m2, m6, m5, ma, m4, m0, mf, m8))
    v = after_round(v, (m9, m0, m5, m7, m2, m4, ma, mf, me, m1, mb, mc, m6, m8, m3, md))
    v = after_round(v, (m2, mc, m6, ma, m0, mb, m8, m3, m4, md, m7, m5, mf, me, m1, m9))
    v = after_round(v, (mc, m5, m1, mf, me, md, m4, ma, m0, m7, m6, m3, m9, m2, m8, mb))
    v = after_round(v, (md, mb, m7, me, mc, m1, m3, m9, m5, m0, mf, m4, m8, m6, m2, ma))
    v = after_round(v, (m6, mf, me, m9, mb, m3, m0, m8, mc, m2, md, m7, m1, m4, ma, m5))
    v = after_round(v, (ma, m2, m8, m4, m7, m6, m1, m5, mf, mb, m9, me, m3, mc, md, m0))
    v = after_round(v, (m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, ma, mb, mc, md, me, mf))
    v = after_round(v, (me, ma, m4, m8, m9, mf, md, m6, m1, mc, m0, m2, mb, m7, m5, m3))
    return (
        h[0] ^ v[0] ^ v[8],
        h[1] ^ v[1] ^ v[9],
        h[2] ^ v[2] ^ v[10],
        h[3] ^ v[3] ^ v[11],
        h[4] ^ v[4] ^ v[12],
        h[5] ^ v[5] ^ v[13],
        h[6] ^ v[6] ^ v[14],
        h[7] ^ v[7] ^ v[15],
    )
