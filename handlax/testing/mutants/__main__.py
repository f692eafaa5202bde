"""``python -m handlax.testing.mutants``."""

import sys

from .mutation_run import command

if __name__ == "__main__":
    sys.exit(command(sys.argv[1:]))
