"""Families of patterns, each a function of plain parameters: ``generator.FAMILIES`` is their table."""
