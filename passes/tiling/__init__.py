"""From tensors to tile kernels: contractions are recognised, everything else is cut into programs of blocks."""
