"""Exported functions: portable artifacts of StableHLO in JAX's format; may import jit and what comes before it."""
