"""``python -m handlax.as_jax (script.py | -m module) [arguments]``."""

import sys

from ..launch import main_program
from .views import install

if __name__ == "__main__":
    program = main_program("python -m handlax.as_jax", "Run a program written for JAX on handlax.", sys.argv[1:])
    install()
    program.run()
