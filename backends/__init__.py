"""The code wing: from the last IR of a target to a callable."""

if __name__ != "sparsecc.backends":
    raise ImportError("import sparsecc.backends, not the folder backends")
