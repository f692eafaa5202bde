"""What is no array is refused by the name of the function that was called, and by the argument that it is."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import handlax as hx
from handlax import errors, flatten_util, lax, nn, random
from handlax import numpy as hnp
from handlax.scipy import special, stats

MODULES = [hnp, hnp.linalg, hnp.fft, lax, lax.linalg, nn, random, special, stats.norm]
TEXT, LIST = "text", [1.0, 2.0]
ARRAY = hnp.array([0.5, 0.25])
OTHERS = {"save", "savez", "load", "fromfile", "from_dlpack", "Key"}  # they take no array


def functions(module: Any) -> Iterator[Callable[..., Any]]:
    for name in getattr(module, "__all__", sorted(vars(module))):
        f = getattr(module, name)
        ours = callable(f) and not isinstance(f, type) and f.__module__.startswith("handlax")
        if ours and not name.startswith("_") and name not in OTHERS:
            yield f


def calls(f: Callable[..., Any], wrong: object) -> Iterator[list[Any]]:
    """Arguments of ``f``, one of them ``wrong``, the others arrays."""
    parameters = [p for p in inspect.signature(f).parameters.values() if p.kind < p.VAR_POSITIONAL]
    count = len([p for p in parameters if p.default is p.empty]) or 1
    for position in range(count):
        yield [wrong if i == position else ARRAY for i in range(count)]


def names(f: Callable[..., Any]) -> set[str]:
    """The names by which an error may call ``f``: its own, that which it was defined by, and that of its rule."""
    code = getattr(inspect.unwrap(f), "__code__", None)
    return {f.__name__, *([] if code is None else [code.co_name]), *(["custom_jvp"] if hasattr(f, "defjvp") else [])}


@pytest.mark.parametrize("wrong", [TEXT, LIST], ids=["text", "list"])
@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_function_names_itself_and_the_argument(module: Any, wrong: Any) -> None:
    named, nameless, without_argument = 0, [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for f in functions(module):
            for args in calls(f, wrong):
                try:
                    f(*args)
                except errors.NotAnArray as error:
                    if error.what.partition(": ")[0] not in names(f):
                        nameless.append(error.what)
                    elif wrong is LIST and "must be" not in error.what:
                        without_argument.append(error.what)
                    named += 1
                except Exception:  # it is no array that is needed there
                    pass
    assert not nameless and not without_argument and named


@pytest.mark.parametrize(("call", "words"), [
    (lambda: hnp.mean(LIST), "mean: a must be a number or an array, got list [1.0, 2.0]."),
    (lambda: hnp.where(LIST, 1, 2), "where: condition must be a number or an array, got list"),
    (lambda: hnp.add(LIST, 1), "add: x must be"),
    (lambda: lax.add(1, LIST), "add: y must be"),
    (lambda: hnp.sum(a=LIST), "sum: a must be"),
    (lambda: hnp.sin(TEXT), "sin: x must be a number or an array, got str 'text'."),
    (lambda: hnp.stack([ARRAY, TEXT]), "stack: arrays[1] must be"),
    (lambda: hnp.allclose(ARRAY, TEXT), "allclose: b must be"),
    (lambda: random.normal((3,), random.key(0)), "normal: key must be a number or an array, got tuple (3,)."),
    (lambda: random.PRNGKey(TEXT), "PRNGKey: seed must be"),
    (lambda: flatten_util.ravel_pytree({"a": [TEXT]}), "ravel_pytree: pytree['a'][0] must be"),
    (lambda: special.gammaln(LIST), "gammaln: x must be"),
    (lambda: lax.max(ARRAY, None), "max: y must be a number or an array, got NoneType None."),
    (lambda: ARRAY.dot(LIST), "dot: b must be"),
    (lambda: ARRAY.at[0].set(TEXT), "set: "),
    (lambda: hnp.add.reduce(LIST), "reduce: "),
    (lambda: hx.tree.map(hnp.sin, [TEXT]), "sin: x must be"),
    (lambda: hx.vmap(lambda x: hnp.sin(TEXT) * x)(ARRAY), "sin: x must be"),
    (lambda: hx.jit(lambda x: hnp.mean(LIST) * x)(ARRAY), "mean: a must be"),
    (lambda: hx.grad(lambda x: nn.relu(LIST) * x)(1.0), "relu: x must be"),
    (lambda: lax.scan(lambda c, x: (hnp.sin(TEXT), x), 0.0, ARRAY), "sin: x must be"),
])
def test_the_function_nearest_to_the_users_line_is_named(call: Callable[[], Any], words: str) -> None:
    for _ in range(2):
        with pytest.raises(errors.NotAnArray) as caught:
            call()
        assert caught.value.what.startswith(words)
        assert str(caught.value).splitlines()[1].startswith("  at test_not_an_array.py:")


def test_a_list_that_contains_itself_is_searched_to_some_depth() -> None:
    nested: list[Any] = []
    nested.append(nested)
    with pytest.raises(errors.NotAnArray, match=r"^sin: x must be"):
        hnp.sin(nested)
