"""The handlers that README.md, the tutorials and the how-to pages define keep the laws of handlers, or it says why not.

A handler is checked with the names of its page: from a state, and on programs that perform as an expression of ``x``.
"""

from __future__ import annotations

import ast
import doctest
import linecache
import sys
import types
from typing import NamedTuple

import pytest
from docs.test_pages import ROOT, blocks, missing, run_page
from helpers.columns_apart import columns_apart

import handlax as hx
from handlax.interpreters.handlers.installation import NO_STATE
from handlax.testing import check_handler

PAGES = [ROOT / "README.md", *sorted([*(ROOT / "docs/tutorial").glob("*.md"), *(ROOT / "docs/how-to").glob("*.md")])]


class Checked(NamedTuple):
    """How a handler is checked: what programs perform, and the state, as expressions."""

    performs: str
    state: str = ""


OBJECTS = "its clause, or its answer, is of Python's objects, which no program has"
OF_ONE_FUNCTION = "its clause answers with the structure of one function of the page"
EVERY_KIND = "its state begins empty, and gets an entry for each kind of operation"

HANDLERS: dict[str, dict[str, Checked | str]] = {
    "README.md": {"keys": Checked("noise()", "random.key(0)")},
    "tutorial/continuations.md": {
        "mean": Checked("hnp.where(hx.perform(Flip()), x, -x)"),
        "grid": "its clause makes floats of the default dtype, which is float64 in a check, for an effect of float32",
        "settling": "it descends what follows, which has no minimum in a random program",
        "never": OBJECTS,
        "twice": Checked("hx.perform(Guess())"),
        "ends": OBJECTS,
        "counting": Checked("hx.perform(Closing())", "0"),
    },
    "tutorial/control-flow.md": {"counter": Checked("hx.perform(Step())", "0")},
    "tutorial/effect.md": {
        "collecting": Checked("say('hidden', x)", "{'hidden': 0.0}"),
        "moved": Checked("hx.perform(Reparametrised(), x, 0.5)", "random.key(0)"),
        "observing": Checked("hx.perform(Reparametrised(), x, 0.5)", "0.0"),
        "noisy": Checked("hx.perform(Noise())", "random.key(0)"),
        "splitting": Checked("hx.perform(Noise())", "random.key(0)"),
        "clipped": Checked("hx.perform(Damped(), x)"),
        "largest": Checked("say('error', x)", "0.0"),
        "written": Checked("say('row', x)", "0.0"),
        "log": Checked("say('error', x)", "()"),
        "sines": Checked("hnp.sin(x)", "0"),
        "every": OBJECTS,
        "mean": Checked("hnp.where(hx.perform(Flip()), x, -x)"),
        "best": Checked("hnp.where(hx.perform(Flip()), x, -x)"),
        "counter": Checked("hx.perform(Tick())", "0"),
        "worlds": "it answers with a list of all results, so that branches must resume equally often",
        "safely": Checked("hx.perform(Fail(), x)"),
        "first": OF_ONE_FUNCTION,
        "lost": OF_ONE_FUNCTION,
        "past": "it hands effects to another handler, further out",
        "shared": Checked("hx.perform(Share(), x)"),
    },
    "tutorial/handler.md": {
        "twice": Checked("hnp.sin(x)"),
        "wrong": "it is there to be refused",
        "counting": Checked("hnp.sin(x)", "0"),
        "products": Checked("x * x", "0"),
        "both": Checked("hnp.sin(x)"),
    },
    "tutorial/operation.md": {"counted": Checked("cube(x)", "0")},
    "tutorial/which-handler.md": {
        "plain": Checked("hx.perform(Ask())"),
        "counting": Checked("hx.perform(Ask())", "0.0"),
        "ending": Checked("hx.perform(Ask())"),
        "both": Checked("hx.perform(Ask())"),
        "reading": OBJECTS,
        "least": OBJECTS,
        "twice": Checked("hx.perform(Twice(), hnp.cos, x)"),
    },
    "tutorial/your-own-derivative.md": {
        "counter": Checked("hx.perform(Tick())", "0"),
        "watcher": Checked("hx.perform(Watch(), x)", "0.0"),
    },
    "how-to/auxiliary-values.md": {"reaping": Checked("hx.perform(Sow('hidden'), x)", "{'hidden': 0.0}")},
    "how-to/callbacks.md": {"quiet": Checked("hx.debug.print('{}', x)")},
    "how-to/count-operations.md": {
        "counting": Checked("hnp.dot(hnp.stack([x, x]), hnp.ones(2))", "{'': 0}"),
        "products": EVERY_KIND,
        "flops": Checked("hnp.dot(hnp.stack([x, x]), hnp.ones(2))", "0"),
    },
    "how-to/explain-handlers.md": {
        "counting": Checked("hx.perform(Tick())"),
        "halved": Checked("hnp.sin(x)"),
        "asked": Checked("hx.perform(Ask())"),
    },
    "how-to/faults.md": {"count": Checked("hx.perform(Tick())")},
    "how-to/models-under-handlers.md": {
        "counting": EVERY_KIND, "products": OF_ONE_FUNCTION, "collecting": EVERY_KIND,
        "sowing": Checked("hx.perform(Log('x'), x)"),
    },
    "how-to/nans.md": {"clipped": Checked("hnp.log(abs(x))")},
    "how-to/scoped-effects.md": {
        "reading": Checked("hx.perform(Local(2.0), hnp.sin, x)", "1.0"),
        "attempting": Checked("hx.perform(Attempt(), hnp.sin, hnp.cos, x)"),
        "pessimistic": Checked("hx.perform(Attempt(), hnp.sin, hnp.cos, x)", "0"),
        "counter": Checked("hx.perform(Tick())", "0"),
        "noting": Checked("hx.perform(Note('open'))", "{'open': 0, 'close': 0}"),
        "bracketing": "its clause performs effects for other handlers, further out",
        "one_by_one": Checked("hx.perform(Plate(2), lambda: x)"),
        "in_lanes": Checked("hx.perform(Plate(2), lambda: x)"),
        "numbers": Checked("hx.perform(Draw())", "0"),
        "mean": Checked("hx.perform(Draw())"),
        "doubling": Checked("hx.perform(Doubled(), hnp.sin, x)"),
    },
    "how-to/step.md": {"worse": Checked("hnp.exp(x)")},
    "how-to/test-your-handler.md": {
        "keys": Checked("random.normal(hx.perform(NewKey()))", "random.key(0)"),
        "notes": Checked("hx.perform(Note(), x)", "()"),
        "summing": "it is there to be found",
        "safely": Checked("hx.perform(Fail(), x)"),
        "largest": Checked("report(x)", "-1.0"),
    },
    "how-to/state.md": {"logging": Checked("hx.perform(Metric('x'), x)", "()")},
    "how-to/training-loop.md": {
        "metrics": Checked("hx.perform(Metric('x'), x)", "{'x': 0.0}"),
        "quiet": Checked("hx.perform(Metric('x'), x)"),
        "logging": Checked("hx.perform(Metric('x'), x)", "()"),
    },
    "how-to/vmap.md": {"written": Checked("hx.perform(Say(), x)", "0.0"), "stopping": OF_ONE_FUNCTION},
}


