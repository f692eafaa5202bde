"""``python -m handlax.as_jax``."""

import sys

from .run import main

if __name__ == "__main__":
    main(sys.argv[1:])
