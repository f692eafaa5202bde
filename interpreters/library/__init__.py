"""Ready-made effects and handlers, each a few lines in its own file, made of the public words alone."""
