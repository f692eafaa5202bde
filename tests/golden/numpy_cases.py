"""Calls of ``numpy``: promotion, weak scalars and NumPy's conventions.

Where the dtype of a result is the default one (counts, indices, means of integers) no 64-bit argument is used.
"""

from typing import Any

from .call_case import Array, Case, From, case, dtype_of, each

FLOATS = "f16 bf16 f32 f64"
NARROW = "b1 i8 u8 i32 f16 bf16 f32 c64"
INF, NAN = float("inf"), float("nan")
ODD = (0.0, -0.0, INF, -INF, NAN, 1.0, -1.5, 2.5)
x, y = Array("f32", (3, 4)), Array("f32", (3, 4), seed=1)
v, w = Array("f32", (6,)), Array("f32", (6,), seed=1)
n = Array("i32", (6,), 0, 5)
holes = Array("f32", (2, 4), values=(1.0, NAN, 3.0, -2.0, NAN, 5.0, 0.5, 1.5))


def odd(short: str = "f32") -> Array:
    return Array(short, (8,), values=ODD)


def elementwise() -> list[Case]:
    rows: list[Case] = []
    for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "arctan", "arcsinh", "exp", "expm1", "exp2", "cbrt"):
        rows += each(f"numpy.{name}", "b1 i8 i32 f16 f32 f64") + [case(f"numpy.{name}", 1), case(f"numpy.{name}", 0.5)]
    rows += each("numpy.sinc", "f32 f64", low=0.2, high=2.8, loose=8)
    for name in ("log", "log2", "log10", "log1p", "sqrt"):
        rows += each(f"numpy.{name}", "u8 i32 f16 bf16 f32 f64", low=1, high=9) + [case(f"numpy.{name}", 2),
                                                                                   case(f"numpy.{name}", odd())]
    rows += each("numpy.arcsin", "f32", low=-0.9, high=0.9) + each("numpy.arccos", "f64", low=-0.9, high=0.9)
    rows += each("numpy.arctanh", "f32", low=-0.9, high=0.9) + each("numpy.arccosh", "f32", low=1.1)
    for name in ("floor", "ceil", "trunc", "rint", "isnan", "isinf", "isfinite", "signbit", "nan_to_num", "i0",
                 "isposinf", "isneginf"):
        rows.append(case(f"numpy.{name}", v if name == "i0" else odd(), loose=4))
    for name in ("abs", "absolute", "negative", "positive", "square", "sign", "conj", "real", "imag"):
        rows += each(f"numpy.{name}", "i8 u8 f16 f32 c64 i64") + [case(f"numpy.{name}", 2.0)]
    rows += each("numpy.angle", "f32 c64") + each("numpy.fabs", "i32 f32") + each("numpy.reciprocal", "f32 f64 i32",
                                                                                  low=1, high=4)
    rows += each("numpy.round", "f32 i32 bf16") + [case("numpy.round", v, 2), case("numpy.deg2rad", v),
                                                   case("numpy.rad2deg", v)]
    for name in ("logical_not", "isreal", "iscomplex"):
        rows += each(f"numpy.{name}", "b1 i32 f32 c64")
    return rows + each("numpy.invert", "b1 i8 u32") + each("numpy.bitwise_count", "i8 u32", low=-9, high=9)


