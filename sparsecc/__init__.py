"""sparsecc: a compiler for sparse tensor programs."""
