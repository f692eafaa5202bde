"""handlax and JAX in one process: neither notices the other."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.peer

OURS = """
import handlax as hx
from handlax import numpy as hnp
"""
THEIRS = """
import jax
from jax import numpy as jnp
"""
OURS_USED = OURS + "assert float(hx.jit(lambda x: x + 1)(1.0)) == 2.0\n"
THEIRS_USED = THEIRS + "assert float(jax.jit(lambda x: x + 1)(1.0)) == 2.0\n"
START = "import numpy as np\nimport sys\n"

BOTH_WORK = """
for _ in range(2):
    assert float(hx.jit(hx.grad(lambda x: x**3))(2.0)) == 12.0
    assert float(jax.jit(jax.grad(lambda x: x**3))(2.0)) == 12.0
    np.testing.assert_array_equal(hx.vmap(hx.jit(lambda x: hnp.sin(x) * 0 + x))(hnp.arange(3.0)), np.arange(3))
    np.testing.assert_array_equal(jax.vmap(jax.jit(lambda x: jnp.sin(x) * 0 + x))(jnp.arange(3.0)), np.arange(3))
    for dtype in ("bool", "int8", "uint32", "float16", "bfloat16", "float32", "complex64"):
        ours, theirs = hx.jit(lambda x: x)(hnp.ones(3, dtype)), jax.jit(lambda x: x)(jnp.ones(3, dtype))
        assert ours.dtype == theirs.dtype and repr(theirs).startswith("Array(")
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))
"""

EXCHANGE = """
a = np.arange(6, dtype="float32").reshape(2, 3)
ours, theirs = hnp.asarray(a), jnp.asarray(a)
for x in (hnp.asarray(theirs), hnp.array(theirs), hnp.from_dlpack(theirs), hx.jit(lambda x: x * 1)(theirs)):
    assert isinstance(x, hx.Array), type(x)
    np.testing.assert_array_equal(x, a)
for y in (jnp.asarray(ours), jnp.array(ours), jnp.from_dlpack(ours), jax.jit(lambda y: y * 1)(jnp.asarray(ours))):
    assert isinstance(y, jax.Array), type(y)
    np.testing.assert_array_equal(y, a)
y = jnp.from_dlpack(ours)
del ours
np.testing.assert_array_equal(jax.jit(lambda y: y + 1)(y), a + 1)
x = hnp.from_dlpack(theirs)
del theirs
np.testing.assert_array_equal(hx.jit(lambda x: x + 1)(x), a + 1)
half = jnp.asarray(hnp.ones(3, "bfloat16"))
assert half.dtype == "bfloat16" and hnp.asarray(half).dtype == half.dtype
tree = hx.jit(lambda t: {"a": t["b"]})({"b": jnp.ones(2)})
assert isinstance(tree["a"], hx.Array)
"""

CONFIG = """
before = dict(jax.config.values)
assert hnp.ones(2, "float64").dtype == np.float64 and hx.jit(lambda x: x)(np.ones(2)).dtype == np.float64
assert jnp.asarray(np.ones(2)).dtype == np.float32
with hx.configure(default_float="float64"):
    assert hnp.ones(2).dtype == np.float64 and jnp.ones(2).dtype == np.float32
jax.config.update("jax_enable_x64", True)
assert hnp.ones(2).dtype == np.float32 and jnp.ones(2).dtype == np.float64
assert hx.jit(lambda: hnp.ones(2))().dtype == np.float32
jax.config.update("jax_enable_x64", False)
assert dict(jax.config.values) == before
assert hx.config.default_float == np.float32
assert jax.devices()[0].platform == "cpu" and hx.devices()[0].platform == "cpu"
"""

TREES = """
class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b
hx.tree_util.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, c: Pair(*c))
jax.tree_util.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, c: Pair(*c))
assert float(hx.jit(lambda p: p.a + p.b)(Pair(1.0, 2.0))) == 3.0
assert float(jax.jit(lambda p: p.a + p.b)(Pair(1.0, 2.0))) == 3.0
"""

ORDERS = {
    "handlax first": OURS + THEIRS,
    "jax first": THEIRS + OURS,
    "handlax used, then jax": OURS_USED + THEIRS,
    "jax used, then handlax": THEIRS_USED + OURS,
}
PROGRAMS = (BOTH_WORK, EXCHANGE, CONFIG, TREES)


def run(source):
    command = [sys.executable, "-W", "error::UserWarning", "-c", START + source]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("order", ORDERS)
def test_both_in_one_process(order):
    run(ORDERS[order] + "".join(PROGRAMS))


def test_handlax_alone_never_imports_jax():
    used = OURS_USED + "hx.jit(hx.grad(lambda x: hnp.sum(hnp.sin(x))))(hnp.ones((2, 2), 'bfloat16'))\n"
    run(used + "assert 'jax' not in sys.modules, 'jax was imported'\n")
