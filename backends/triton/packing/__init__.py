"""Operand layouts of the GPU kernels, made once from a weight: one code for NumPy arrays and torch tensors."""
