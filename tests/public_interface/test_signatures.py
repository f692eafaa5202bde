"""Every public name that JAX has too takes JAX's parameters: their names, kinds, order and defaults."""

from __future__ import annotations

import importlib
import inspect

import numpy as np
import pytest

MODULES = (
    "", "lax", "lax.linalg", "numpy", "numpy.linalg", "numpy.fft", "nn", "nn.initializers", "random", "tree",
    "tree_util", "dtypes", "ad_checkpoint", "checkpoint_policies", "custom_batching", "custom_derivatives", "debug",
    "experimental", "scipy.special", "scipy.linalg", "ops", "test_util", "flatten_util", "example_libraries.optimizers",
    "scipy.integrate", "scipy.fft",
    "sharding", "distributed", "experimental.custom_partitioning", "experimental.mesh_utils",
    "experimental.multihost_utils", "experimental.sparse",
    "experimental.sparse.linalg",
    "dlpack", "ffi", "monitoring", "profiler", "export",
)

# Parameters that JAX has and we do not: name -> why. Behind a function's name and a colon, it holds there alone.
NOT_OURS = {
    "sum_match": "newer than 0.10",
    "in_nzs": "newer than 0.10, internal",
    "unreduced_kind": "newer than 0.10",
    "saveable_args": "newer than 0.10, internal",
    "batch_size": "newer than 0.10",
    "concrete": "deprecated in 0.10, gone in 0.11",
    "to": "types that vary over a mesh, which are inferred here",
    "manual_axis_type": "types that vary over a mesh, which are inferred here",
    "vma": "types that vary over a mesh, which are inferred here",
    "is_ref": "mutable references, which are not there",
    "_memory_space": "internal",
    "_override_lowering_rules": "internal",
    "call": "a ufunc is made of one function, from which everything else follows",
    "at": "a ufunc is made of one function, from which everything else follows",
    "reduceat": "a ufunc is made of one function, from which everything else follows",
    "allow_extended_dtype": "extended dtypes are dtypes",
    "skip_ffi_layout_processing": "layouts are always said",
    "one_hot: out_sharding": "newer than 0.10",
    "with_logs": "newer than 0.10",
    "with_accums": "newer than 0.10",
    "custom_gradient: remat": "newer than 0.10",
    "histogram: out_sharding": "newer than 0.10",
    **{f"{name}: method": "newer than 0.10" for name in ("gamma", "loggamma", "beta", "chisquare", "poisson")},
}
# Parameters that we have and JAX (or one of its versions) has not: name -> why.
NOT_THEIRS = {
    **{f"build_ffi_lowering_function: {name}": "JAX takes any words here"
       for name in ("has_side_effect", "operand_output_aliases", "api_version")},
    "breakpoint: stdin": "where the debugger reads",
    "breakpoint: stdout": "where the debugger writes",
    "reduce_axes": "JAX before 0.11",
    "abstracted_axes": "JAX before 0.11",
    "accuracy": "JAX has it for these functions in some versions",
    "is_stable": "newer than 0.10",
    "mul: out_dtype": "newer than 0.10",
    "axis_index: axis_index_groups": "as the other collectives",
    "pbroadcast: axis_index_groups": "as the other collectives",
    "tridiagonal_solve: perturb_singular": "newer than 0.10",
    "reduce_max: out_sharding": "newer than 0.10",
    "reduce_min: out_sharding": "newer than 0.10",
    "empty_like: out_sharding": "as the other functions of creation",
    "remat: static_argnames": "checkpoint has it",
    "ufunc: associative": "lets reduce and accumulate run as a tree",
    "ufunc: scatter": "how ufunc.at combines values",
    "vmap: group": "executes branches on the lanes that take them",
    "vmap: per_length": "calls the function once for each length",
    "while_loop: max_steps": "bounds what reverse mode keeps",
    "while_loop: checkpoints": "bounds what reverse mode keeps",
}
# Names whose signature differs as a whole: name -> why.
DIFFERENT = {
    "Exported": "export and deserialize make it",
    "DisabledSafetyCheck": "its methods make it",
    "ffi_lowering": "the options are those of build_ffi_lowering_function",
    "jit": "fun and the shardings that are not given are None",
    "set_printoptions": "NumPy's, written out",
    "Partial": "functools.partial's",
    "canonicalize_dtype": "extended dtypes are dtypes",
    "random_gamma_grad": "JAX takes anything here",
    "default_matmul_precision": "the precision is named",
    "issubdtype": "jax.numpy and jax.dtypes differ themselves",
    "allow_f16_reductions": "it has no meaning here",
    "auto_pcast": "it has no meaning here",
    "debug_key_reuse": "it has no meaning here",
    "enable_checks": "it has no meaning here",
    "jax2tf_associative_scan_reductions": "it has no meaning here",
    "remove_size_one_mesh_axis_from_type": "it has no meaning here",
    "softmax_custom_jvp": "it has no meaning here",
    "array_garbage_collection_guard": "the level is named",
    "legacy_prng_key": "the level is named",
    "transfer_guard_device_to_device": "the level is named",
    "transfer_guard_device_to_host": "the level is named",
    "transfer_guard_host_to_device": "the level is named",
    "enable_custom_prng": "without an argument it switches on",
    "no_execution": "without an argument it switches on",
    "threefry_partitionable": "without an argument it switches on",
    "default_device": "without an argument it restores the default",
    "debug_nans": "without an argument it switches on",
    "debug_infs": "without an argument it switches on",
    "check_tracer_leaks": "without an argument it switches on",
    "explain_cache_misses": "without an argument it switches on",
    "log_compiles": "without an argument it switches on",
    "no_tracing": "without an argument it switches on",
    "default_prng_impl": "the generator is named",
    "checking_leaks": "without an argument it switches on",
    "enable_x64": "without an argument it switches on",
    "numpy_dtype_promotion": "the rule is named",
    "numpy_rank_promotion": "the rule is named",
    "check_jvp: eps": "by default the step follows from the dtype",
    "check_vjp: eps": "by default the step follows from the dtype",
    "polyval: unroll": "JAX 0.10 says 16, later ones None",
    "take_along_axis: wrap_negative_indices": "JAX 0.10 says None for True",
    "einsum: _dot_general": "internal",
    "cond: operand": "an object that says that none is given",
    "switch: operand": "an object that says that none is given",
    "AbstractDevice": "made by the names of its fields, of which JAX 0.10 has fewer",
    "custom_gradient: fun": "without it a decorator, newer than 0.10",
}