def binary() -> list[Case]:
    rows: list[Case] = []
    pairs = [("b1", "b1"), ("i8", "u8"), ("i32", "f16"), ("f16", "bf16"), ("bf16", "f32"), ("u16", "i32"),
             ("f32", "c64"), ("b1", "i8"),
             ("i64", "u8"), ("f32", "f64"), ("i64", "f32"), ("f64", "c64")]
    for name in ("add", "multiply", "maximum"):
        rows += [case(f"numpy.{name}", Array(a, (6,)), Array(b, (6,), seed=1)) for a, b in pairs
                 if name != "maximum" or "c64" not in (a, b)]
    for name in ("subtract", "minimum", "power", "arctan2", "hypot", "logaddexp", "fmax", "fmin", "copysign",
                 "float_power"):
        loose = 4 if "pow" in name or "log" in name else 1
        rows += [case(f"numpy.{name}", Array(d, (6,), 0.5), Array(d, (6,), 0.5, seed=1), loose=loose)
                 for d in ("f32", "f64", "bf16")
                 if name != "float_power" or d == "f32"]
        if name not in ("power", "float_power", "subtract"):
            rows.append(case(f"numpy.{name}", odd(), Array("f32", (8,))))
    rows += [case("numpy.power", Array("i32", (6,)), Array("i32", (6,), 0, 4, 1)), case("numpy.power", v, 3),
             case("numpy.power", 2, Array("f32"))]
    for name in ("divide", "floor_divide", "remainder", "fmod", "divmod"):
        rows += [case(f"numpy.{name}", Array(d, (8,), -9, 9), Array(d, (8,), 1, 4, 2), loose=2)
                 for d in ("i8", "u8", "i32", "f32", "f16")]
        signs = (7, -7, 7, -7), (2, 2, -2, -2)
        rows += [case(f"numpy.{name}", *(Array(d, (4,), values=s) for s in signs)) for d in ("i32", "f32")]
        rows.append(case(f"numpy.{name}", n, 2))
    rows += [case("numpy.divide", Array(d), Array(d, seed=1), loose=4) for d in ("f64", "c64")]
    for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
        rows += [case(f"numpy.{name}", v, w), case(f"numpy.{name}", n, 2.5),
                 case(f"numpy.{name}", Array("i8"), Array("u8"))]
    for name in ("logical_and", "logical_or", "logical_xor"):
        rows += [case(f"numpy.{name}", Array("b1", (6,)), Array("b1", (6,), seed=2)), case(f"numpy.{name}", n, v)]
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"):
        rows += [case(f"numpy.{name}", Array(d, (6,), 0, 90), Array(d, (6,), 0, 6, 1)) for d in ("i8", "u32", "i64")]
    rows += [case("numpy.gcd", Array("i32", (6,), 1, 60), Array("i32", (6,), 1, 60, 2)),
             case("numpy.lcm", n, Array("i32", (6,), 1, 9))]
    rows += [case("numpy.heaviside", v, 0.5), case("numpy.ldexp", v, n), case("numpy.nextafter", v, w),
             case("numpy.isclose", v, w, atol=1.0)]
    for d in NARROW.split():
        rows += [case("numpy.add", Array(d), s) for s in (1, 2.5, 1j)] + [case("numpy.multiply", True, Array(d))]
    for d in ("i64", "u64", "f64", "c128"):
        rows += [case("numpy.add", Array(d), 1), case("numpy.multiply", Array(d), 2)]
    for d in ("b1", "i8", "i32", "f16", "bf16", "f32"):
        weak = From("weak 2.0", lambda m: m.numpy.asarray(2.0))
        rows += [case("numpy.add", Array(d), weak), case("numpy.where", Array("b1", (6,), seed=3), Array(d), weak)]
    rows += [case(f"numpy.{f}", a, b) for f in ("add", "divide", "power", "maximum") for a,
             b in ((1, 2), (1, 2.0), (2.0, 3))]
    return rows + [case("numpy.add", True, False), case("numpy.add", 1, 1j)]


