"""The built-in corpora: ``corpus.CORPORA`` is their table."""
