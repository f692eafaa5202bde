"""Foreign functions beside ``jax.ffi``: the calls in StableHLO, lane by lane, and values."""

import re

import numpy as np
import pytest
from helpers import foreign_library

import handlax as hx

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]
X = np.arange(24, dtype="float32").reshape(2, 3, 4)
CASES = {
    "plain": ({}, {}),
    "layouts": ({"input_layouts": [(0, 2, 1)], "output_layouts": (2, 1, 0)}, {}),
    "default_layouts": ({"input_layouts": [None], "output_layouts": None}, {}),
    "alias": ({"input_output_aliases": {0: 0}}, {}),
    "effect": ({"has_side_effect": True}, {}),
    "old": ({"custom_call_api_version": 2, "legacy_backend_config": "text"}, {}),
    "attributes": ({}, {"i": 3, "b": True, "f": 2.5, "s": "text", "n": np.int8(-3), "h": np.float32(0.1),
                        "a": np.float32([1, 2.5]), "m": {"x": 1, "y": np.bool_(False)}, "d": np.dtype("float32"),
                        "l": (np.int32(1), "z")}),
    "expand_dims": ({"vmap_method": "expand_dims", "input_layouts": [(1, 0)], "output_layouts": (0, 1)}, {}),
    "broadcast_all": ({"vmap_method": "broadcast_all"}, {}),
    "legacy_vectorized": ({"vmap_method": "legacy_vectorized"}, {}),
}
NOTHING = ('""', "{}", "false", "[]")


def call_in(text):
    """The types of the one custom call of a module, and its attributes as texts; without those that say nothing.

    The text of JAX's version 4 has the attributes under a name of an older dialect, and leaves the version out.
    """
    mlir = pytest.importorskip("jax")._src.interpreters.mlir
    found = []

    def visit(op):
        if op.name == "stablehlo.custom_call":
            words = {name: str(op.attributes[name]) for name in sorted(op.attributes)}
            said = {"api_version": "4 : i32", **{name.removeprefix("mhlo."): text for name, text in words.items()}}
            types = [str(x.type) for x in (*op.operands, *op.results)]
            found.append((types, {name: value for name, value in said.items() if value not in NOTHING}))
        return mlir.ir.WalkResult.ADVANCE

    with mlir.make_ir_context():
        mlir.ir.Module.parse(text).operation.walk(visit)
    (call,) = found
    return call


@pytest.mark.parametrize("name", CASES)
def test_a_call_is_the_same_operation_of_stablehlo(name):
    jax = pytest.importorskip("jax")
    options, attributes = CASES[name]
    texts = []
    for package in (hx, jax):
        like = lambda x: package.ShapeDtypeStruct(x.shape, x.dtype)
        call = lambda x: package.ffi.ffi_call("f", like(x), **options)(x, **attributes)
        f = package.vmap(call) if "vmap_method" in options else call
        with jax.enable_x64(True):
            texts.append(package.jit(f).lower(X).as_text())
    ours, theirs = map(call_in, texts)
    assert ours == theirs


def test_values_and_gradients_are_those_of_jax():
    jax = pytest.importorskip("jax")
    ours = foreign_library.rms_norm()
    space = {"hx": jax, "np": np, "ffi_call": jax.ffi.ffi_call, "library": foreign_library.library()}
    source = foreign_library.block("py").replace('library = ctypes.CDLL("./rms_norm.so")', "")
    exec(re.sub("hx.ffi.register.*", "", source), space)
    theirs = space["rms_norm"]
    np.testing.assert_array_equal(ours(X, 0.5), theirs(X, 0.5))
    gradient = lambda package, f: package.grad(lambda x: (f(x, 0.5) ** 2 * X).sum())
    np.testing.assert_allclose(gradient(hx, ours)(X), gradient(jax, theirs)(X), rtol=1e-5, atol=1e-6)
    for method in ("sequential", "expand_dims", "broadcast_all"):
        results = []
        for package in (hx, jax):
            like = [package.ShapeDtypeStruct(s, np.dtype("float32")) for s in ((3, 4), (3,))]
            f = lambda x: package.ffi.ffi_call("rms_norm", like, vmap_method=method)(x, eps=np.float32(0.5))[0]
            results.append(np.asarray(package.jit(package.vmap(f))(X)))
        np.testing.assert_array_equal(*results)
