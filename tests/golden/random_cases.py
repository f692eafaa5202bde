"""Calls of ``random`` on keys from several seeds; keys among the results are recorded as their key data."""

from .call_case import Array, Case, From, case, dtype_of

SEEDS = (0, 1701)
SHAPES = ((), (5,), (3, 4))
FLOATS = ("f16", "bf16", "f32", "f64")


def key(seed: int, kind: str = "key") -> From:
    return From(f"{kind} {seed}", lambda m: getattr(m.random, kind)(seed))


def words(label: str, f: object, *args: object) -> Case:
    """A call that gives keys, typed or raw."""

    def call(m, *given):
        answer = f(m, *given)
        return m.random.key_data(answer) if m.numpy.issubdtype(answer.dtype, m.dtypes.prng_key) else answer

    return case(label, *args, call=call)


def keys() -> list[Case]:
    rows = []
    for seed in (0, 1, 42, -1, 2**31 - 1, 2**31, 2**32 - 1):
        for kind in ("key", "PRNGKey"):
            rows.append(words(f"random.{kind}", lambda m, k: k, key(seed, kind)))
    for kind in ("key", "PRNGKey"):
        for seed in SEEDS:
            k = key(seed, kind)
            rows += [words("random.split", lambda m, k: m.random.split(k), k),
                     words("random.clone", lambda m, k: m.random.clone(k), k)]
            rows += [words("random.split", lambda m, k, n: m.random.split(k, n), k, n) for n in (3, (2, 3), 1)]
            rows += [words("random.fold_in", lambda m, k, n: m.random.fold_in(k, n), k, n)
                     for n in (0, 7, 2**31, 2**32 - 1)]
    raw = Array("u32", (2,), values=(7, 9))
    rows += [words("random.wrap_key_data", lambda m, d: m.random.wrap_key_data(d), raw),
             words("random.split of wrapped", lambda m, d: m.random.split(m.random.wrap_key_data(d)), raw),
             words("random.fold_in of a traced word", lambda m, k, d: m.random.fold_in(k, d), key(3),
                   Array("i32", (), values=(5,)))]
    return rows


GENERATORS = ("threefry4x32", "philox2x32", "philox4x32", "rbg", "unsafe_rbg")


def generated() -> list[Case]:
    """Keys and bits of the generators beside the default one."""
    rows = []
    for impl in GENERATORS:
        for seed in (0, 2**31 + 9):
            k = From(f"key {seed} {impl}", lambda m, seed=seed, impl=impl: m.random.key(seed, impl=impl))
            rows += [words("random.key", lambda m, k: k, k),
                     words("random.split", lambda m, k: m.random.split(k, (3, 2)), k),
                     words("random.fold_in", lambda m, k: m.random.fold_in(k, 12345), k)]
            rows += [case("random.bits", k, s, dtype_of(d)) for s in ((), (3, 4), (9,)) for d in ("u8", "u32", "u64")]
            rows += [case("random.uniform", k, (3,), loose=4)]
    return rows


def drawn() -> list[Case]:
    rows = []
    for seed in SEEDS:
        k = key(seed)
        rows += [case("random.bits", k, s, dtype_of(d)) for s in SHAPES for d in ("u8", "u16", "u32", "u64")]
        rows += [case("random.bits", k)]
        for name in ("uniform", "normal", "gumbel", "exponential", "laplace", "logistic", "cauchy"):
            rows += [case(f"random.{name}", k, s, loose=8) for s in SHAPES]
            rows += [case(f"random.{name}", k, (4,), dtype_of(d), loose=8) for d in FLOATS]
        rows += [case("random.normal", k, (3,), dtype_of(d), loose=8) for d in ("c64", "c128")]
        rows += [case("random.uniform", k, (4,), dtype_of(d), -2.0, 3.0, loose=4) for d in FLOATS]
        rows += [case("random.uniform", k, (2, 3), minval=Array("f32", (3,), -1.0, 0.0),
                      maxval=Array("f32", (2, 1), 1.0, 2.0), loose=4)]
        rows += [case("random.truncated_normal", k, lo, hi, (4,), dtype_of(d), loose=16) for lo,
                 hi in ((-1.0, 1.0), (0.0, 2.5))
                 for d in ("f32", "f64", "bf16")]
        rows += [case("random.randint", k, s, 0, 10) for s in SHAPES]
        rows += [case("random.randint", k, (6,), lo, hi, dtype_of(d)) for lo, hi, d in (
            (-5, 5, "i8"), (0, 200, "u8"), (-1000, 1000, "i16"), (0, 3, "u32"), (-(2**31), 2**31 - 1, "i32"),
            (-(2**40), 2**40, "i64"),
            (0, 2**50, "u64"), (5, 5, "i32"), (0, 256, "u8"))]
        rows += [case("random.randint", k, (3,), Array("i32", (3,), -5, 0), Array("i32", (3,), 1, 9))]
        rows += [case("random.bernoulli", k), case("random.bernoulli", k, 0.3, (8,)),
                 case("random.bernoulli", k, Array("f32", (5,), 0.0, 1.0))]
        rows += [case("random.rademacher", k, (6,)), case("random.rademacher", k, (6,), dtype_of("f32"))]
        rows += shuffled(k) + categorical(k)
    rows += rejected(key(2))
    old = key(5, "PRNGKey")
    rows += [case("random.uniform", old, (3,), loose=4), case("random.normal", old, (3,), loose=8),
             case("random.bits", old, (3,)),
             case("random.randint", old, (3,), 0, 9), case("random.permutation", old, 6)]
    batch = From("keys", lambda m: m.random.split(m.random.key(9), 3))
    rows += [case("normal per key", batch, call=lambda m, k: m.vmap(lambda k: m.random.normal(k, (2,)))(k), loose=8),
             case("permutation per key", batch, call=lambda m, k: m.vmap(lambda k: m.random.permutation(k, 4))(k))]
    return rows


