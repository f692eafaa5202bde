"""``handlax.as_jax``: libraries written for JAX, unchanged, on handlax.

    python -m handlax.as_jax script.py arguments        # or -m module arguments
    handlax.as_jax.install()                            # before the first ``import jax``
    pytest -p handlax.as_jax.pytest_plugin              # a library's own tests

From then on, by one law, ``jax.X`` is a view of ``handlax.X``: a module that hands on the names of another one. A name
that handlax does not have is missing, by an error that says so; none is there without its meaning. The exceptions
stand in one table, ``places.py``: what handlax has elsewhere, and what libraries take from JAX's private modules.

A name that is assigned to a view, ``jax.numpy.sin = f``, is found by every later look-up through it; handlax itself
does not ask its views, so what it computes stays as it is. 64 bits are off, as in JAX, unless they were asked for.
"""

from .views import install as install
from .views import is_installed as is_installed
