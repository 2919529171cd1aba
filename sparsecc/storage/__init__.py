"""Sparse tensors in memory and in files: packing, conversion, exchange with other libraries.

``tensor`` holds a tensor and what it can tell; ``pack`` makes one of entries; ``ingest`` of other
libraries' objects;
``convert`` changes its format along a path of ``conversion_graph``; ``files`` reads and writes it.
"""
