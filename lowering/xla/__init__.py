"""All other calls to jaxlib: buffers, executables, the disk cache, host callbacks; may import clients and what comes
before it.
"""
