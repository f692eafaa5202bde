"""``handlax.scipy.sparse``: linear systems given by products."""

from . import linalg as linalg
