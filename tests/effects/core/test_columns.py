"""What is built in about an operation, and where it is written."""

import gc
import re
import runpy
import weakref
from pathlib import Path

import numpy as np
import pytest
from helpers.new_process import in_new_process
from helpers.package_source import PACKAGE, module_name

import handlax as hx
from handlax.effects.core import columns
from handlax.effects.core.operation import OPERATIONS, Operation, effect, operation
from handlax.effects.operations.elementwise.arithmetic import Add, Neg
from handlax.effects.operations.elementwise.transcendental import Sin
from handlax.effects.operations.foundations.elementwise_factory import Elementwise, elementwise
from handlax.effects.operations.foundations.shapes import ReduceSum
from handlax.interpreters.analysis.flops import program_flops
from handlax.interpreters.inspection.rule_overview import explain_rules

MATRIX = Path(__file__).resolve().parents[3] / "tools" / "rules_matrix.py"


def rows(op):
    return dict(line.split(maxsplit=1) for line in explain_rules(op).splitlines()[1:])


def test_each_cell_is_named_with_its_file_and_line():
    found = rows(ReduceSum((0,)))
    assert list(found) == [
        "result_type", "evaluate", "batch", "jvp", "transpose", "lower", "sharding_rule", "flops", "ragged", "sparse"]
    assert found["jvp"].endswith(f"columns.py:{columns.linear.__code__.co_firstlineno}  linear")
    assert "shapes.py:" in found["transpose"] and rows(ReduceSum) == found


def test_cells_that_are_no_functions_are_shown_where_the_block_has_them():
    found = rows(Add)
    assert re.fullmatch(r".*/arithmetic.py:\d+  numpy.add", found["evaluate"])
    assert re.fullmatch(r".*/arithmetic.py:\d+  stablehlo.add", found["lower"])


def test_a_third_party_operation_is_explained_too():
    kind = elementwise("test_explained", [np.dtype("float32")], np.negative, lower="negate", jvp=columns.linear)
    assert re.fullmatch(r".*/test_columns.py:\d+  numpy.negative", rows(kind)["evaluate"])
    columns.TRANSPOSE.rule(kind)(lambda op, ct, x: ct)
    assert "test_columns.py:" in rows(kind)["transpose"]


def test_a_missing_cell_says_why():
    @operation
    class Opaque:
        exempt = {"jvp": "bits have no derivative", "finite_differences": "as jvp"}

        def result_type(op, x):
            return x

    text = explain_rules(Opaque)
    assert "  jvp          none: bits have no derivative" in text
    assert text.endswith("  exempt from finite_differences: as jvp")


def test_the_matrix_has_a_row_for_every_operation_of_the_library():
    text = runpy.run_path(str(MATRIX))["matrix"]()
    for kind in OPERATIONS.values():
        if kind.__module__.startswith("handlax."):
            assert f"| `{kind.name}`" in text
    assert f"| `{Neg.name}` | rule | rule | linear |" in text


CELLS = """
import importlib
import handlax as hx
from handlax.effects.core.columns import COLUMNS
from handlax.effects.programs.operation_names import every_operation

kinds = every_operation()
cells = lambda: {(name, kind): getattr(hx.columns, name).cell(kind) for name in COLUMNS for kind in kinds}
before = cells()
for module in MODULES:
    importlib.import_module(module)
after = cells()
print(len(kinds) > 200, [key for key in before if after[key] is not before[key]])
"""


def test_no_cell_depends_on_what_is_imported():
    """The columns of an operation, asked for by name, are whole as soon as handlax is imported."""
    modules = [module_name(file) for file in PACKAGE if not file.stem.startswith("__")]
    assert in_new_process(CELLS.replace("MODULES", repr(modules))) == "True []"


def test_a_rule_is_linear_by_what_it_is_and_not_by_its_name():
    def linear_in_name(op, primals, tangents):
        return primals[0], tangents[0]

    linear_in_name.__qualname__ = "linear_in_name"
    assert columns.is_linear(columns.linear) and columns.is_linear(columns.linear_in(0, 2))
    assert not columns.is_linear(linear_in_name) and not columns.is_linear(columns.multilinear)
    assert columns.where_written(columns.linear_in(0, 2)) == "linear_in(0, 2)"


