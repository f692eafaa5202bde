"""``pytest -p handlax.as_jax.pytest_plugin``: the tests of a library written for JAX, run on handlax.

The environment variable ``PYTEST_ADDOPTS`` names it for a run whose command cannot be changed.
"""

from .views import install


def pytest_addoption() -> None:
    """Install: pytest calls this hook of a plugin named by ``-p`` before it loads others, or any ``conftest.py``."""
    install()
