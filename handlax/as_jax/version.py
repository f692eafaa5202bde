"""``jax.version``: the version of JAX whose behaviour handlax has.

Libraries branch on it. It is the release whose names and values the tests compare with, whatever jaxlib is installed.
"""

__version__ = "0.12.0"
__version_info__ = (0, 12, 0)
