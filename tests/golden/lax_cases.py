"""Calls of ``lax``: strict in dtype, so each dtype is a row of its own."""

from .call_case import Array, Case, From, case, dtype_of, each

FLOATS = "f16 bf16 f32 f64"
COMPLEX = "c64 c128"
INTS = "i8 i16 i32 i64 u8 u16 u32 u64"
SIGNED = "i8 i32 i64"
NUMBERS = f"i8 i32 u8 u64 {FLOATS} {COMPLEX}"
INF, NAN = float("inf"), float("nan")
ODD = (0.0, -0.0, INF, -INF, NAN, 1.0, -1.5, 2.5)


def odd(short: str, shape: tuple[int, ...] = (8,)) -> Array:
    return Array(short, shape, values=ODD)


def elementwise() -> list[Case]:
    rows: list[Case] = []
    for name in ("sin", "cos", "exp", "tanh", "sinh", "cosh", "expm1", "logistic", "atan", "asinh", "tan"):
        rows += each(f"lax.{name}", f"{FLOATS} {COMPLEX}")
    for name in ("sin", "exp", "tanh", "expm1", "logistic", "atan", "asinh", "erf", "cbrt", "floor", "ceil", "sign"):
        rows.append(case(f"lax.{name}", odd("f32")))
    for name in ("log", "log1p", "sqrt", "rsqrt"):
        rows += each(f"lax.{name}", FLOATS, low=0.1) + each(f"lax.{name}", COMPLEX)
        rows.append(case(f"lax.{name}", odd("f32")))
    for name in ("asin", "acos", "atanh"):
        rows += each(f"lax.{name}", f"{FLOATS} {COMPLEX}", low=-0.9, high=0.9)
    rows += each("lax.acosh", FLOATS, low=1.1) + each("lax.cbrt", FLOATS) + each("lax.exp2", FLOATS)
    for name, loose in (("erf", 4), ("erfc", 4), ("lgamma", 64), ("digamma", 16), ("bessel_i0e", 4), ("bessel_i1e", 4)):
        rows += each(f"lax.{name}", "f16 bf16 f32 f64", low=0.2, loose=loose)
    rows += each("lax.erf_inv", "f32 f64", low=-0.95, high=0.95, loose=4)
    for name in ("igamma", "igammac", "zeta"):
        rows += [case(f"lax.{name}", Array(d, (6,), 1.2, 5.0), Array(d, (6,), 1.2, 5.0, 3), loose=16)
                 for d in ("f32", "f64")]
    rows += [case("lax.polygamma", Array("f32", (3,), values=(1.0, 2.0, 3.0)), Array("f32", (3,), 0.5, 3.0), loose=16)]
    rows += [case("lax.betainc", *(Array(d, (4,), 0.5, 3.0, i) for i in (0, 1)), Array(d, (4,), 0.1, 0.9, 2), loose=16)
             for d in ("f32", "f64")]
    for name in ("neg", "abs", "sign", "square"):
        rows += each(f"lax.{name}", f"{SIGNED} {FLOATS} {COMPLEX}")
    for name in ("floor", "ceil", "round", "is_finite", "reciprocal"):
        rows += each(f"lax.{name}", FLOATS)
    rows += [case("lax.round", Array("f32", (6,), values=(-2.5, -1.5, -0.5, 0.5, 1.5, 2.5)), rule)
             for rule in (From("AWAY_FROM_ZERO", lambda m: m.lax.RoundingMethod.AWAY_FROM_ZERO),
                                 From("TO_NEAREST_EVEN", lambda m: m.lax.RoundingMethod.TO_NEAREST_EVEN))]
    rows += [case("lax.is_finite", odd("f32")), case("lax.abs", odd("f32")), case("lax.neg", odd("f64"))]
    for name in ("real", "imag", "conj", "abs"):
        rows += each(f"lax.{name}", COMPLEX)
    rows += [case("lax.complex", Array(d), Array(d, seed=1)) for d in ("f32", "f64")]
    rows += each("lax.integer_pow", "i32 f32 f64 c64", y=3) + each("lax.integer_pow", "f32 f64", low=0.5, y=-2)
    for name in ("bitwise_not", "population_count", "clz"):
        rows += each(f"lax.{name}", INTS, low=-100, high=100)
    return rows + each("lax.bitwise_not", "b1")


