"""Write ``promotion.json``: JAX's promotion of dtypes, with 64 bits enabled.

Run where JAX is installed: ``python tests/golden/record_promotion.py``. The tests read the file and need no JAX.
"""

import itertools
import json
import random
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import dtypes

DTYPES = [
    *("bool", "int2", "int4", "int8", "int16", "int32", "int64"),
    *("uint2", "uint4", "uint8", "uint16", "uint32", "uint64"),
    *("float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz"),
    *("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float16", "bfloat16", "float32", "float64"),
    *("complex64", "complex128"),
]
WEAK = {"int": int, "float": float, "complex": complex}
ABSTRACT = [
    *("generic", "number", "integer", "signedinteger", "unsignedinteger", "inexact", "floating", "complexfloating"),
    *("bool_", "float32", "int8"),
]
NO_SIN = ("int2", "uint2")
KINDS = ["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"]
CASTINGS = ["no", "equiv", "safe", "same_kind", "unsafe"]
TRIPLES = 1500


def result(*names):
    """``[dtype, weak]``, or None where JAX refuses."""
    try:
        dtype, weak = dtypes.result_type(*(WEAK.get(n, n) for n in names), return_weak_type_flag=True)
    except (TypeError, ValueError):
        return None
    return [dtype.name, weak]


def number(x):
    """Exact, and readable by any JSON reader."""
    return repr(float(x)) if np.isfinite(float(x)) else str(x)


def limits(name):
    if jnp.issubdtype(name, jnp.integer):
        info = jnp.iinfo(name)
        return [int(info.min), int(info.max), info.bits]
    info = jnp.finfo(name)
    return [number(info.min), number(info.max), number(info.eps), number(info.tiny), info.bits]


def aval_name(name):
    text = str(jax.make_jaxpr(lambda x: x)(jax.ShapeDtypeStruct((), name)))
    return text.split("a:")[1].split("[")[0]


def key_name(impl):
    dtype = jax.random.key(0, impl=impl).dtype
    return [str(dtype), dtype.itemsize]


def main(path):
    jax.config.update("jax_enable_x64", True)
    names = [*DTYPES, *WEAK]
    triples = random.Random(0).sample(list(itertools.product(names, repeat=3)), TRIPLES)
    record = {
        "jax": jax.__version__,
        "enable_x64": True,
        "names": names,
        "pairs": [[result(a, b) for b in names] for a in names],
        "triples": [[*t, result(*t)] for t in triples],
        "subdtype": {a: [b for b in ABSTRACT if dtypes.issubdtype(np.dtype(a), getattr(np, b))] for a in DTYPES},
        "abstract": ABSTRACT,
        "isdtype": {a: [k for k in KINDS if jnp.isdtype(a, k)] for a in DTYPES},
        "kinds": KINDS,
        "can_cast": {c: [[b for b in DTYPES if jnp.can_cast(a, b, c)] for a in DTYPES] for c in CASTINGS},
        "limits": {a: limits(a) for a in DTYPES if a != "bool"},
        "short": {a: aval_name(a) for a in DTYPES},
        "inexact": {a: jnp.sin(jnp.zeros((), a)).dtype.name for a in DTYPES if a not in NO_SIN},
        "keys": {i: key_name(i) for i in ("threefry2x32", "rbg", "unsafe_rbg")},
    }
    with jax.numpy_dtype_promotion("strict"):
        record["strict"] = [[result(a, b) for b in names] for a in names]
    rows = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in record.items())
    Path(path).write_text(f"{{\n{rows}\n}}\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_name("promotion.json"))
