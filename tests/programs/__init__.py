"""Programs written for JAX's documented interface; with the word ``handlax`` replaced by ``jax`` they run there."""
