"""The passes that ship: name -> "module:Class". Outsiders add theirs by an entry point ``sparsecc.passes``."""

PASSES: dict[str, str] = {
    "generalize-named-ops": "sparsecc.passes.generalize_named_ops:GeneralizeNamedOps",
    "select-formats": "sparsecc.passes.selection.select_formats:SelectFormats",
    "call-libraries": "sparsecc.passes.selection.call_libraries:CallLibraries",
    "widen-sums": "sparsecc.passes.sparsification.widen_sums:WidenSums",
    "split-blocks": "sparsecc.passes.sparsification.split_blocks:SplitBlocks",
    "schedule-loops": "sparsecc.passes.sparsification.schedule_loops:ScheduleLoops",
    "sparsify": "sparsecc.passes.sparsification.sparsify:Sparsify",
    "match-contractions": "sparsecc.passes.tiling.match_contractions:MatchContractions",
    "dot-contractions": "sparsecc.passes.tiling.dot_contractions:DotContractions",
    "row-contractions": "sparsecc.passes.tiling.row_contractions:RowContractions",
    "lower-iteration": "sparsecc.passes.sparsification.lower_iteration:LowerIteration",
    "tile-iteration": "sparsecc.passes.tiling.tile_iteration:TileIteration",
}