def binary() -> list[Case]:
    rows: list[Case] = []
    two = ((6,), (6,))
    for name in ("add", "sub", "mul"):
        rows += each(f"lax.{name}", NUMBERS, *two)
    rows += each("lax.add", "i8 u8", *two, low=100, high=127) + each("lax.mul", "i8 u16 i32", *two, low=99, high=127)
    for name in ("max", "min"):
        rows += each(f"lax.{name}", f"b1 {INTS} {FLOATS}", *two)
        rows.append(case(f"lax.{name}", odd("f32"), Array("f32", (8,))))
    rows += each("lax.div", FLOATS, *two) + each("lax.div", COMPLEX, *two, loose=4)
    rows += each("lax.atan2", FLOATS, *two) + each("lax.nextafter", "f16 f32 f64", *two)
    rows += [case("lax.atan2", odd("f32"), Array("f32", (8,), values=(1.0, -1.0, INF, -INF, 1.0, 0.0, -0.0, -1.0)))]
    for name in ("div", "rem"):
        rows += [case(f"lax.{name}", Array(d, (6,), -50, 50), Array(d, (6,), 2, 7, 1)) for d in INTS.split()]
        rows.append(case(f"lax.{name}", Array("i32", (4,), values=(7, -7, 7, -7)),
                         Array("i32", (4,), values=(2, 2, -2, -2))))
    rows += [case("lax.rem", Array(d), Array(d, (6,), 0.7, 2.0, 1)) for d in ("f32", "f64")]
    rows += [case("lax.pow", Array(d, (6,), 0.2), Array(d, seed=1), loose=2) for d in FLOATS.split()]
    rows += [case("lax.pow", Array("f32", (6,), 0.2), Array("i32", (6,), seed=1))]
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        rows += each(f"lax.{name}", f"b1 {INTS}", *two, low=-100, high=100)
    for name in ("shift_left", "shift_right_logical", "shift_right_arithmetic"):
        rows += [case(f"lax.{name}", Array(d, (6,), -99, 99), Array(d, (6,), 0, 10, 1)) for d in INTS.split()]
    for name in ("eq", "ne"):
        rows += each(f"lax.{name}", "b1 i32 u64 f32 bf16 c64", *two) + [case(f"lax.{name}", odd("f32"), odd("f32"))]
    for name in ("lt", "le", "gt", "ge"):
        rows += each(f"lax.{name}", "b1 i32 u64 f32 bf16 f64",
                     *two) + [case(f"lax.{name}", odd("f32"), Array("f32", (8,)))]
    rows += [case(f"lax.{name}", Array("f32"), 2.0) for name in ("add", "mul", "max", "pow")]
    rows += [case(f"lax.{name}", 2.0, 3.0) for name in ("add", "mul", "div")] + [case("lax.exp", 1.0),
                                                                                 case("lax.neg", 3)]
    rows += each("lax.clamp", "i32 f32 f64", (), (6,), (), low=-1, high=1)
    rows += [case("lax.clamp", -1.0, odd("f32"), 1.0)]
    return rows


def conversions() -> list[Case]:
    every = ("b1", "i8", "u8", "i32", "u64", "f16", "bf16", "f32", "f64", "c64")
    rows = [case("lax.convert_element_type", Array(a, (6,), 0.0), dtype_of(b)) for a in every for b in every
            if not (a == "c64" and b != "c64")]
    rows += [case("lax.bitcast_convert_type", Array(a, (4,)), dtype_of(b))
             for a, b in (("f32", "i32"), ("i32", "f32"), ("f16", "u16"), ("u64", "f64"), ("bf16", "i16"),
                          ("u8", "i8"))]
    rows += [case("lax.bitcast_convert_type", Array("u32", (3,), 0, 2**31), dtype_of("u8")),
             case("lax.bitcast_convert_type", Array("u8", (3, 4), 0, 256), dtype_of("u32"))]
    rows += [case("lax.reduce_precision", Array("f32"), exponent_bits=e, mantissa_bits=m) for e,
             m in ((5, 10), (8, 7), (4, 3))]
    rows += [case("lax.full", (2, 3), 1.5, dtype_of(d)) for d in ("f32", "bf16", "f64")] + [case("lax.full", (2,), 7)]
    rows += [case("lax.iota", dtype_of(d), 5) for d in ("i32", "u8", "f32", "f64", "c64")]
    rows += [case("lax.broadcasted_iota", dtype_of("i32"), (2, 3), d) for d in (0, 1)]
    rows += [case("lax.full_like", Array("bf16"), 2.0), case("lax.full_like", Array("f32"), 3, dtype_of("i8"))]
    return rows


