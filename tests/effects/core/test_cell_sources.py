import ast
import functools
import re
from pathlib import Path

import numpy as np
import pytest

import handlax as hx
from handlax.effects.control.custom_rules import LinearSolve
from handlax.effects.core.cell_sources import shown, where_written
from handlax.effects.core.columns import COLUMNS, LOWER, ElementwiseLowering
from handlax.effects.core.operation import operation
from handlax.effects.operations.collectives.collective import Pmax
from handlax.effects.operations.elementwise.arithmetic import Mul
from handlax.effects.operations.elementwise.comparison import Clamp
from handlax.effects.operations.elementwise.transcendental import Sin, Tan
from handlax.effects.operations.manipulation.slicing import Concatenate
from handlax.effects.programs.operation_names import every_operation
from handlax.interpreters.inspection.rule_overview import explain_rules

PLACE = re.compile(r"([^:\s]*\.py):(\d+)")


@functools.cache
def made_by_factories(file):
    """The lines of a file on which a function or lambda inside of another function begins."""
    tree = ast.parse(Path(file).read_text())
    functions = (ast.FunctionDef, ast.Lambda)
    return {min([inner.lineno, *[d.lineno for d in getattr(inner, "decorator_list", ())]])
            for outer in ast.walk(tree) if isinstance(outer, ast.FunctionDef)
            for inner in ast.walk(outer) if isinstance(inner, functions) and inner is not outer}


def faults(kind, text):
    """What is wrong with the lines of an explanation."""
    for line in text.splitlines()[1:]:
        column, rest = line.split(maxsplit=1)
        if rest.startswith("none: ") or column == "exempt":
            continue
        if " at 0x" in line or not PLACE.match(rest):
            yield f"{kind.__name__}: no place: {line}"
        for file, number in PLACE.findall(rest):
            inside = int(number) in made_by_factories(file)
            if inside and Path(file).stem != kind.__module__.rpartition(".")[2]:
                yield f"{kind.__name__}: the line of a factory: {line}"


def line_of(kind, column):
    """The text of the line where a cell is said to be written."""
    file, number = PLACE.match(where_written(COLUMNS[column].complete().cell(kind), kind, column)).groups()
    return Path(file).read_text().splitlines()[int(number) - 1]


def test_every_cell_of_every_operation_has_a_line_of_its_own():
    ours = [kind for kind in every_operation() if kind.__module__.startswith("handlax.")]
    assert len(ours) > 200 and not [fault for kind in ours for fault in faults(kind, explain_rules(kind))]


@pytest.mark.parametrize("line", ["  lower        <function f at 0x7f>", "  evaluate     numpy.add"])
def test_a_cell_without_a_place_is_found(line):
    assert list(faults(Mul, f"Mul (mul)\n{line}"))


def test_the_line_of_a_factory_is_found():
    wide = hx.effects.operations.foundations.half_precision.wide(np.sin)
    code = wide.__code__
    assert list(faults(Sin, f"Sin (sin)\n  evaluate     {code.co_filename}:{code.co_firstlineno}"))


@pytest.mark.parametrize(("kind", "column", "text"), [
    (Sin, "evaluate", "np.sin"),
    (Sin, "jvp", "lambda x, dx: "),
    (Tan, "lower", "lower="),
    (Concatenate, "lower", "@mapped_over_key_data"),
    (Pmax, "traffic", "traffic = "),
    (LinearSolve, "transpose", "@TRANSPOSE.rule(LinearSolve)"),
])
def test_the_line_is_that_of_the_formula(kind, column, text):
    assert text in line_of(kind, column)


def test_a_lowering_is_named_by_its_word():
    assert where_written(LOWER.cell(Mul), Mul, "lower").endswith("  stablehlo.multiply")
    assert "  stablehlo.sine, of complex numbers" in where_written(LOWER.cell(Sin), Sin, "lower")
    assert repr(ElementwiseLowering("chlo.erf")) == shown("chlo.erf") == "chlo.erf"


def test_the_terms_of_a_derivative_have_a_line_each():
    assert len(PLACE.findall(where_written(COLUMNS["jvp"].cell(Clamp), Clamp, "jvp"))) == 3


def test_a_rule_of_a_scope_is_shown_where_the_scope_has_it():
    with hx.rules(jvp={Sin: lambda op, primals, tangents: None}):
        (line,) = [line for line in explain_rules(Sin).splitlines() if line.split()[0] == "jvp"]
    assert "test_cell_sources.py:" in line


def test_what_has_no_source_is_shown_by_its_name():
    namespace = {"__name__": "without_source", "operation": operation, "np": np}
    exec("@operation\nclass Bare:\n    evaluate = np.negative\n    def result_type(op, x): return x", namespace)
    kind = namespace["Bare"]
    assert where_written(np.negative, kind, "evaluate") == "numpy.negative"
    assert shown(functools.partial(np.add, 1)) == "numpy.add(...)" and shown(object()) == "object"
