"""The GPU benchmarks: what is measured (``cells``, ``bars``), against whom (``peers``), and how.

``sparsecc bench gpu`` runs them. Nothing here is needed to compile or to run a kernel."""