def reductions() -> list[Case]:
    rows: list[Case] = []
    for name in ("sum", "prod", "mean", "max", "min", "any", "all", "cumsum", "ptp"):
        dtypes = "i8 u8 i32 f16 f32" if name in ("max", "min", "ptp") else NARROW
        rows += each(f"numpy.{name}", dtypes, (3, 4), low=0.5, loose=8) + each(f"numpy.{name}", "f32 i32", (3, 4),
                                                                               axis=1, loose=8)
        rows += each(f"numpy.{name}", "f64", (3, 4), axis=0, loose=8)
        if name != "cumsum":
            rows.append(case(f"numpy.{name}", x, axis=(0, 1), keepdims=True, loose=8))
    for name in ("var", "std"):
        rows += each(f"numpy.{name}", "i32 f16 f32 f64 c64", (3, 4),
                     loose=16) + [case(f"numpy.{name}", x, axis=-1, ddof=1, loose=16)]
    mask = Array("b1", (3, 4), seed=2)
    rows += [case("numpy.sum", x, axis=0, where=mask, loose=8), case("numpy.mean", x, where=mask, loose=8),
             case("numpy.max", x, initial=0.0, where=mask)]
    rows += [case("numpy.sum", Array("i8", (5,)), dtype=dtype_of("f32")),
             case("numpy.sum", Array("f32"), dtype=dtype_of("f64"), loose=8)]
    for name in ("argmax", "argmin", "argsort"):
        rows += each(f"numpy.{name}", "b1 u8 i32 bf16 f32", (3, 4)) + [case(f"numpy.{name}", x, axis=0),
                                                                       case(f"numpy.{name}", odd())]
    for name in ("nansum", "nanmean", "nanmax", "nanmin", "nanprod", "nanvar", "nanstd", "nanargmax", "nanargmin",
                 "nancumsum", "nanmedian"):
        rows += [case(f"numpy.{name}", holes, loose=8), case(f"numpy.{name}", holes, axis=1, loose=8)]
    rows += [case("numpy.median", x), case("numpy.median", x, axis=1),
             case("numpy.average", x, axis=0, weights=Array("f32", (3,), 1.0)),
             case("numpy.percentile", x, 30.0), case("numpy.quantile", x, Array("f32", (3,), 0.0, 1.0), axis=1,
                                                     loose=4),
             case("numpy.quantile", v, 0.4, method="nearest"), case("numpy.count_nonzero", n),
             case("numpy.count_nonzero", x, axis=1),
             case("numpy.cumprod", x, axis=0, loose=4), case("numpy.cumsum", Array("b1")), case("numpy.diff", v),
             case("numpy.diff", x, n=2, axis=0),
             case("numpy.diff", Array("b1")), case("numpy.diff", n, prepend=0), case("numpy.gradient", v),
             case("numpy.gradient", x, 0.5),
             case("numpy.trapezoid", v, dx=0.5, loose=8), case("numpy.ediff1d", v), case("numpy.cov", x, loose=16),
             case("numpy.corrcoef", x, loose=16), case("numpy.allclose", v, w), case("numpy.array_equal", v, v),
             case("numpy.unwrap", v, loose=4)]
    return rows


def shapes() -> list[Case]:
    t = Array("i32", (2, 3, 4), 0, 50)
    rows = [case(f"numpy.{name}", t, *args) for name, args in (
        ("reshape", ((4, -1),)), ("ravel", ()), ("transpose", ()), ("transpose", ((1, 0, 2),)), ("swapaxes", (0, 2)),
        ("moveaxis", (0, -1)),
        ("flip", ()), ("flip", (1,)), ("roll", (2,)), ("roll", ((1, -1), (0, 2))), ("rot90", ()),
        ("expand_dims", ((0, 2),)), ("repeat", (2,)),
        ("repeat", (2, 1)), ("tile", ((2, 1),)), ("broadcast_to", ((2, 2, 3, 4),)), ("diagonal", ()), ("trace", ()),
        ("tril", ()), ("triu", (1,)),
        ("atleast_2d", ()), ("atleast_3d", ()), ("fliplr", ()), ("flipud", ()), ("matrix_transpose", ()),
        ("rollaxis", (2,)), ("split", (2, 2)),
        ("array_split", (2, 1)), ("hsplit", (3,)), ("vsplit", (2,)), ("unstack", ()), ("ravel", ("F",)),
        ("permute_dims", ((2, 0, 1),)))]
    rows = [r if r.name != "numpy.unstack" else case("numpy.unstack", t) for r in rows]
    rows += [case("numpy.squeeze", Array("f32", (1, 3, 1))), case("numpy.squeeze", Array("f32", (1, 3, 1)), 0),
             case("numpy.atleast_1d", 2.0)]
    a, b, c = Array("f32", (2, 3)), Array("i8", (2, 3)), Array("f32", (3,))
    for name in ("concatenate", "stack", "vstack", "hstack", "dstack", "column_stack"):
        rows += [case(f"numpy.{name}", [a, b]), case(f"numpy.{name}",
                                                     [Array("bf16", (4,)), Array("f16", (4,), seed=1)])]
    rows += [case("numpy.concatenate", [a, b], axis=1), case("numpy.stack", [a, a], axis=-1),
             case("numpy.append", a, b, axis=0),
             case("numpy.block", [[a, a], [b, b]]), case("numpy.broadcast_arrays", a, c),
             case("numpy.meshgrid", c, Array("i32", (2,))),
             case("numpy.meshgrid", c, c, indexing="ij"), case("numpy.diag", c), case("numpy.diag", a, 1),
             case("numpy.diagflat", c, -1),
             case("numpy.insert", v, 2, 9.0), case("numpy.delete", v, 3), case("numpy.resize", v, (2, 4)),
             case("numpy.trim_zeros", n, jit=False, vmap=False)]
    for mode in ("edge", "reflect", "symmetric", "wrap", "maximum", "mean"):
        rows.append(case("numpy.pad", x, ((1, 2), (2, 0)), mode=mode, loose=4))
    return rows + [case("numpy.pad", x, 1), case("numpy.pad", n, (2, 1), constant_values=7),
                   case("numpy.pad", v, 2, mode="linear_ramp", end_values=1.0)]


