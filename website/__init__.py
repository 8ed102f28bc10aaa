"""Generates parts of the documentation site from the code, when mkdocs builds the site.
This package is not shipped.
"""
