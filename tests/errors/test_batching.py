"""What batching refuses: each refusal is listed in the how-to page, and each that is listed happens."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax.sharding import NamedSharding, P

ROOT = Path(__file__).resolve().parents[2]
X = np.arange(8, dtype=np.float32)


@hx.effect
class Undeclared:
    def result_type(op, *types):
        return hx.typeof(1.0)


@hx.effect(vmap="once")
class Once:
    def result_type(op, *types):
        return hx.typeof(1.0)


@hx.effect(scopes=1)
class Region:
    """A function whose lanes nothing declares."""


@hx.operation
class Unbatched:
    def result_type(op, x):
        return x


@hx.custom_batching.custom_vmap
def performs(x):
    return x * hx.perform(Once())


performs.def_vmap(lambda size, mapped, x: (x, mapped[0]))


def captures(y):
    f = hx.custom_batching.custom_vmap(lambda x: x * y)
    f.def_vmap(lambda size, mapped, x: (x * y, mapped[0]))
    return f(1.0)


def printed_sum(axis):
    def f(x):
        hx.debug.print("{}", x)
        return x + lax.psum(x, axis)

    return f


def chosen(f):
    return lambda x: lax.cond(x.sum() > 3, f, lambda x: x, x)


def mesh():
    return hx.make_mesh((2, 4), ("a", "b"))


def constrained(x):
    return lax.with_sharding_constraint(x, NamedSharding(mesh(), P()))


def over_devices(f, spec, **options):
    return hx.shard_map(f, mesh=mesh(), in_specs=spec, out_specs=spec, **options)


def ragged(**options):
    x = hx.Ragged(hx.numpy.arange(4.0), (3, 1))
    return hx.vmap(lambda x: x.sum(), hx.ragged_axis, **options)(x)


host = lambda x: hx.pure_callback(lambda x: x, hx.ShapeDtypeStruct((), "float32"), x)
ordered = lambda x: hx.experimental.io_callback(lambda x: x, hx.ShapeDtypeStruct((), "float32"), x, ordered=True)

REFUSED = {
    "this effect cannot cross vmap: it is declared with vmap='refuse'": [
        lambda: hx.vmap(lambda x: hx.perform(Undeclared()))(X), lambda: hx.vmap(ordered)(X),
        lambda: hx.vmap(lambda x: hx.perform(Region(), hx.numpy.sin, x))(X)],
    "an operand differs from lane to lane": [lambda: hx.vmap(lambda x: hx.perform(Once(), x))(X)],
    "only some of them would perform": [
        lambda: hx.vmap(chosen(lambda x: x * hx.perform(Once())))(X),
        lambda: hx.vmap(chosen(lambda x: x * hx.perform(Once())), group=True)(X),
        lambda: hx.vmap(lambda x: lax.while_loop(lambda x: x < 3, lambda x: x + hx.perform(Once()), x))(X)],
    "lanes that perform this effect must be of a known number": [lambda: hx.vmap(
        lambda row: hx.vmap(lambda x: hx.debug.print("{}", x))(row), hx.ragged_axis)(hx.Ragged(X, (3, 5)))],
    "needs all of them": [lambda: hx.vmap(chosen(printed_sum("i")), axis_name="i")(X)],
    "devices chose differently": [lambda: hx.block_until_ready(
        hx.jit(over_devices(chosen(printed_sum("a")), P(("a", "b")), check_vma=False))(X))],
    "vmap needs a method to call the function on all lanes": [lambda: hx.vmap(host)(X)],
    "has no rule in this column": [lambda: hx.vmap(lambda x: hx.perform(Unbatched(), x))(X)],
    "a value that the function captured is mapped": [lambda: hx.vmap(captures)(X)],
    "the rule would perform them a second time": [lambda: hx.vmap(hx.grad(performs))(X)],
    "must name axes of the mesh": [lambda: hx.vmap(constrained, spmd_axis_name="z")(X)],
    "the lanes must be a multiple of": [
        lambda: hx.vmap(over_devices(lambda x: x, P()), spmd_axis_name="a")(X[:3])],
    "group moves them": [lambda: hx.vmap(lambda x: x, spmd_axis_name="a", group=True)(X)],
    "have no equal parts for the devices": [lambda: ragged(spmd_axis_name="a")],
    "have no chunks of one type": [lambda: ragged(group=True)],
    "out_axes=None needs a result that all lanes share": [lambda: hx.vmap(lambda x: x, out_axes=None)(X)],
}


def sites_of(error):
    """The lines, by file, through which an error and its causes came."""
    while error is not None:
        at = error.__traceback__
        while at is not None:
            yield os.path.realpath(at.tb_frame.f_code.co_filename), at.tb_lineno
            at = at.tb_next
        error = error.__cause__ or error.__context__


@pytest.fixture(scope="module")
def reached():
    """The lines that the refusals above came through."""
    lines = set()
    for words, examples in REFUSED.items():
        for example in examples:
            with pytest.raises(errors.HandlaxError, match=re.escape(words)) as found:
                example()
            lines |= {*sites_of(found.value)}
    return lines


def test_what_is_listed_is_refused_and_what_is_refused_is_listed(reached):
    page = (ROOT / "docs/how-to/vmap.md").read_text().split("## What is refused, and why")[1]
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert sorted([words for row in rows for words in re.findall(r"`([^`]+)`", row)]) == sorted(REFUSED)


def refusals():
    """The statements that refuse to batch: those of the handlers, and of batching rules elsewhere."""
    files = [*(ROOT / "effects").rglob("*.py"), *(ROOT / "interpreters/custom").glob("*.py")]
    others = "containers.py", "mapped_axes.py", "joined_processes.py"  # not of lanes
    cells = {name for file in files for name in re.findall(r"^    batch = (\w+)$", file.read_text(), re.MULTILINE)}
    for file in sorted([*(ROOT / "interpreters/batching").glob("*.py"), *files]):
        tree = ast.parse(file.read_text())
        if file.parent.name == "batching":
            rules = [] if file.name in others else [tree]
        else:
            rules = [part for part in ast.walk(tree) if is_rule(part, cells)]
        for node in {node for rule in rules for node in ast.walk(rule) if isinstance(node, ast.Raise) and node.exc}:
            if tree in rules or "CannotCross" in ast.unparse(node):
                yield file, node


def is_rule(part, cells):
    """Whether a definition is a batching rule; ``cells``: functions that are the rules of blocks."""
    if isinstance(part, ast.FunctionDef):
        return part.name in {"batch", *cells} or mentions(part.decorator_list, "BATCH|COLLECTIVE")
    return isinstance(part, ast.ClassDef) and mentions(part.bases, "BatchingRule|UserLanes")


def mentions(expressions, words):
    return any([re.search(words, ast.unparse(each)) for each in expressions])


def test_every_statement_that_refuses_to_batch_has_its_row(reached):
    found = [*refusals()]
    assert {file.name for file, _ in found} >= {"batch.py", "placed_lanes.py", "vmap_methods.py", "custom_vmap.py"}
    unlisted = [
        f"{file.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)[:90]}" for file, node in found
        if not any([(str(file), line) in reached for line in range(node.lineno, node.end_lineno + 1)])
    ]
    assert not unlisted


def test_every_operation_has_a_batching_rule():
    """But those without operands, and those for which the handler has rules: with bodies, effects, over named axes.

    The program of an artifact has no rules: it is executed lane by lane.
    """
    kinds = [getattr(hx.operations, name) for name in dir(hx.operations) if name[0].isupper() and name != "Operation"]
    plain = [kind for kind in kinds if not (kind.bodied or kind.effectful or kind.named or kind.deferred)]
    assert len(plain) > 100
    without = {kind.__name__ for kind in plain if not hx.columns.BATCH.has(kind)}
    assert without == {"Iota", "PlatformIndex", "SizeOf", "CallExported"}
