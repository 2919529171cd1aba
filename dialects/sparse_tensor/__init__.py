"""The sparse_tensor dialect: encodings, and the operations on sparse tensors."""

from sparsecc.dialects.sparse_tensor.attributes import EncodingAttr

__all__ = ["EncodingAttr"]
