"""The vocabulary: xDSL dialects of every stage (tensor level, iteration level)."""

if __name__ != "sparsecc.dialects":
    raise ImportError("import sparsecc.dialects, not the folder dialects")
