"""Benchmarks of handlax against JAX: ``python -m benchmarks``."""
