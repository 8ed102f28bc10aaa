"""Campaigns of hostile input: mutated protocols, expressions, damaged run logs, odd
replies.

``python -m fuzz --hours 8`` runs all campaigns, and ``python -m fuzz --minutes 1 --only
log`` runs one of them. Every case is drawn from a seed. Every case that ever broke
something stays in ``fuzz/corpus``, which the tests try, too.
"""