def creation() -> list[Case]:
    rows = [case("numpy.arange", *a) for a in ((5,), (1, 7, 2), (0.0, 1.0, 0.25), (5.0,), (3, -3, -1))]
    rows += [case("numpy.arange", 4, dtype=dtype_of(d)) for d in ("f32", "u8", "i64", "bf16")]
    rows += [case("numpy.linspace", 0, 1, 5), case("numpy.linspace", -1.0, 2.0, 4, endpoint=False),
             case("numpy.linspace", 0, 9, 4, dtype=dtype_of("i32")),
             case("numpy.logspace", 0.0, 2.0, 4, loose=4), case("numpy.geomspace", 1.0, 8.0, 4, loose=4),
             case("numpy.eye", 3), case("numpy.eye", 2, 4, 1),
             case("numpy.identity", 3, dtype=dtype_of("i8")), case("numpy.tri", 3, 4, -1), case("numpy.vander", v, 3),
             case("numpy.indices", (2, 3)),
             case("numpy.full", (2, 2), 3), case("numpy.full", (2,), 1.5),
             case("numpy.full", (2,), 3, dtype=dtype_of("f64")), case("numpy.zeros", (2, 3)),
             case("numpy.ones", 4, dtype=dtype_of("bf16")), case("numpy.zeros", (), dtype=dtype_of("i64")),
             case("numpy.full_like", n, 2.5),
             case("numpy.zeros_like", Array("f64")), case("numpy.ones_like", Array("bf16"), dtype=dtype_of("i32")),
             case("numpy.hanning", 5),
             case("numpy.hamming", 5), case("numpy.blackman", 5, loose=64), case("numpy.bartlett", 5),
             case("numpy.kaiser", 5, 2.0, loose=4)]
    for value in (1, 2.5, True, 1j, [1, 2], [1, 2.5], [True, 2], [[1.0], [2.0]], []):
        rows += [case("numpy.array", value), case("numpy.asarray", value)]
    rows += [case("numpy.array", 1.5, dtype=dtype_of("f64")), case("numpy.asarray", [1, 2], dtype=dtype_of("i8")),
             case("numpy.array", v, ndmin=2)]
    rows += [case("numpy.asarray", Array(d)) for d in ("b1", "u8", "bf16", "i64", "f64", "c128")]
    rows += [case("numpy.array", [v, w]), case("numpy.tril_indices", 3), case("numpy.triu_indices", 3, 1),
             case("numpy.diag_indices", 3)]
    return rows + [case(f"numpy.{name}", *a) for name,
                   a in (("float32", (1,)), ("int8", (3,)), ("bool_", (2,)), ("bfloat16", (0.1,)), ("uint8", (7.9,)))]


def linear() -> list[Case]:
    a, b = Array("f32", (2, 3, 4)), Array("f32", (2, 4, 5), seed=1)
    rows: list[Case] = []
    for d in ("i32", "u8", "bf16", "f32", "f64", "c64"):
        rows.append(case("numpy.matmul", Array(d, (2, 3, 4)), Array(d, (2, 4, 5), seed=1), loose=8))
    rows += [case("numpy.matmul", a, Array("f32", (4,))),
             case("numpy.matmul", Array("i8", (3, 4)), Array("f32", (4, 2)), loose=8),
             case("numpy.dot", v, w, loose=8), case("numpy.dot", a, Array("f32", (4, 3)), loose=8),
             case("numpy.dot", v, 2.0),
             case("numpy.vdot", Array("c64"), Array("c64", seed=1), loose=8), case("numpy.inner", x, y, loose=8),
             case("numpy.outer", v, n),
             case("numpy.tensordot", a, b, axes=((0, 2), (0, 1)), loose=16), case("numpy.tensordot", x, v, axes=0),
             case("numpy.kron", x, y),
             case("numpy.cross", Array("f32", (2, 3)), Array("f32", (2, 3), seed=1), loose=4),
             case("numpy.vecdot", x, y, loose=8),
             case("numpy.convolve", v, w, loose=8),
             case("numpy.correlate", v, Array("f32", (3,)), mode="same", loose=8),
             case("numpy.polyval", Array("f32", (4,)), v, loose=8),
             case("numpy.matvec", x, Array("f32", (4,)), loose=8)]
    for word in ("bij,bjk->bik", "bij,bjk->ik", "bij,bjk->", "bij,bjk->kib", "bij,cjk->bcik"):
        rows.append(case("numpy.einsum", word, a, b, loose=16))
    rows += [case("numpy.einsum", word, Array("f32", (3, 3)), loose=4) for word in ("ii", "ii->i", "ij->ji", "ij->j")]
    return rows + [case("numpy.einsum", "...i,...i", x, y, loose=8),
                   case("numpy.einsum", "i,j,ij->", *(Array("f64", s) for s in ((2,), (3,), (2, 3))), loose=16)]


