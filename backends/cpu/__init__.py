"""The CPU: loops to LLVM IR (and to C, for reading), machine code through llvmlite, plans of host functions."""
