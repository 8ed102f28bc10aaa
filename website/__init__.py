"""Generates parts of the documentation site from the code, when mkdocs builds it.
Nothing here is shipped.
"""