DERIVATIVES = {  # a rule, a function of which it is that, and the partial derivatives at (2, 3, 5)
    "linear": (columns.linear, lambda x, y, z: x + 2 * y + 3 * z, (1, 2, 3)),
    "linear_in": (columns.linear_in(0, 2), lambda x, y, z: y * (x + 2 * z), (3, 0, 6)),
    "multilinear": (columns.multilinear, lambda x, y, z: x * y * z, (15, 10, 6)),
    "zero": (columns.zero, lambda x, y, z: np.floor(x + y + z), (0, 0, 0)),
}


@pytest.mark.parametrize("word", DERIVATIVES)
@pytest.mark.parametrize("moving", [(0,), (1,), (2,), (0, 2), (0, 1, 2)], ids=str)
def test_a_word_is_the_derivative_that_it_names(word, moving):
    rule, f, partials = DERIVATIVES[word]

    @operation
    class Ternary:
        jvp = rule

        def result_type(op, x, y, z):
            return x

        def evaluate(op, x, y, z):
            return f(x, y, z)

    def along(t):
        return hx.perform(Ternary(), *[x + t if i in moving else x for i, x in enumerate((2.0, 3.0, 5.0))])

    y, dy = hx.jvp(along, (0.0,), (0.5,))
    assert (float(y), float(dy)) == (f(2, 3, 5), 0.5 * sum([partials[i] for i in moving]))


def test_operations_of_several_results_may_be_constant_almost_everywhere():
    @operation
    class Parts:
        multiple_results = True
        jvp = columns.zero

        def result_type(op, x):
            return x, x

        def evaluate(op, x):
            return np.floor(x), np.ceil(x)

    y, dy = hx.jvp(lambda x: hx.perform(Parts(), x), (1.5,), (1.0,))
    assert [*map(float, (*y, *dy))] == [1.0, 2.0, 0.0, 0.0]


def test_a_batch_cell_that_is_no_function_may_ask_for_the_axis():
    class Rule:
        def __call__(self, op, dims, x, *, axis):
            return hx.perform(op, x), dims[0]

    @operation
    class Kept:
        batch = Rule()

        def result_type(op, x):
            return x

        def evaluate(op, x):
            return x

    assert hx.vmap(lambda x: hx.perform(Kept(), x))(np.arange(3.0)).tolist() == [0.0, 1.0, 2.0]


def test_a_transpose_cell_gives_one_cotangent_or_all_of_them():
    class Sum(Operation):
        jvp = columns.linear

        def result_type(op, x, y):
            return x

        def evaluate(op, x, y):
            return x + y

    @operation
    class OneByOne(Sum):
        def transpose(op, ct, x, y, *, wrt):
            return ct

    @operation
    class Together(Sum):
        def transpose(op, ct, x, y, *, linear):
            assert linear == (True, True)
            return ct, ct

    for kind in (OneByOne, Together):
        assert [float(g) for g in hx.grad(lambda x, y: hx.perform(kind(), x, y), (0, 1))(2.0, 3.0)] == [1.0, 1.0]


def test_a_batch_cell_that_returns_none_leaves_an_effect_to_its_declaration():
    @effect(vmap="per_lane")
    class Note:
        def result_type(op, x):
            return ()

        def batch(op, dims, x):
            return (hx.perform(op, x), ()) if dims == (None,) else None

    def noted(x):
        hx.perform(Note(), 1.0)
        hx.perform(Note(), x)
        return x

    counter = hx.handle(hx.handler({Note: lambda s, op, x: (s + 1, ())}), hx.numpy.array(0))
    assert int(counter(hx.vmap(noted))(np.ones(3, "float32"))[0]) == 1 + 3


@pytest.mark.parametrize("key", [hx.lax.round, "sin", Sin(), int], ids=["function", "name", "operation", "class"])
def test_rules_belong_to_operation_types(key):
    with pytest.raises(hx.errors.BadArgument, match="rules, jvp: rules belong"), hx.rules(jvp={key: columns.zero}):
        pass
    with pytest.raises(hx.errors.BadArgument, match="jvp: rules belong to operation types"):
        columns.JVP.rule(key)
    with pytest.raises(hx.errors.BadArgument, match="clauses belong to operation types"):
        hx.handler({key: lambda op, *xs: 0})


def test_the_rules_of_a_column_are_a_mapping():
    with pytest.raises(hx.errors.BadArgument, match="jvp needs a mapping from operation types"), hx.rules(jvp=Sin):
        pass