def parameters(f):
    try:
        return list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        return None


def names():
    for module in MODULES:
        ours, theirs = (_module(root, module) for root in ("handlax", "jax"))
        if ours is None or theirs is None:
            continue
        for name in sorted(dir(ours)):
            f = getattr(ours, name)
            public = not name.startswith("_") and not inspect.ismodule(f)
            if not public or not callable(f) or not callable(getattr(theirs, name, None)):
                continue
            yield module, name, f, getattr(theirs, name)


def _module(root, name):
    try:
        return importlib.import_module(f"{root}.{name}" if name else root)
    except ModuleNotFoundError:
        return None


def reason(table, name, parameter):
    return parameter in table or f"{name}: {parameter}" in table


def same_default(a, b):
    if a is b or (a is None and b is None):
        return True
    sentinel = [type(x).__module__.startswith(("jax", "handlax")) or callable(x) for x in (a, b)]
    if any(sentinel):
        return all(sentinel) or getattr(a, "__name__", a) == getattr(b, "__name__", b)
    try:
        return bool(a == b) or bool(np.isclose(a, b))
    except TypeError:
        return repr(a) == repr(b)


def differences(name, ours, theirs):
    """What is not as in JAX, apart from what the tables say."""
    mine = {p.name: p for p in ours}
    other = {p.name: p for p in theirs}
    if any(p.kind is p.VAR_POSITIONAL for p in theirs) and any(p.kind is p.VAR_KEYWORD for p in theirs):
        return []  # JAX writes none
    nameless = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    found = []
    positional = [[p for p in ps if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)] for ps in (ours, theirs)]
    for a, b in zip(*positional):
        if b.kind not in nameless and (a.name != b.name or a.kind is not b.kind) and name not in DIFFERENT:
            found.append(f"{b.name} is called {a.name}, {a.kind.description}")
    for p in theirs:
        if p.kind in nameless or p.name in mine or reason(NOT_OURS, name, p.name):
            continue
        found.append(f"{p.name} is missing")
    for p in ours:
        if p.kind not in nameless and p.name not in other and not reason(NOT_THEIRS, name, p.name):
            found.append(f"{p.name} is not JAX's")
    for key in mine.keys() & other.keys():
        a, b = mine[key], other[key]
        if reason(DIFFERENT, name, key) or (a.kind in nameless and b.kind in nameless):
            continue
        given = [(p.default is p.empty, p.kind is p.KEYWORD_ONLY) for p in (a, b)]
        if given[0] != given[1] or (a.default is not a.empty and not same_default(a.default, b.default)):
            found.append(f"{a} must be {b}")
    return found


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore")
def test_signatures_are_those_of_jax():
    wrong, count = [], 0
    for module, name, f, theirs in names():
        if name in DIFFERENT or (inspect.isclass(theirs) and issubclass(theirs, Exception)):
            continue
        if getattr(theirs, "dtype", None) is not None and not inspect.isfunction(theirs):
            continue  # a dtype is called with a number, 0 where there is none, as NumPy's
        mine, other = parameters(f), parameters(theirs)
        if mine is None or other is None:
            continue
        count += 1
        wrong += [f"{module}.{name}: {what}" for what in differences(name, mine, other)]
    assert count > 300
    assert not wrong, "\n".join(wrong)


@pytest.mark.peer
def test_the_tables_name_what_exists():
    known = {name for _, name, _, _ in names()}
    for key in (*DIFFERENT, *NOT_OURS, *NOT_THEIRS):
        head, _, _ = key.partition(": ")
        assert ": " not in key or head in known, key
    for key in DIFFERENT:
        assert key.partition(": ")[0] in known, key


def test_what_is_accepted_with_its_default_is_refused_otherwise():
    hx = importlib.import_module("handlax")
    assert float(hx.lax.sin(0.0, accuracy=None)) == 0.0
    with pytest.raises(hx.errors.BadArgument, match="accuracy"):
        hx.lax.sin(0.0, accuracy="highest")
    assert hx.numpy.zeros(2, out_sharding=None).shape == (2,)
