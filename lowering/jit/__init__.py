"""jit and its dispatch, devices, ahead-of-time stages; may import arrays and what comes before it."""
