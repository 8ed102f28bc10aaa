"""The dialogue family: a described graph, questions about paths in it, and free-text
answers that are scored.
"""
