"""Emission of programs as StableHLO, compilation to executables, compiled eager operations; may import xla and what
comes before it.
"""