def place(page):
    return page.relative_to(ROOT).as_posix().removeprefix("docs/")


def handlers_on(text):
    """The names of a page that are assigned an expression in which a handler is made."""
    for _, source in blocks(text):
        if ">>>" in source:
            source = "".join([example.source for example in doctest.DocTestParser().get_examples(source)])
        for node in ast.parse(source).body:
            if isinstance(node, ast.Assign) and "hx.handler(" in ast.unparse(node.value):
                yield from [target.id for target in node.targets if isinstance(target, ast.Name)]


def test_every_handler_of_a_page_is_checked_or_has_a_reason():
    found = {place(page): {*handlers_on(page.read_text())} for page in PAGES}
    assert {name: names for name, names in found.items() if names} == {name: {*own} for name, own in HANDLERS.items()}


FIRST = {"tutorial/effect.md": ["collecting", "mean", "shared"]}

CASES = [  # all of them take minutes
    pytest.param(page, name, how, id=f"{page}: {name}", marks=() if name in FIRST.get(page, ()) else pytest.mark.sweep)
    for page, own in HANDLERS.items() for name, how in own.items() if isinstance(how, Checked)
]


@pytest.fixture(scope="module")
def spaces(tmp_path_factory):
    """The names of a page, after its blocks ran; ``spaces(page)``."""
    made = {}

    def space_of(page):
        if page not in made:
            file = next(file for file in PAGES if place(file) == page)
            if absent := missing(file.read_text()):
                pytest.skip(f"needs -p handlax.as_jax.pytest_plugin and {', '.join(absent)}")
            patch.chdir(tmp_path_factory.mktemp("page"))
            module = types.ModuleType("page")
            patch.setitem(sys.modules, "page", module)
            linecache.checkcache(str(file))
            run_page(file.read_text(), module.__dict__, str(file))
            made[page] = module.__dict__
        return made[page]

    with pytest.MonkeyPatch.context() as patch, columns_apart():
        yield space_of


@pytest.mark.parametrize(("page", "name", "how"), CASES)
def test_a_handler_of_a_page_keeps_the_laws(page, name, how, spaces):
    space = spaces(page)
    subject, state = space[name], eval(how.state, space) if how.state else NO_STATE
    if not isinstance(subject, hx.Handler):
        subject, state = subject.handler, subject.state
    report = check_handler(subject, state, performs=eval(f"lambda x: {how.performs}", space), examples=1)
    assert {"unrolled", "jit"} <= {law.name for law, *_ in report.held}
