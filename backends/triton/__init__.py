"""GPUs: tile kernels as Triton or Gluon text, compiled for a target with or without the machine."""
