"""All calls to jaxlib: clients, buffers, executables, the disk cache, host callbacks; may import effects and
interpreters.
"""
