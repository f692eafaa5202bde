"""What is built in about an operation, and where it is written."""

import re
import runpy
from pathlib import Path

import numpy as np
from helpers.new_process import in_new_process
from helpers.package_source import PACKAGE, module_name

import handlax as hx
from handlax.effects.core import columns
from handlax.effects.core.operation import OPERATIONS, Operation, effect, explain_rules, operation
from handlax.effects.operations.elementwise.arithmetic import Add, Neg
from handlax.effects.operations.foundations.elementwise_factory import elementwise
from handlax.effects.operations.foundations.shapes import ReduceSum

MATRIX = Path(__file__).resolve().parents[3] / "tools" / "rules_matrix.py"


def rows(op):
    return dict(line.split(maxsplit=1) for line in explain_rules(op).splitlines()[1:])


def test_each_cell_is_named_with_its_file_and_line():
    found = rows(ReduceSum((0,)))
    assert list(found) == ["result_type", "evaluate", "batch", "jvp", "transpose", "lower", "flops", "ragged", "sparse"]
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