def searching() -> list[Case]:
    at = Array("i32", (2, 4), 0, 3)
    words = Array("i32", (7,), values=(3, 1, 3, 2, 1, 3, 0))
    eager: dict[str, Any] = {"jit": False, "vmap": False}
    rows = each("numpy.sort", "b1 u8 i32 f16 f32 f64", (3, 4)) + [case("numpy.sort", odd()),
                                                                  case("numpy.sort", x, axis=0),
                                                                  case("numpy.sort", v, descending=True)]
    rows += [case("numpy.where", Array("b1", (6,)), v, n), case("numpy.where", Array("b1", (3, 1)), x, 0.0),
             case("numpy.where", Array("b1"), 1, 2.0),
             case("numpy.where", words, size=4, vmap=False), case("numpy.nonzero", words, **eager),
             case("numpy.nonzero", words, size=9, fill_value=-1),
             case("numpy.argwhere", words, **eager), case("numpy.flatnonzero", words, **eager),
             case("numpy.unique", words, **eager),
             case("numpy.unique", words, return_index=True, return_inverse=True, return_counts=True, **eager),
             case("numpy.unique", words, size=6, fill_value=9, vmap=False),
             case("numpy.searchsorted", Array("f32", (4,), values=(-2.0, 0.0, 1.0, 2.0)), v),
             case("numpy.digitize", v, Array("f32", (3,), values=(-1.0, 0.0, 1.0))),
             case("numpy.searchsorted", Array("i32", (4,), values=(0, 1, 1, 2)), words, side="right"),
             case("numpy.bincount", words, length=5),
             case("numpy.bincount", words, weights=Array("f32", (7,)), length=4, loose=4),
             case("numpy.histogram", v, 4, vmap=False),
             case("numpy.histogram", v, Array("f32", (4,), values=(-3.0, -1.0, 1.0, 3.0)), vmap=False),
             case("numpy.take", x, at), case("numpy.take", x, at, axis=0),
             case("numpy.take", v, Array("i32", (3,), values=(-1, 9, 2))),
             case("numpy.take", v, Array("i32", (3,), values=(-1, 9, 2)), mode="clip"),
             case("numpy.take", v, Array("i32", (3,), values=(-1, 9, 2)), mode="wrap"),
             case("numpy.take_along_axis", x, at, axis=0),
             case("numpy.interp", w, Array("f32", (3,), values=(-2.0, 0.0, 2.0)), Array("f32", (3,)), loose=8),
             case("numpy.clip", v, -1.0, 1.0),
             case("numpy.clip", n, 1, 3), case("numpy.clip", odd(), max=1.0),
             case("numpy.isin", words, Array("i32", (2,), values=(1, 3))),
             case("numpy.intersect1d", words, n, **eager), case("numpy.union1d", words, n, **eager),
             case("numpy.setdiff1d", n, words, **eager),
             case("numpy.lexsort", [words, Array("f32", (7,))]),
             case("numpy.partition", v, 2, call=lambda m, a, k: m.numpy.partition(a, k)[..., k], vmap=False),
             case("numpy.select", [Array("b1", (6,)), Array("b1", (6,), seed=2)], [v, n], -1.0),
             case("numpy.choose", Array("i32", (6,), 0, 3), [v, w], mode="clip"),
             case("numpy.compress", Array("b1", (6,)), v, **eager),
             case("numpy.extract", Array("b1", (6,)), v, **eager),
             case("numpy.unravel_index", n, (2, 3)), case("numpy.packbits", Array("b1", (11,))),
             case("numpy.unpackbits", Array("u8", (2,), 0, 255)),
             case("numpy.apply_along_axis", From("max", lambda m: m.numpy.max), 0, x)]
    return rows


