"""Researching the choice of formats: patterns by seed, corpora of problems, recorded times, strategies compared.

Nothing of the compiler imports this room."""
