"""The user's line: found behind the frames of handlax, and named only when it is read."""

import _thread
import functools
import sys
import warnings

import numpy as np
import pytest

import handlax as hx
from handlax import errors
from handlax import numpy as hnp
from handlax.effects.base.deep_calls import _bottom, _Call
from handlax.effects.base.source_locations import (
    NO_LABELS,
    NOWHERE,
    Site,
    Sites,
    _path_to,
    called_with,
    enumerate_lines,
    is_internal,
    user_site,
    warn_user,
)
from handlax.effects.base.tracebacks import unnamed_boundary


def test_frames_of_handlax_of_functools_and_of_numpy_are_nobodys_lines():
    assert is_internal(hnp.sin.__code__.co_filename) and is_internal(functools.__file__) and is_internal(np.__file__)
    assert not is_internal(__file__) and not is_internal(pytest.__file__)
    assert not is_internal("/home/user/my_functools.py") and not is_internal("/home/user/contextlib.py")


def test_a_site_is_the_line_of_the_caller():
    def here():
        return Site(*user_site(1))

    site = here()
    assert str(site) == f"test_source_locations.py:{here.__code__.co_firstlineno + 1}"


def test_an_equation_has_the_line_that_performed_it():
    def f(x):
        y = hnp.sin(x)
        return hnp.cos(y)

    program = hx.make_program(hx.jit(f))(1.0).ops[0].bodies[0]
    first = f.__code__.co_firstlineno
    assert [str(program.site(i)) for i in range(2)] == [
        f"test_source_locations.py:{first + 1}", f"test_source_locations.py:{first + 2}"]


def test_a_function_of_numpy_performs_at_the_line_that_calls_it():
    def f(x):
        return np.sum(x, axis=1)

    line = f"test_source_locations.py:{f.__code__.co_firstlineno + 1}"
    program = hx.make_program(f)(hnp.ones((2, 3)))
    assert {str(program.site(i)) for i in range(len(program.ops))} == {line}
    with pytest.raises(errors.BadAxis) as caught:
        f(hnp.ones(2))
    assert caught.value.where == f"at {line}"


def test_the_lines_of_a_function_are_told_in_order():
    def f(x):
        if x:
            return 1
        return 2

    ends = [end for end, _ in enumerate_lines(f.__code__)]
    assert ends == sorted(ends) and ends[-1] == len(f.__code__.co_code)


def test_sites_are_kept_in_order():
    code = user_site.__code__
    sites = Sites([(code, 4), (None, 0)])
    sites.append((code, 8))
    assert list(sites) == [(code, 4), (None, 0), (code, 8)] and sites[2] == (code, 8) and len(sites.copy()) == 3


@pytest.mark.skipif(not hasattr(sys, "_getframemodulename"), reason="frames are walked in any case")
def test_far_below_the_users_line_the_stack_is_walked_once(monkeypatch):
    counted = []
    name_at = sys._getframemodulename
    monkeypatch.setattr(sys, "_getframemodulename", lambda depth: counted.append(depth) or name_at(depth + 1))
    module = {"__name__": "handlax.deep", "user_site": user_site}
    exec(compile("def deep(n): return deep(n - 1) if n else user_site()", hnp.__file__, "exec"), module)

    def here(n):
        return Site(*module["deep"](n))

    line = here.__code__.co_firstlineno + 1
    assert [str(here(n)) for n in (3, 300)] == 2 * [f"test_source_locations.py:{line}"]
    assert len(counted) < 50


@pytest.mark.parametrize("depth", range(20, 50))
def test_a_function_that_says_it_is_the_users_may_stand_anywhere_on_the_stack(depth):
    module = {"__name__": "handlax.deep"}
    exec(compile("def deep(n, f): return deep(n - 1, f) if n else f()", hnp.__file__, "exec"), module)
    inner = lambda: module["deep"](depth, user_site)
    inner.__code__ = inner.__code__.replace(co_filename=hnp.__file__)
    wrapped = unnamed_boundary(inner)  # with the name of this module, as of a function of the user's
    site = Site(*module["deep"](40, wrapped))
    assert site.function == "test_a_function_that_says_it_is_the_users_may_stand_anywhere_on_the_stack"


@pytest.mark.parametrize("depth", range(1, 80))
def test_a_thread_has_a_site_however_deep_it_is(depth):
    nested = user_site
    for _ in range(depth):
        nested = unnamed_boundary(nested)
    call = _Call(nested, 1)
    _thread.start_new_thread(_bottom, (call, sys._getframe()))  # no frame of this file is on its stack
    call.running.acquire()
    assert call.error is None and len(call.result) == 2


def test_a_warning_and_an_error_need_no_frame_of_the_users():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        calls = [_Call(functools.partial(f, x), 1) for f, x in ((warn_user, "nobody's line"), (called_with, 1.0))]
        for call in calls:
            _thread.start_new_thread(_bottom, (call, sys._getframe()))
            assert call.running.acquire(timeout=10) and call.error is None
    assert [str(each.message) for each in caught] == ["nobody's line"] and calls[1].result == ("", "")


def test_a_site_nowhere_has_words_for_everything():
    assert (NOWHERE.file, NOWHERE.function, NOWHERE.line) == ("<unknown>", "<unknown>", 0)
    assert str(NOWHERE) == NOWHERE.full == NOWHERE.scoped == "<unknown>:0"
    assert (NOWHERE.under, NOWHERE.scopes, NOWHERE.calls) == ((), (), None)


def test_an_argument_is_named_with_the_path_to_it_as_far_as_it_is_not_too_deep():
    def asked(x):
        return [_path_to(x, tree) for tree in ([[x]], {"a": (1, x)}, [[[[[x]]]]], [1])]

    assert asked(object()) == ["[0][0]", "['a'][1]", None, None]


def test_what_has_no_labels_to_append_keeps_no_code_alive():
    @hx.effect(vmap="per_lane", diff="stop")
    class Fail:
        def result_type(op, x):
            return None

    def checked(x):
        hx.lax.cond(x < 0, lambda: hx.perform(Fail(), x), lambda: None)
        return hx.numpy.sin(x)

    ending = hx.handler({Fail: hx.final(lambda op, x: x)})
    hx.handle(ending)(lambda x: hx.jit(lambda x: checked(x))(x))(1.0)
    assert len(NO_LABELS) == 0
    assert NO_LABELS.site((checked.__code__, 2)) == (checked.__code__, 2)
