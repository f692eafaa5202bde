"""A message fits on a screen, however large the values that it is about."""

import pytest

import handlax as hx
from handlax import lax, random
from handlax import numpy as hnp
from handlax.effects.base.errors import shortened

FIRST, SECOND = ({f"key{i}": 0.0 for i in range(3000) if i != gone} for gone in (7, 8))
STRUCTURE, LIST = hx.tree.structure(FIRST), [0.0] * 3000
ROWS = [hnp.ones(i + 2) for i in range(300)]

CASES = {
    "cond": lambda: lax.cond(True, lambda: FIRST, lambda: SECOND),
    "switch": lambda: lax.switch(1, [lambda: FIRST, lambda: LIST]),
    "scan": lambda: lax.scan(lambda c, x: (SECOND, x), FIRST, hnp.ones(3)),
    "while_loop": lambda: lax.while_loop(lambda c: True, lambda c: LIST, FIRST),
    "tree.map": lambda: hx.tree.map(lambda a, b: a, FIRST, SECOND),
    "tree.unflatten": lambda: hx.tree.unflatten(STRUCTURE, [1, 2]),
    "tree.transpose": lambda: hx.tree.transpose(STRUCTURE, STRUCTURE, FIRST),
    "vmap": lambda: hx.vmap(lambda t: t)(dict(enumerate(ROWS))),
    "in_axes": lambda: hx.vmap(lambda t: t, in_axes=(FIRST,))(SECOND),
    "jvp": lambda: hx.jvp(lambda t: t, (FIRST,), (SECOND,)),
    "vjp": lambda: hx.vjp(lambda t: t, FIRST)[1](SECOND),
    "array of unequal rows": lambda: hnp.array([[0.0] * (i % 7) for i in range(20_001)]),
    "array of dicts": lambda: hnp.array([FIRST]),
    "asarray": lambda: hnp.asarray(["a"] * 3000),
    "stack": lambda: hnp.stack(ROWS),
    "broadcast_arrays": lambda: hnp.broadcast_arrays(*ROWS),
    "reshape": lambda: hnp.reshape(ROWS[0], tuple(range(3000))),
    "einsum": lambda: hnp.einsum("a" * 3000, ROWS[0]),
    "psum": lambda: lax.psum(1.0, "x" * 3000),
    "config": lambda: hx.config.update("x" * 3000, 1),
    "shape": lambda: random.normal(random.key(0), tuple(ROWS)),
}


@pytest.mark.parametrize("call", CASES.values(), ids=CASES.keys())
def test_a_message_has_at_most_two_thousand_characters(call):
    with pytest.raises(hx.errors.HandlaxError) as caught:
        call()
    assert len(str(caught.value)) <= 2000


def test_of_large_dicts_the_keys_are_named_in_which_they_differ():
    expected = r"a dict of 2999 keys, among them \['key8'\].* a dict of 2999 keys, among them \['key7'\]"
    with pytest.raises(hx.errors.TreeMismatch, match=expected):
        CASES["cond"]()
    with pytest.raises(hx.errors.TreeMismatch, match=expected):
        CASES["tree.map"]()


def test_the_message_of_a_user_is_whole():
    text = "x" * 5000
    with pytest.raises(hx.errors.CheckFailed, match=text):
        hx.check(False, text)


def test_shortened_texts_keep_both_ends():
    for length in range(13, 30):
        text = "".join(map(chr, range(65, 65 + length)))
        short = shortened(text, 14)
        assert len(short) == min(length, 14)
        assert short[:6] == text[:6] and short[-3:] == text[-3:]