def indexing() -> list[Case]:
    def get(label: str, f: Any, *args: Any, **own: Any) -> Case:
        return case(label, *args, call=lambda m, *a: f(*map(m.numpy.asarray, a)), **own)

    i, b = Array("i32", (3,), values=(2, 0, -1)), Array("b1", (3,), values=(True, False, True))
    rows = [get("x[1]", lambda a: a[1], x), get("x[-1, 1:]", lambda a: a[-1, 1:], x),
            get("x[::-1, ::2]", lambda a: a[::-1, ::2], x),
            get("x[..., None]", lambda a: a[..., None], x), get("x[i]", lambda a, i: a[i], x, i),
            get("x[:, i]", lambda a, i: a[:, i], x, i),
            get("x[i, i]", lambda a, i: a[i, i], x, i), get("x[i[:, None], i]", lambda a, i: a[i[:, None], i], x, i),
            get("x[i, :2]", lambda a, i: a[i, :2], x, i), get("x[i, None, 1]", lambda a, i: a[i, None, 1], x, i),
            get("x[[0, 2]]", lambda a: a[[0, 2],], x, vmap=False),
            get("x[b]", lambda a, b: a[b], x, b, jit=False, vmap=False), get("x[99]", lambda a: a[i.make() + 99], x)]
    for name in ("set", "add", "multiply", "min", "max", "divide", "power", "subtract"):
        rows += [get(f".at[i].{name}", lambda a, i, u, name=name: getattr(a.at[i], name)(u), Array(d, (4, 3), 1.0), i,
                     Array(d, (3,), 1.0, 4.0, 2), loose=4)
                 for d in ("f32", "i32") if name != "divide" or d == "f32"]
    rows += [get(".at[i].add twice", lambda a, i: a.at[i].add(1), v, Array("i32", (4,), values=(1, 1, 9, -1))),
             get(".at[1:3].set", lambda a: a.at[1:3].set(0), x),
             get(".at[:, i].set", lambda a, i: a.at[:, i].set(7.5), x, i),
             get(".at[9].set drop", lambda a: a.at[9].set(5.0), v),
             get(".at[9].get fill", lambda a: a.at[9].get(mode="fill", fill_value=-1), v),
             get(".at[9].get clip", lambda a: a.at[9].get(mode="clip"), v),
             get(".at[b].set", lambda a, b: a.at[b].set(0.0), x, b, jit=False),
             get(".at[].apply", lambda a: a.at[1].apply(abs), v),
             get("int .at[0].set(2.7)", lambda a: a.at[0].set(2), n)]
    operators = {"x + 1": lambda a: a + 1, "1 - x": lambda a: 1 - a, "x / 2": lambda a: a / 2,
                 "x // 2": lambda a: a // 2, "x % 3": lambda a: a % 3,
                 "x ** 2": lambda a: a**2, "2 ** x": lambda a: 2**a, "-x": lambda a: -a, "abs(x)": abs,
                 "x @ x": lambda a: a @ a,
                 "x == x.T": lambda a: a == a.T, "x < 1": lambda a: a < 1, "divmod(x, 2)": lambda a: divmod(a, 2)}
    rows += [get(word, f, Array(d, (3, 3), 0.5, 4.0), loose=4) for word, f in operators.items()
             for d in ("i32", "f32", "bf16")]
    methods = {"mean": {}, "sum": {"axis": 0}, "std": {}, "argmax": {"axis": 1}, "cumsum": {}, "ravel": {},
               "astype": {"dtype": dtype_of("i8")}, "max": {},
               "clip": {"min": 0.0}, "flatten": {}, "round": {"decimals": 1}, "any": {}, "prod": {}, "dot": {"b": 2.0},
               "sort": {}, "argsort": {}}
    rows += [get(f"x.{m}({k})", lambda a, m=m, k=k: (getattr(a, m)(**k), a)[0] if m != "sort" else a.sort(), x,
                 loose=16) for m, k in methods.items()]
    return rows


CASES = [*elementwise(), *binary(), *reductions(), *shapes(), *creation(), *linear(), *searching(), *indexing()]
