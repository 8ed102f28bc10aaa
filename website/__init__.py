"""What the documentation site makes from the code, when mkdocs builds it; nothing here
is shipped.
"""
