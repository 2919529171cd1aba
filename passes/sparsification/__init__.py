"""Passes from linalg on encoded tensors to loops: scheduling, merge lattices, kernels, lowering."""
