"""The machine room: plans that run, compiled kernels, the cache on disk, the reference interpreter."""
