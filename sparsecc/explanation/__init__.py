"""Explanations of a choice: the plans that were ranked with the terms of their predicted times, why each loser lost,
what is not legal and what would be, and what would pay. Everything is asked of the model that chose.

``report.explain(decision)`` makes plain data, ``text`` a page for a terminal, ``html`` one for a browser."""
