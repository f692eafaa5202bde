"""jit and its dispatch, devices, ahead-of-time stages, checkpoint; may import compile and what comes before it."""
