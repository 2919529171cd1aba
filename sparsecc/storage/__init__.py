"""Sparse tensors in memory and in files: packing, conversion, exchange with other libraries."""
