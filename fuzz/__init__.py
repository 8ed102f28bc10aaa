"""Campaigns of hostile input: mutated protocols, expressions, damaged run logs, odd
replies.

``python -m fuzz --hours 8`` runs them all, ``python -m fuzz --minutes 1 --only log``
one of them. Every case is drawn from a seed, and every one that ever broke something
stays in ``fuzz/corpus``, which the tests go through.
"""
