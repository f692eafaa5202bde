"""A message has three lines, and names the page of its class."""

import asyncio
import copy
import pickle
import pydoc
import subprocess
import sys
import traceback

import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.errors import CannotCross, HandlaxError, ShapeMismatch


class Mine(CannotCross):
    """An error of a user's, which derives from one of these."""


def printed(error):
    return "".join(traceback.format_exception_only(error))


def test_an_error_without_a_hint_names_its_page():
    error = ShapeMismatch("these must fit.")
    assert error.hint is None
    assert str(error).splitlines()[2] == "  hint: help(hx.errors.ShapeMismatch) explains it."


def test_a_hint_stands_in_the_place_of_the_page():
    lines = str(ShapeMismatch("these must fit.", hint="transpose one.")).splitlines()
    assert len(lines) == 3 and lines[2] == "  hint: transpose one."


def test_a_traceback_prints_the_name_by_which_python_explains_the_class():
    said = printed(ShapeMismatch("these must fit.", hint="transpose one."))
    name = said.partition(":")[0]
    assert name == "handlax.errors.ShapeMismatch" and pydoc.locate(name) is ShapeMismatch
    shown = pydoc.plain(pydoc.render_doc(name))
    assert "Remedy: " in shown and "Traceback (most recent call last):" in shown


def test_a_terminal_shows_the_page():
    command = [sys.executable, "-m", "pydoc", "handlax.errors.UnboundAxis"]
    assert "Remedy: " in subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.mark.parametrize("name", sorted({getattr(hx.errors, name).__name__ for name in hx.errors.__all__}))
def test_every_class_names_itself(name):
    kind = getattr(hx.errors, name)
    assert (kind.__module__, kind.page) == ("handlax.errors", f"help(hx.errors.{name}) explains it.")


def test_a_class_of_a_users_keeps_its_own_name_and_the_page_of_its_base():
    error = Mine("it must cross.")
    assert printed(error).startswith(f"{__name__}.Mine: it must cross.\n")
    assert str(error).endswith("hint: help(hx.errors.CannotCross) explains it.")


def test_a_class_of_a_users_may_take_arguments():
    class Marked:
        def __init_subclass__(cls, mark):
            cls.mark = mark

    class Own(HandlaxError, Marked, mark=3):
        pass

    assert Own.mark == 3 and Own.page == HandlaxError.page


@pytest.mark.parametrize("kind", [ShapeMismatch, Mine])
def test_it_pickles_and_copies_with_its_page(kind):
    error = kind("these must fit.")
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(other) is kind and printed(other) == printed(error) and other.hint is None


def test_groups_and_tasks_name_the_page_too():
    async def wrong():
        return hnp.ones((2, 3)) @ hnp.ones(2)

    async def several():
        async with asyncio.TaskGroup() as group:
            group.create_task(wrong())
            group.create_task(wrong())

    with pytest.raises(ExceptionGroup) as caught:
        asyncio.run(several())
    said = "".join(traceback.format_exception(caught.value))
    assert said.count("handlax.errors.ShapeMismatch: matmul: ") == len(caught.value.exceptions) >= 1


def test_notes_of_a_user_stand_below_it():
    error = ShapeMismatch("these must fit.")
    error.add_note("of layer 3")
    assert printed(error).splitlines()[-2:] == ["  hint: help(hx.errors.ShapeMismatch) explains it.", "of layer 3"]
