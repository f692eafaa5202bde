"""The handler stack, source locations, errors, settings, caches, immutability; imports nothing of the package."""