def rejected(k: From) -> list[Case]:
    """Draws by rejection, whose numbers depend on every candidate before them."""
    a, b = (Array("f32", (6,), values=v) for v in ((0.05, 0.9, 1.0, 3.0, 50.0, 1e4), (2.0, 0.3, 7.0, 1.0, 20.0, 0.1)))
    rows = [case(f"random.{name}", k, a, loose=64) for name in ("gamma", "loggamma", "chisquare", "t")]
    rows += [case(f"random.{name}", k, a, b, (3, 6), loose=64) for name in ("beta", "f")]
    rows += [case("random.dirichlet", k, a, (4,), loose=64),
             case("random.gamma", k, Array("f64", (3,), values=(0.05, 1.0, 50.0)), dtype=dtype_of("f64"), loose=64),
             case("random.poisson", k, Array("f32", (6,), values=(0.0, 0.3, 9.9, 10.0, 300.0, 1e4)), (5, 6)),
             case("random.poisson", k, 4.0, (20,), dtype_of("i64"))]
    n, p = (Array("f32", (6,), values=v) for v in ((0.0, 5.0, 40.0, 7.7, 1e3, 1e6), (0.5, 0.0, 1.0, 0.2, 0.7, 0.1)))
    odd = [Array("f32", (5,), values=v) for v in ((-1.0, 3.0, 3.0, 3.0, 9.0), (0.5, 1.5, -0.5, float("nan"), 0.5))]
    rows += [case("random.binomial", k, n, p, (4, 6)), case("random.binomial", k, 25, 0.4, (20,)),
             case("random.binomial", k, *odd), case("random.multinomial", k, 30, p),
             case("random.multinomial", k, n, Array("f32", (6, 3)), shape=(2, 6)),
             case("random.generalized_normal", k, a, (2, 6), loose=64),
             *[case("random.ball", k, 3, q, (4,), loose=64) for q in (1.0, 2, 3.5)]]
    return rows


def shuffled(k: From) -> list[Case]:
    x, p = Array("f32", (5,)), Array("f32", (5,), values=(0.1, 0.2, 0.3, 0.4, 0.0))
    rows = [case("random.permutation", k, 7), case("random.permutation", k, x),
            case("random.permutation", k, Array("i8", (4, 3)))]
    rows += [case("random.permutation", k, Array("f32", (3, 4)), 1),
             case("random.permutation", k, Array("f32", (3, 4)), axis=1, independent=True)]
    rows += [case("random.choice", k, 9), case("random.choice", k, 9, (4,)), case("random.choice", k, x, (2, 3)),
             case("random.choice", k, x, (3,), False)]
    rows += [case("random.choice", k, x, (4,), p=p), case("random.choice", k, x, (3,), False, p),
             case("random.choice", k, Array("i32", (4, 2)), (3,), axis=0)]
    return rows


def categorical(k: From) -> list[Case]:
    logits = Array("f32", (3, 4))
    return [case("random.categorical", k, logits), case("random.categorical", k, logits, axis=0),
            case("random.categorical", k, logits, shape=(5, 3)),
            case("random.categorical", k, Array("f32", (4,))),
            case("random.categorical", k, Array("bf16", (4,)), shape=(6,)),
            case("random.categorical", k, logits, shape=(2, 3), replace=False)]


CASES = [*keys(), *generated(), *drawn()]
