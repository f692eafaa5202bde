"""jaxlib does not import jax on our behalf, and both libraries work in one process."""

import sys
from types import SimpleNamespace

import pytest
from helpers.new_process import in_new_process

from handlax.lowering.xla import jax_import_guard
from handlax.lowering.xla.jax_import_guard import without_jax


def test_no_call_of_the_runtime_looks_for_jax():
    code = """
import sys, numpy as np, ml_dtypes
class Watch:
    seen = []
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition('.')[0] == 'jax': cls.seen.append(name)
sys.meta_path.insert(0, Watch)
from handlax.lowering.xla import buffer_types as b, jaxlib_runtime as r
class Exporter:
    def __dlpack__(self, **_): return _jax.buffer_to_dlpack_managed_tensor(x, stream=None)
    def __dlpack_device__(self): return 1, 0
from handlax.lowering.clients.jaxlib_modules import _jax
from handlax.effects.base import config; config.config.update("num_cpu_devices", 2)
d, d2 = r.backend('cpu').devices
t = 'tensor<8xf32>'
text = f'func.func public @main(%a: {t}) -> {t} {{ %0 = stablehlo.add %a, %a : {t}\\n return %0 : {t} }}'
e = r.compile(text, devices=[d], results=[((8,), np.float32)])
e = r.deserialize(e.serialize(), devices=[d], results=[((8,), np.float32)])
e.cost_analysis(), e.memory_analysis(), e.hlo_text(), r.cache_key_facts([d]), r.register_lapack()
y = e.execute([r.put(np.ones(8, np.float32), d)])[0]
for dtype in sorted(b.NATIVE | b.EXTENDED, key=str):
    x = r.put(np.ones(8, dtype), d)
    r.to_numpy(x, x.aval.dtype, x.aval.shape), r.pointer(x), r.copy_to_device(x, d2), r.block_until_ready(x)
    if dtype not in b.PACKED and dtype.itemsize > 1: r.from_dlpack(Exporter(), d)
r.delete(x)
print(Watch.seen)
"""
    assert in_new_process(code) == "[]"


@pytest.mark.parametrize("order", ["forwards", "backwards"])  # the first that looks for it may spare the others
def test_nothing_that_an_array_has_looks_for_jax(order):
    code = """
import sys, numpy as np, warnings
warnings.simplefilter("ignore")
class Watch:
    seen = []
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition('.')[0] == 'jax': cls.seen.append(name)
sys.meta_path.insert(0, Watch)
import handlax as hx
hx.config.update("num_cpu_devices", 2)
mesh = hx.make_mesh((2,), ("i",))
spread = lambda x: hx.device_put(x, hx.NamedSharding(mesh, hx.P("i")))
made = [lambda x: hx.numpy.asarray(np.array(x)), hx.jit(lambda x: x + 1), spread]
for make in made:
    for dtype in ("float32", "bfloat16"):
        x = make(hx.numpy.ones(2, dtype))
        names = [name for name in dir(x) if name[0] != "_" and name != "delete"]
        names += ["__dlpack__", "__dlpack_device__", "__cuda_array_interface__", "__iter__"]
        for name in [*names[:: 1 if sys.argv[1] == "forwards" else -1], "delete"]:
            for given in ((), (0,)):
                try:
                    getattr(x, name)(*given)
                except Exception:
                    pass
            if Watch.seen:
                sys.exit(name)
print("none")
"""
    assert in_new_process(code.replace("sys.argv[1]", repr(order))) == "none"


def test_calls_within_each_other_keep_jax_away_until_the_first_ends(monkeypatch):
    monkeypatch.setattr(jax_import_guard, "jax_is_loaded", lambda: False)
    monkeypatch.delitem(sys.modules, "jax._src.sharding_impls", raising=False)
    with without_jax():
        with without_jax():
            pass
        assert sys.modules["jax._src.sharding_impls"] is None
    assert "jax._src.sharding_impls" not in sys.modules


def test_once_jax_is_loaded_its_own_types_are_found(monkeypatch):
    monkeypatch.setattr(jax_import_guard, "jax_is_loaded", lambda: True)
    theirs = lambda shape, dtype, weak: (shape, dtype, weak)
    monkeypatch.setitem(sys.modules, "jax._src.core", SimpleNamespace(ShapedArray=theirs))
    monkeypatch.setitem(sys.modules, "jax._src.sharding_impls", "theirs")
    with without_jax():
        assert sys.modules["jax._src.sharding_impls"] == "theirs"
    assert jax_import_guard._shaped_array((2,), "float32", True) == ((2,), "float32", True)
    monkeypatch.setattr(jax_import_guard, "jax_is_loaded", lambda: False)
    assert jax_import_guard._shaped_array((2,), "float32").shape == (2,)


COEXIST = """
import sys, numpy as np, ml_dtypes
from handlax.lowering.clients.jaxlib_modules import _jax
from handlax.lowering.xla import jaxlib_runtime as r
class Exporter:
    def __init__(self, x): self.x = x
    def __dlpack__(self, **_): return _jax.buffer_to_dlpack_managed_tensor(self.x, stream=None)
    def __dlpack_device__(self): return 1, 0
def ours():
    d = r.backend('cpu').default_device
    t = 'tensor<2xf64>'
    e = r.compile(f'func.func public @main(%a: {t}) -> {t} {{ %0 = stablehlo.add %a, %a : {t}\\n return %0 : {t} }}',
                  devices=[d], results=[((2,), np.float64)])
    (y,) = e.execute([r.put(np.array([1.0, 2.0]), d)])
    assert r.to_numpy(y, y.aval.dtype, (2,)).tolist() == [2.0, 4.0] and y.aval is r.aval((2,), np.float64)
    b = r.put(np.ones(3, ml_dtypes.bfloat16), d)
    c = r.from_dlpack(Exporter(b), d)
    assert r.to_numpy(c, c.aval.dtype, c.aval.shape).tolist() == [1, 1, 1] and c.aval is b.aval
    return Exporter(y)
def theirs(x=None):
    import jax, jax.numpy as jnp
    assert jax.jit(lambda a: jnp.sin(a) + a)(jnp.arange(8.0)).dtype == np.float32
    assert jax.grad(lambda a: (a ** 2).sum())(jnp.ones(3)).tolist() == [2, 2, 2]
    if x is not None: assert jax.dlpack.from_dlpack(x).tolist() == [2.0, 4.0]
"""


@pytest.mark.peer
@pytest.mark.parametrize("order", ["theirs(); theirs(ours()); theirs()", "x = ours(); theirs(x); theirs(ours())"])
def test_we_and_jax_work_in_one_process_in_either_order(order):
    pytest.importorskip("jax")
    assert in_new_process(COEXIST + order + "\nprint('done')", JAX_PLATFORMS="cpu") == "done"
