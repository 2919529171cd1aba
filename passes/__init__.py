"""The rewriting wing: passes between the stages, one module a pass."""

if __name__ != "sparsecc.passes":
    raise ImportError("import sparsecc.passes, not the folder passes")
