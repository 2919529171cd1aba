"""The dense oracle, the corpus of expressions and a generator of random ones."""
