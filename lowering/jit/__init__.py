"""jit and its dispatch, devices, ahead-of-time stages, checkpoint; may import arrays and what comes before it."""