@pytest.mark.parametrize("name", columns.COLUMNS)
def test_a_base_class_may_have_a_rule_in_every_column(name):
    column, rule, nearer = columns.COLUMNS[name], lambda op, *xs: None, lambda op, *xs: None
    with hx.rules(**{name: {Elementwise: rule, Add: nearer}}):
        assert column.cell(Sin) is rule and column.has(Sin) and column.in_scope(Sin)
        assert column.cell(Add) is nearer
        assert not column.in_scope(ReduceSum)
    assert column.cell(Sin) is not rule

    class Family(Operation):
        def result_type(op, x):
            return x

    @operation
    class Member(Family):
        pass

    assert not column.has(Member)
    column.rule(Family)(rule)
    assert column.cell(Member) is rule and column.has(Member)
    column.rule(Member)(nearer)
    assert column.cell(Member) is nearer


def test_a_scope_differentiates_a_family_by_one_rule():
    def doubled(op, primals, tangents):
        return hx.perform(op, *primals), 2 * tangents[0]

    with hx.rules(jvp={Elementwise: doubled}):
        assert float(hx.grad(hx.lax.sin)(0.3)) == float(hx.grad(hx.lax.tanh)(0.3)) == 2.0


WORDS = """
import importlib
from handlax.extend import Column
import handlax as hx

names = ("groups", "label", "path", "unit", "message", "fold", "shared")
for name in names:
    Column(name)
for module in MODULES:
    importlib.import_module(module)
kinds = hx.effects.programs.operation_names.every_operation()
print(hx.lax.psum.__name__, *[name for name in names if any(map(hx.columns.COLUMNS[name].has, kinds))])
"""


def test_a_users_column_is_none_of_the_packages_blocks():
    modules = [module_name(file) for file in PACKAGE if not file.stem.startswith("__")]
    assert in_new_process(WORDS.replace("MODULES", repr(modules))) == "psum"


@pytest.mark.parametrize("name", ["", "name", "effects", "result_type", "a b", "class", "_mine", "linear", "rules"])
def test_a_column_has_a_name_that_means_nothing_else(name):
    with pytest.raises(hx.errors.RegistrationError, match="a name is needed that means nothing else"):
        columns.Column(name)
    assert name not in columns.COLUMNS


def test_an_operation_is_freed_with_its_rules():
    def define():
        @operation
        class Passing:
            jvp = columns.linear

            def result_type(op, x):
                return x

            def evaluate(op, x):
                return Passing and x

        columns.MASKED.rule(Passing)(lambda op, mask, x: Passing)
        assert hx.jvp(lambda x: hx.perform(Passing(), x), (2.0,), (1.0,))[1] == 1.0
        return weakref.ref(Passing)

    first = define()
    define()  # replaces it
    hx.clear_caches()
    gc.collect()
    assert first() is None


CELL = """
import handlax as hx
from handlax.extend import Column

column = Column("test_executed_again")

@column.rule(hx.operations.Sin)
def _(op, x):
    return FACTOR

@hx.columns.JET.rule(Kind)
def named(op, series, count):
    return FACTOR

hx.columns.JVP.rule(Kind)(lambda op, primals, tangents: (hx.perform(op, *primals), FACTOR * tangents[0]))
"""


def test_a_notebooks_cell_may_be_executed_again():
    @operation
    class Kind:
        def result_type(op, x):
            return x

        def evaluate(op, x):
            return x

    slope = hx.jit(hx.grad(lambda x: hx.perform(Kind(), x)))
    cell = compile(CELL, "<cell 1>", "exec")
    for factor in (2.0, 3.0):
        names = {"__name__": "__main__", "Kind": Kind, "FACTOR": factor}
        exec(cell, names)
        assert columns.COLUMNS["test_executed_again"] is names["column"]
        assert names["column"].find(Sin)(Sin(), 0.0) == factor
        assert float(slope(1.0)) == factor  # and not that of the rule before
    with pytest.raises(hx.errors.RegistrationError, match="exists already, of __main__"):
        columns.Column("test_executed_again")
    edited = {"__name__": "__main__", "Kind": Kind}
    with pytest.raises(hx.errors.RegistrationError, match="Kind has a rule already"):
        exec(compile("import handlax as hx\nhx.columns.JVP.rule(Kind)(lambda *xs: xs)", "<cell 2>", "exec"), edited)
    text = "import handlax as hx\n@hx.columns.JET.rule(Kind)\ndef named(*xs): return 5"
    exec(compile(text, "<cell 2>", "exec"), edited)
    assert columns.JET.find(Kind)() == 5