def reductions() -> list[Case]:
    rows: list[Case] = []
    axes = (0, 2)
    for name, dtypes in (("sum", NUMBERS), ("max", f"{INTS} {FLOATS}"), ("min", f"{INTS} {FLOATS}"),
                         ("prod", "i32 f32 f64")):
        rows += each(f"lax.reduce_{name}", dtypes, (2, 3, 2), axes=axes, loose=4)
    rows += each("lax.reduce_and", "b1 i32", (2, 3), axes=(1,)) + each("lax.reduce_or", "b1 u8", (2, 3), axes=(0,))
    rows += each("lax.reduce_xor", "b1 i32", (2, 3), axes=(1,))
    rows += [case(f"lax.arg{m}", Array(d, (3, 4)), axis=1, index_dtype=dtype_of(i))
             for m in ("max", "min") for d, i in (("f32", "i32"), ("i8", "u8"), ("f64", "i64"), ("bf16", "i32"))]
    rows += [case(f"lax.arg{m}", odd("f32"), axis=0, index_dtype=dtype_of("i32")) for m in ("max", "min")]
    add = From("add", lambda m: m.lax.add)
    rows += [case("lax.reduce", Array("f32", (3, 4)), Array("f32", (), values=(0.0,)), add, (0,), vmap=False),
             case("lax.reduce", Array("i32", (3, 4)), 0, From("max", lambda m: m.lax.max), (1,))]
    for name in ("cumsum", "cumprod", "cummax", "cummin"):
        rows += each(f"lax.{name}", "i32 f32 f64", (3, 4), axis=1, loose=4) + each(f"lax.{name}", "f32", (3, 4),
                                                                                   axis=0, reverse=True)
    rows += each("lax.cumlogsumexp", "f32 f64", (5,), loose=4) + each("lax.cumsum", "bf16 c64 u8", (5,))
    return rows


def shapes() -> list[Case]:
    x = Array("f32", (2, 3, 4))
    rows = [
        case("lax.reshape", x, (4, 6)), case("lax.reshape", Array("i8", (6,)), (3, 1, 2)),
        case("lax.transpose", x, (2, 0, 1)), case("lax.rev", x, (0, 2)),
        case("lax.squeeze", Array("f32", (1, 3, 1)), (0,)),
        case("lax.expand_dims", x, (0, 3)), case("lax.broadcast", x, (2,)), case("lax.collapse", x, 0, 2),
        case("lax.broadcast_in_dim", Array("bf16", (3,)), (2, 3, 4), (1,)),
        case("lax.broadcast_in_dim", Array("f32", (1, 4)), (3, 2, 4), (0, 2)),
        case("lax.concatenate", [Array("f32", (2, 3)), Array("f32", (1, 3), seed=1)], 0),
        case("lax.concatenate", [Array("i8", (2, 3)), Array("i8", (2, 2), seed=1), Array("i8", (2, 0))], 1),
        case("lax.pad", Array("f32", (3,)), Array("f32", (), values=(9.0,)), ((1, 2, 1),)),
        case("lax.pad", Array("i32", (3, 4)), 7, ((-1, 1, 0), (2, -3, 2))),
        case("lax.slice", x, (0, 1, 0), (2, 3, 4), (1, 1, 3)),
        case("lax.slice_in_dim", x, 1, 4, 2, axis=2), case("lax.index_in_dim", x, -1, 1, False),
        case("lax.tile", x, (2, 1, 2)),
        case("lax.split", Array("f32", (6, 2)), (1, 2, 3)), case("lax.stop_gradient", x),
        case("lax.dynamic_slice", x, [Array("i32", (), values=(1,)), 1, 3], (1, 2, 2)),
        case("lax.dynamic_slice", Array("u8", (5,)), [Array("i32", (), values=(4,))], (3,)),
        case("lax.dynamic_slice_in_dim", x, Array("i32", (), values=(-1,)), 2, axis=2),
        case("lax.dynamic_index_in_dim", x, Array("i32", (), values=(2,)), axis=1, keepdims=False),
        case("lax.dynamic_update_slice", x, Array("f32", (1, 2, 2), seed=4), [1, 2, Array("i32", (), values=(9,))]),
        case("lax.dynamic_update_slice_in_dim", x, Array("f32", (2, 3, 2), seed=4), Array("i32", (), values=(1,)),
             axis=2),
        case("lax.dynamic_update_index_in_dim", x, Array("f32", (2, 4), seed=4), Array("i32", (), values=(1,)), axis=1),
        case("lax.select", Array("b1", (4,)), Array("f32", (4,)), Array("f32", (4,), seed=1)),
        case("lax.select_n", Array("b1", ()), Array("f32", (4,)), Array("f32", (4,), seed=1)),
        case("lax.select_n", Array("i32", (4,), 0, 3), *(Array("bf16", (4,), seed=i) for i in range(3))),
    ]
    return rows


