"""``handlax.scipy.sparse``: iterative solution of linear systems."""

from . import linalg as linalg
