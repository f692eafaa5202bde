"""What handlax costs beside JAX: ``python -m benchmarks``."""
