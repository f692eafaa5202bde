"""Functions of several operations, called eagerly: the program that a third call uses means what the first one did."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from helpers.numpy_calls import QUICK, arguments, results, shared_names
from helpers.other_threads import together

import handlax as hx
from handlax import numpy as hnp
from handlax.effects.operations.elementwise.arithmetic import Add
from handlax.errors import ShapeMismatch
from handlax.interpreters.core import eager_programs
from handlax.interpreters.core.eager_programs import eager_program, programs
from handlax.numpy.array_methods import OPERATORS

PROGRAMS = eager_programs._PROGRAMS
NAMES = [name for name in shared_names(np) if hasattr(getattr(hnp, name), "__wrapped__")
         and getattr(hnp, name).__code__ is hnp.hypot.__code__]
X, Y = hnp.array([1.0, 2.0, 4.0]), hnp.array([3.0, 0.0, 1.0])


@pytest.fixture(autouse=True)
def forgotten():
    hx.clear_caches()


@eager_program
def size(x, y, scale=1, *, parts=None):
    z = x * x + y * y * scale
    return z if parts is None else {part: z + i for i, part in enumerate(parts)}


def entries():
    return [value for value in PROGRAMS.entries.values() if value is not eager_programs._ONCE]


def test_there_are_functions():
    assert {"hypot", "var", "diff", "take", "stack", "nanmean", "interp"} <= set(NAMES)
    assert len(NAMES) > 60


NUMBERS = [("f32", 0.5), (0.5, "f32"), ("f32", -0.0), ("i32", np.float32(-0.0)), ("f32", np.int8(3)), ("f32", 0.0, 1.5)]
GIVEN = {"arrays": (hnp.asarray, QUICK), "numbers": (hnp.asarray, NUMBERS), "NumPy's arrays": (np.copy, QUICK)}


@pytest.mark.each_choice
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("initial", sorted({name[0] for name in NAMES}))
def test_every_call_gives_what_the_first_one_gives(initial, given):
    made, rows = GIVEN[given]
    for name in NAMES:
        if name[0] != initial:
            continue
        for row in rows:
            xs = [made(x) if isinstance(x, np.ndarray) else x for x in arguments(row)]
            first, _, third = (results(getattr(hnp, name), xs) for _ in range(3))
            assert (first is None) == (third is None), (name, row)
            for y, z in zip(first or (), third or ()):
                assert hx.typeof(y) == hx.typeof(z), (name, row)
                np.testing.assert_array_equal(np.asarray(y), np.asarray(z), err_msg=f"{name} {row}")


@pytest.mark.parametrize("initial", sorted({name[0] for name in NAMES}))
def test_a_first_call_of_large_arrays_gives_what_the_function_gives(initial, monkeypatch):
    monkeypatch.setattr(eager_programs, "_AT_ONCE", 1)
    for name in NAMES:
        for row in QUICK if name[0] == initial else ():
            xs = [hnp.asarray(x) if isinstance(x, np.ndarray) else x for x in arguments(row)]
            wanted = results(getattr(hnp, name).__wrapped__, xs)
            first, second = (results(getattr(hnp, name), xs) for _ in range(2))
            for got in (first, second):
                assert (got is None) == (wanted is None), (name, row)
                for y, z in zip(got or (), wanted or ()):
                    assert hx.typeof(y) == hx.typeof(z), (name, row)
                    np.testing.assert_array_equal(np.asarray(y), np.asarray(z), err_msg=f"{name} {row}")


def test_a_first_call_of_large_arrays_records():
    calls = []

    @eager_program
    def spread(x):
        calls.append(x.shape)
        return hnp.sin(x) + x * x

    large, small = hnp.ones(1 << 21), hnp.ones(3)
    for _ in range(3):
        spread(large)
    assert calls == [(1 << 21,)]
    for _ in range(4):
        spread(small)
    assert calls[1:] == [(3,), (3,)]  # of small arrays the second call records


def test_a_first_call_that_fails_leaves_nothing(monkeypatch):
    monkeypatch.setattr(eager_programs, "_AT_ONCE", 1)
    for _ in range(2):
        with pytest.raises(ShapeMismatch):
            size(X, hnp.ones(2))
    assert not entries()


@pytest.mark.parametrize("symbol", sorted({*OPERATORS} - {"matmul"}))  # which is one operation
def test_operators_share_the_programs_of_their_functions(symbol):
    f, ints = getattr(hnp, OPERATORS[symbol]), hnp.arange(4).reshape(2, 2)
    operate = divmod if symbol == "divmod" else getattr(operator, symbol)
    f(ints, ints)
    assert not entries()
    operate(ints, ints)
    assert len(entries()) == 1


K, S = hx.random.key(0), hnp.array([[2.0, 0.5], [0.5, 1.0]])
OTHERS = {
    "gamma": lambda: hx.random.gamma(K, X),
    "normal": lambda: hx.random.normal(K, (3,)),
    "randint": lambda: hx.random.randint(hx.random.PRNGKey(0), (3,), 0, 9),
    "large draws": lambda: hx.random.gumbel(K, (100_000,)),
    "poisson": lambda: hx.random.poisson(K, X),
    "log_softmax": lambda: hx.nn.log_softmax(X),
    "expm": lambda: hx.scipy.linalg.expm(S),
    "sqrtm": lambda: hx.scipy.linalg.sqrtm(S),
    "rankdata": lambda: hx.scipy.stats.rankdata(X),
    "logpdf": lambda: hx.scipy.stats.truncnorm.logpdf(X, 0.0, b=5.0),
    "poch": lambda: hx.scipy.special.poch(X, 2.5),
    "map_coordinates": lambda: hx.scipy.ndimage.map_coordinates(S, [X, Y], 1),
    "resize": lambda: hx.image.resize(S, (3, 3), "linear"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_functions_of_every_module_and_with_loops(name):
    first, *others = (hx.tree_util.tree_leaves(OTHERS[name]()) for _ in range(6))
    assert any([found is not None for found in entries()])
    for made in others:
        assert list(map(hx.typeof, made)) == list(map(hx.typeof, first))
        assert [np.asarray(y).tobytes() for y in made] == [np.asarray(y).tobytes() for y in first]


def test_a_module_says_which_of_its_functions_have_programs():
    namespace = {"__all__": ["doubled", "twice", "first", "size", "LIMIT"], "size": size, "LIMIT": 3}
    exec("def doubled(x): return x + x\ndef first(x): return x[0]\ndef _inner(x): return x", namespace)
    written = namespace["twice"] = namespace["doubled"]
    first, inner = namespace["first"], namespace["_inner"]
    programs(namespace, direct=("first",))
    assert namespace["doubled"] is namespace["twice"] is not written
    assert namespace["doubled"].__wrapped__ is written
    assert (namespace["first"], namespace["_inner"], namespace["size"], namespace["LIMIT"]) == (first, inner, size, 3)
    for _ in range(3):
        assert namespace["twice"](X).tolist() == [2.0, 4.0, 8.0]
    assert len(entries()) == 1


def test_the_second_call_of_a_kind_records():
    for count in (0, 1, 1):
        assert size(X, Y).tolist() == [10.0, 4.0, 17.0]
        assert len(entries()) == count
    size(X, Y, 2), size(X, Y, True), size(Y, X, parts=["a"])
    assert len(entries()) == 1


@pytest.mark.parametrize("_", range(3))
def test_results_are_rebuilt(_):
    for _ in range(3):
        found = size(X, Y, parts=("a", "b"))
        assert {part: z.tolist() for part, z in found.items()} == {"a": [10.0, 4.0, 17.0], "b": [11.0, 5.0, 18.0]}


def test_a_handler_sees_the_operations():
    for _ in range(3):
        hnp.hypot(X, Y)
    seen = []
    noted = hx.handler({Add: lambda op, x, y: (seen.append(op.name), hx.perform(op, x, y))[1]})
    hx.handle(noted)(hnp.hypot)(X, Y)
    assert "add" in seen
    assert hx.grad(lambda x: hnp.hypot(x, Y).sum())(X).tolist() == pytest.approx([0.31622777, 1.0, 0.9701425])


def test_what_reads_values_is_called():
    @eager_program
    def chosen(x):
        return x + 1 if x[0] > 0 else x - 1

    for _ in range(3):
        assert chosen(X).tolist() == [2.0, 3.0, 5.0]
        assert chosen(-X).tolist() == [-2.0, -3.0, -5.0]
    assert entries() == [None]


def test_numbers_are_part_of_the_kind():
    for _ in range(3):
        assert hnp.copysign(X, 0.0).tolist() == [1.0, 2.0, 4.0]
        assert hnp.copysign(X, -0.0).tolist() == [-1.0, -2.0, -4.0]
        assert hnp.copysign(X, np.float32(-0.0)).tolist() == [-1.0, -2.0, -4.0]
        assert [hx.typeof(size(X, Y, scale)).dtype for scale in (2, 2.0, np.float64(2), True)] == [np.float32] * 4
        assert hx.typeof(size(hnp.array([1, 2]), hnp.array([1, 2]), 2.0)).dtype == np.float32
        assert hx.typeof(size(hnp.array([1, 2]), hnp.array([1, 2]), 2)).dtype == np.int32


def test_a_number_that_changes_makes_a_few_programs():
    for _ in range(2):
        for scale in range(1, 100):
            assert size(X, Y, scale).tolist() == [1.0 + 9 * scale, 4.0, 16.0 + scale]
            assert size(X, Y, scale / 7).shape == (3,)
    assert len(entries()) == 2 * eager_programs._MOST
    assert len(PROGRAMS.entries) == len(entries())


def test_functions_of_numbers_alone_return_copies():
    made = [hnp.linspace(0.0, 1.0, 5) for _ in range(4)]
    assert not [op for program, _ in entries() if not program.in_types for op in program.ops]
    made[2].delete()
    assert made[3].tolist() == hnp.linspace(0.0, 1.0, 5).tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_numpys_arrays_are_copied():
    given = np.array([3.0, 4.0])
    made = [hnp.flip(given) for _ in range(4)]
    given[:] = 0
    assert [y.tolist() for y in made] == [[4.0, 3.0]] * 4


def test_long_sequences_are_no_part_of_a_key():
    for _ in range(3):
        assert hnp.concatenate([X] * 100).shape == (300,)
        assert size(X, Y, parts=tuple("abcdef" * 20)).keys() == set("abcdef")
    assert not PROGRAMS.entries


def test_settings_are_part_of_the_kind():
    for _ in range(3):
        size(X, Y)
    with hx.configure(debug_nans=True):
        for _ in range(3):
            with pytest.raises(FloatingPointError, match="NaN"):
                hnp.hypot(hnp.array(np.nan), X)


def test_every_call_warns():
    with hx.configure(numpy_rank_promotion="warn"):
        for _ in range(4):
            with pytest.warns(UserWarning, match="ranks differ") as found:
                hnp.hypot(hnp.ones((2, 3)), hnp.ones(3))
            assert len(found) == 1


def test_errors_name_the_line_of_the_call_each_time():
    for _ in range(3):
        with pytest.raises(ShapeMismatch, match="hypot"):
            hnp.hypot(X, hnp.zeros(2))
    assert not entries()


def test_threads_share_programs():
    def work(k):
        x = hnp.full(3, float(k))
        return [size(x, x).tolist() for _ in range(200)]

    assert together(4, work) == [[[2.0 * k * k] * 3] * 200 for k in range(4)]
    assert len(entries()) == 1


def test_what_depends_on_no_argument_is_computed_once():
    twice = hnp.eye(3) * 2
    for _ in range(3):
        np.testing.assert_allclose(hnp.linalg.inv(twice), np.eye(3) / 2)
    ((program, _),) = entries()
    assert [op.name for op in program.ops] == ["solve"]


def test_large_arrays_are_computed_each_time():
    for shape in [(3, 3), (20, 21), (30, 30), (63, 64), (300, 200)]:
        x = hnp.ones(shape)
        for _ in range(3):
            assert hnp.tril(x).tolist() == np.tril(np.ones(shape)).tolist()
    kept = [sum([const.nbytes for const in program.consts]) for program, _ in entries()]
    assert len(kept) == 5
    assert min(kept[:2]) > 0
    assert max(kept) <= 4096


def test_functions_of_many_small_arrays_have_no_program():
    @eager_program
    def sums(x):
        return [x + hnp.arange(float(n)) for n in (400, 401, 402)]

    for _ in range(3):
        assert [float(y[-1]) for y in sums(hnp.ones(()))] == [400.0, 401.0, 402.0]
    assert entries() == [None]


@pytest.mark.parametrize("copy", [True, False])
def test_a_copy_is_made_each_time(copy):
    made = [hnp.reshape(X, (3,), copy=copy) for _ in range(4)]
    assert all([(y is X) != copy for y in made])
    assert len({id(y) for y in made}) == (4 if copy else 1)
    assert all([y.tolist() == X.tolist() for y in made])


@pytest.mark.parametrize("call", [
    lambda: hnp.linspace(0, 1, 5), lambda: hnp.hanning(5), lambda: hnp.blackman(5),
])
def test_a_program_belongs_to_the_settings_under_which_it_was_recorded(call):
    for width, again in ((32, 4), (64, 4), (32, 1)):
        with hx.configure(default_float=f"float{width}"):
            assert {call().dtype.name for _ in range(again)} == {f"float{width}"}


def test_the_closure_of_a_function_holds_no_cache():
    for function in (hnp.sum, hnp.cumsum, hnp.moveaxis, hx.nn.relu):
        contents = [cell.cell_contents for cell in function.__closure__ or ()]
        assert not [x for x in contents if isinstance(x, dict)]