def linear() -> list[Case]:
    rows: list[Case] = []
    numbers = (((2,), (1,)), ((0,), (0,)))
    for d in ("i32", "f16", "bf16", "f32", "f64", "c64", "c128"):
        rows.append(case("lax.dot_general", Array(d, (2, 3, 4)), Array(d, (2, 4, 5), seed=1), numbers, loose=8))
    rows += [
        case("lax.dot_general", Array("bf16", (3, 4)), Array("bf16", (4, 2), seed=1), (((1,), (0,)), ((), ())),
             preferred_element_type=dtype_of("f32"), loose=8),
        case("lax.dot_general", Array("i8", (3, 4)), Array("i8", (2, 4), seed=1), (((1,), (1,)), ((), ())),
             preferred_element_type=dtype_of("i32")),
        case("lax.dot_general", Array("f32", (2, 3, 4)), Array("f32", (4, 3, 2), seed=1), (((2, 1), (0, 1)), ((), ())),
             loose=8),
        case("lax.dot", Array("f32", (3, 4)), Array("f32", (4,), seed=1), loose=8),
        case("lax.batch_matmul", Array("f32", (2, 3, 4)), Array("f32", (2, 4, 2), seed=1), loose=8),
    ]
    positive = (4.0, 1.0, 0.5, 1.0, 3.0, -0.25, 0.5, -0.25, 2.0)
    triangle = (2.0, 0.0, 0.0, 0.5, 1.5, 0.0, -1.0, 0.25, 3.0)
    for d in ("f32", "f64", "c64"):
        rows.append(case("lax.linalg.cholesky", Array(d, (3, 3), values=positive), loose=8))
        rows += [case("lax.linalg.triangular_solve", Array(d, (3, 3), values=triangle),
                      Array(d, (3, 2) if left else (2, 3)),
                      left_side=left, lower=True, transpose_a=flip, loose=8) for left in (True, False)
                      for flip in (True, False)]
    rows += [case("lax.linalg.cholesky", Array("f32", (2, 2), values=(1.0, 2.0, 2.0, 1.0))),
             case("lax.linalg.triangular_solve", Array("f32", (3, 3), values=triangle), Array("f32", (3, 1)),
                  left_side=True,
                  lower=True, unit_diagonal=True, loose=8)]
    return rows


def sorting() -> list[Case]:
    rows = each("lax.sort", "b1 i8 u64 f16 bf16 f32 f64 c64", (3, 5), dimension=1) + [case("lax.sort", odd("f32"))]
    rows += [case("lax.sort", Array("f32", (4, 3)), dimension=0)]
    keys, values = Array("i32", (8,), 0, 3), Array("f32", (8,))
    rows += [case("lax.sort_key_val", keys, values),
             case("lax.sort of two", keys, values, call=lambda m, k, v: m.lax.sort((k, v), num_keys=2))]
    rows += [case("lax.top_k", Array(d, (3, 5)), 2)
             for d in ("f32", "i32", "bf16")] + [case("lax.top_k", odd("f32"), 3)]
    return rows


def indexing() -> list[Case]:
    def dims(kind: str, **fields: tuple[int, ...]) -> From:
        return From(kind, lambda m: getattr(m.lax, kind)(**fields))

    def mode(name: str) -> From:
        return From(name, lambda m: getattr(m.lax.GatherScatterMode, name))

    rows = dims("GatherDimensionNumbers", offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    spans = dims("GatherDimensionNumbers", offset_dims=(1,), collapsed_slice_dims=(), start_index_map=(0,))
    into = dims("ScatterDimensionNumbers", update_window_dims=(1,), inserted_window_dims=(0,),
                scatter_dims_to_operand_dims=(0,))
    x = Array("f32", (4, 3))
    out, inside = Array("i32", (3, 1), values=(1, 9, -1)), Array("i32", (3, 1), values=(2, 0, 2))
    cases = [case("lax.gather", x, inside, rows, (1, 3)), case("lax.gather", Array("i8", (6,)), inside, spans, (2,))]
    cases += [case("lax.gather", x, out, rows, (1, 3), mode=mode(m)) for m in ("CLIP", "FILL_OR_DROP")]
    for name in ("scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max"):
        at = Array("i32", (2, 1), values=(2, 0)) if name == "scatter" else inside
        cases += [case(f"lax.{name}", Array(d, (4, 3)), at, Array(d, (len(at.values or ()), 3), seed=2), into, loose=4)
                  for d in ("i32", "f32", "f64")]
        cases += [case(f"lax.{name}", x, out, Array("f32", (3, 3), seed=2), into, mode=mode(m))
                  for m in ("CLIP", "FILL_OR_DROP")]
    return cases


CASES = [*elementwise(), *binary(), *conversions(), *reductions(), *shapes(), *linear(), *sorting(), *indexing()]