def test_a_rule_that_comes_after_a_result_by_the_default_counts():
    class Family(Operation):
        def result_type(op, x):
            return x

    @operation
    class Member(Family):
        jvp = None

    program = hx.make_program(lambda x: hx.perform(Member(), x))(np.ones(3, np.float32))
    assert program_flops(program) == 3
    columns.FLOPS.rule(Family)(lambda op, operands, results: 7)
    assert program_flops(program) == 7
    columns.JVP.rule(Member)(columns.zero)  # None in a block is no rule
    assert columns.JVP.find(Member) is columns.zero


def test_an_operation_that_is_refused_leaves_its_name_free():
    for wrong in ((columns.zero, columns.zero), lambda x: x):
        with pytest.raises(hx.errors.RegistrationError):
            elementwise("test_refused", [np.dtype("float32")], np.negative, lower="negate", jvp=wrong)
    assert "test_refused" not in OPERATIONS
    kind = elementwise("test_refused", [np.dtype("float32")], np.negative, lower="negate", jvp=columns.linear)
    assert OPERATIONS["test_refused"] is kind


def decomposed_operation(**cells):
    def result_type(op, x):
        return x

    block = {"result_type": result_type, "decompose": lambda op, x: x * x + 1, **cells}
    return operation(type("Decomposed", (), block))


def test_an_operation_with_a_decomposition_is_lowered_by_it():
    kind = decomposed_operation()
    assert columns.LOWER.cell(kind) is columns.decomposed and columns.LOWER.has(kind)
    assert hx.jit(lambda x: hx.perform(kind(), x))(2.0) == 5.0 == hx.perform(kind(), 2.0)
    assert rows(kind)["lower"].endswith("  decomposed") and "test_columns.py:" in rows(kind)["decompose"]


def test_a_lowering_stands_beside_a_decomposition():
    kind = decomposed_operation(lower=lambda op, emit, x: emit.binary("add", x, x))
    assert hx.jit(lambda x: hx.perform(kind(), x))(2.0) == 4.0
    without = decomposed_operation(lower=None)
    with pytest.raises(hx.errors.MissingRule, match="lower"):
        hx.jit(lambda x: hx.perform(without(), x))(2.0)


def test_a_decomposition_registered_later_is_found():
    kind = decomposed_operation(decompose=None)
    f = hx.jit(lambda x: hx.perform(kind(), x))
    with pytest.raises(hx.errors.MissingRule):
        f(2.0)
    assert not columns.LOWER.has(kind)
    kind._cells.pop("decompose")
    columns.DECOMPOSE.rule(kind)(lambda op, x: x - 1)
    assert columns.LOWER.has(kind) and f(2.0) == 1.0


def test_a_decomposition_of_a_scope_is_lowered():
    kind = decomposed_operation()
    f = hx.jit(lambda x: hx.perform(kind(), x))
    assert f(2.0) == 5.0
    with hx.rules(decompose={kind: lambda op, x: x * 3}):
        assert f(2.0) == 6.0
    assert f(2.0) == 5.0


def test_a_family_shares_a_decomposition_and_each_may_have_a_lowering():
    class Family(Operation):
        def result_type(op, x):
            return x

        def decompose(op, x):
            return op.factor * x

    double = operation(type("Double", (Family,), {"factor": property(lambda op: 2)}))
    triple = operation(type("Triple", (Family,), {"lower": "negate"}))
    assert hx.jit(lambda x: (hx.perform(double(), x), hx.perform(triple(), x)))(2.0) == (4.0, -2.0)


def test_several_operations_share_a_rule():
    kinds = [decomposed_operation() for _ in range(2)]
    rule = columns.FLOPS.rule(*kinds)(lambda op, operands, results: 7)
    assert [columns.FLOPS.cell(kind) for kind in kinds] == [rule, rule]
    with pytest.raises(hx.errors.BadArgument, match="rules belong to operation types"):
        columns.FLOPS.rule(kinds[0], "sin")
    with pytest.raises(hx.errors.RegistrationError, match="has a rule already"):
        columns.FLOPS.rule(decomposed_operation(), kinds[1])(lambda op, operands, results: 8)


def test_a_name_lowers_an_operation_of_any_number_of_operands():
    @hx.operation
    class Clamped:
        lower = "clamp"

        def result_type(op, low, x, high):
            return x

        def evaluate(op, low, x, high):
            return np.clip(x, low, high)

    xs = np.float32([0, 1, 2]), np.float32([3, -3, 3]), np.float32([2, 2, 4])
    assert hx.jit(lambda *xs: hx.perform(Clamped(), *xs))(*xs).tolist() == [2.0, 1.0, 3.0]
