"""Operands as the GPU kernels read them: each layout's packer and its exact inverse."""

from sparsecc.backends.triton.packing.bitmap import pack_bitmap as pack_bitmap
from sparsecc.backends.triton.packing.bitmap import unpack_bitmap as unpack_bitmap
from sparsecc.backends.triton.packing.packed import PackedOperand as PackedOperand
from sparsecc.backends.triton.packing.packed import WrongLayout as WrongLayout
from sparsecc.backends.triton.packing.rows import pack_bins as pack_bins
from sparsecc.backends.triton.packing.rows import pack_entries as pack_entries
from sparsecc.backends.triton.packing.rows import pack_segments as pack_segments
from sparsecc.backends.triton.packing.rows import row_tables_of as row_tables_of
from sparsecc.backends.triton.packing.semi_structured import pack_cusparselt as pack_cusparselt
from sparsecc.backends.triton.packing.stored import pack_stored as pack_stored
from sparsecc.backends.triton.packing.stream import Rows as Rows
from sparsecc.backends.triton.packing.stream import pack_sum_2_4 as pack_sum_2_4
from sparsecc.backends.triton.packing.stream import unpack_sum_2_4 as unpack_sum_2_4
from sparsecc.backends.triton.packing.stream import unpack_sum_2_4_parts as unpack_sum_2_4_parts
from sparsecc.backends.triton.packing.stream import unpack_sum_2_4_tensor as unpack_sum_2_4_tensor
from sparsecc.backends.triton.packing.two_four import NotTwoOfFour as NotTwoOfFour
from sparsecc.backends.triton.packing.two_four import TwoOfFour as TwoOfFour
from sparsecc.backends.triton.packing.two_four import pack_2_4 as pack_2_4
from sparsecc.backends.triton.packing.two_four import unpack_2_4 as unpack_2_4
from sparsecc.backends.triton.packing.two_four import unpack_2_4_parts as unpack_2_4_parts
from sparsecc.backends.triton.packing.two_four import unpack_2_4_tensor as unpack_2_4_tensor
