"""``python -m handlax.testing.mutants``."""

import sys

from .mutation_run import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
