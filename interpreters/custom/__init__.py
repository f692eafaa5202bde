"""Functions with derivative or batching rules of their own; may import transformations and what comes before it."""
