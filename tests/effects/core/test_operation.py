"""Operations as blocks: their fields, and how one block extends another."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import types
from typing import ClassVar

import numpy as np
import pytest

import handlax as hx
from handlax import probability as hp
from handlax.effects.core import columns
from handlax.effects.core.operation import Operation, operation
from handlax.effects.core.parameters import OF_EFFECTS, OF_EVERY_OPERATION


@operation
class Shorter:
    by: int
    axis: int = 0

    def result_type(op, x):
        return x


@operation
class Named(Shorter):
    label: str = "it"
    axis: int = 1


def test_a_block_extends_another_by_fields_and_by_defaults():
    assert repr(Named(3)) == "Named(by=3, axis=1, label='it')" and repr(Shorter(3)) == "Shorter(by=3, axis=0)"
    assert [field.name for field in dataclasses.fields(Named(3))] == ["by", "axis", "label"]
    op = dataclasses.replace(Named(3, 2), label="x")
    assert op == Named(3, 2, "x") == pickle.loads(pickle.dumps(op))
    assert Named(3, 0) != Shorter(3) and isinstance(Named(3), Shorter)


@pytest.mark.parametrize(("make", "words"), [
    (lambda: Named(1, 2, "a", 4), "Named has 3 fields, got 4 arguments"),
    (lambda: Named(1, by=2), "Named has no free field 'by'"), (lambda: Named(1, size=2), "no free field 'size'"),
    (lambda: Named(), "Named misses its field 'by'"),
])
def test_arguments_that_are_no_fields_are_refused(make, words):
    with pytest.raises(hx.errors.BadCall, match=words):
        make()


def test_a_field_may_have_a_default_that_is_made_and_a_block_a_check_of_its_own():
    @operation
    class Checked:
        sizes: tuple[int, ...] = dataclasses.field(default_factory=tuple)

        def __post_init__(self):
            if -1 in self.sizes:
                raise ValueError("no size is negative")

        def result_type(op, x):
            return x

    assert Checked() == Checked(()) and Checked((2,)).sizes == (2,)
    with pytest.raises(ValueError, match="no size is negative"):
        Checked((-1,))


@pytest.mark.parametrize("decorate", [hx.operation, hx.effect], ids=["operation", "effect"])
def test_a_block_is_a_class(decorate):
    with pytest.raises(hx.errors.BadArgument, match=f"{decorate.__name__}: a class is needed, got 3"):
        decorate(3)


@pytest.mark.parametrize("several", [True, False])
def test_the_type_of_results_is_as_the_block_says(several):
    @operation
    class Wrong:
        multiple_results = several

        def result_type(op, x):
            return x if several else (x,)

    with pytest.raises(hx.errors.RegistrationError, match="a tuple of types" if several else "one type") as found:
        hx.perform(Wrong(), 1.0)
    assert f"multiple_results = {not several}" in found.value.hint


def test_a_plate_is_made_of_lanes():
    program = hx.make_program(hp.plate("rows", 2)(lambda: hp.sample("x", hp.Normal())))()
    assert "plate[" in str(program) and hx.parse_program(str(program)).unwrap() == program


def test_an_attribute_of_a_base_class_is_the_default_of_a_field():
    """``HigherOrder`` declares ``shared = 0``, so that the text of a loop without shared operands has no such field."""
    program = hx.make_program(lambda x: hx.lax.scan(lambda c, _: (c + 1.0, None), x, None, length=3)[0])(0.0)
    assert "carry=1, length=3]" in str(program) and "shared" not in str(program)


@hx.operation
class Described:
    """An operation whose result type is a ``ShapeDtypeStruct``."""

    def result_type(op, x):
        return hx.ShapeDtypeStruct((*x.shape, 2), "float32")

    def evaluate(op, x):
        return np.stack([x, x], axis=-1).astype(np.float32)


@hx.effect
class DescribedEffect:
    """An effect whose result is a tree of an array type and a ``ShapeDtypeStruct``."""

    def result_type(op, x):
        return {"a": hx.ArrayType((3,), np.float32), "b": hx.ShapeDtypeStruct(x.shape, "int32")}


def test_a_result_type_may_be_a_shape_dtype_struct():
    x = np.ones(3, np.float32)
    program = hx.make_program(lambda x: hx.perform(Described(), x))(x)
    assert program.out_types == (hx.ArrayType((3, 2), "float32"),)
    assert hx.perform(Described(), x).shape == (3, 2)
    assert "test_operation.py" in hx.explain_rules(Described)


def test_a_tree_of_an_effect_may_mix_both_descriptions_of_types():
    program = hx.make_program(lambda x: hx.perform(DescribedEffect(), x))(np.ones(2, np.float32))
    assert program.out_types == (hx.ArrayType((3,), "float32"), hx.ArrayType((2,), "int32"))


def test_an_operation_inherits_the_cells_of_its_base_classes():
    class Family(Operation):
        __slots__ = ()
        jvp = columns.zero

        def result_type(self, x):
            return x

        def evaluate(op, x):
            return x

    @hx.operation
    class Plain(Family):
        pass

    @hx.operation
    class Own(Family):
        jvp = columns.linear

    @hx.operation
    class Derived(Own):
        pass

    @hx.operation
    class Without(Own):
        jvp = None

    assert columns.JVP.cell(Plain) is columns.JVP.find(Plain) is columns.zero
    assert columns.JVP.find(Own) is columns.JVP.find(Derived) is columns.linear
    assert columns.EVALUATE.cell(Own) is Family.evaluate
    assert not columns.JVP.has(Without) and columns.JVP.cell(Without) is None
    assert "columns.py" in next(line for line in hx.explain_rules(Plain).splitlines() if "jvp" in line)


def test_a_field_may_be_called_like_a_column_unless_its_default_would_be_the_rule():
    @operation
    class Halved:
        batch: int

        def result_type(op, x):
            return x

    assert Halved(3).batch == 3
    with pytest.raises(hx.errors.RegistrationError, match="must not be called 'batch', with a default") as found:

        @operation
        class Divided:
            batch: int = 2

    assert "choose another name" in str(found.value)
    with pytest.raises(hx.errors.RegistrationError, match="must not be called 'memo', which every operation has"):

        @operation
        class Remembered:
            memo: int


def test_a_block_has_what_its_family_declares_and_no_other_base():
    class Family(Operation):
        def result_type(op, x):
            return x

    @hx.effect
    class Member(Family):
        pass

    class Plain:
        def result_type(op, x):
            return x

    assert str(hx.make_program(lambda x: hx.perform(Member(), x))(1.0).out_types[0]) == "f32[]~"
    with pytest.raises(hx.errors.RegistrationError, match="must be an operation, got Plain"):

        @hx.effect
        class Stray(Plain):
            pass


def test_an_operation_leaves_it_to_others_whether_they_are_equal_to_it():
    class Named:
        def __eq__(self, other):
            return other.name == "sin"

        __hash__ = None

    operation = hx.operations.Sin()
    assert operation == Named() and operation != hx.operations.Cos() and operation != "sin"


def test_a_block_assigns_what_its_base_declares_and_nothing_else():
    with pytest.raises(hx.errors.RegistrationError, match="'multiple_result' is neither a field nor") as found:

        @operation
        class Misspelled:
            multiple_result = True

    assert "multiple_results is one" in str(found.value)

    @operation
    class Constant:
        scale: ClassVar[int] = 3
        LIMIT = 4
        helper = staticmethod(abs)

    assert (Constant.scale, Constant.LIMIT, Constant.helper(-1)) == (3, 4, 1)


def test_a_block_with_slots_of_its_own_is_refused():
    with pytest.raises(hx.errors.RegistrationError, match="Array: a block declares its fields by annotations alone"):
        hx.effect(hx.Array)

    @hx.effect
    class Empty:
        __slots__ = ()

        def result_type(op):
            return None

    assert Empty() == Empty()


OWN_NAMES = [name for name in dir(Operation) if not name.startswith("__")]
OWN_NAMES += ["__init__", "__eq__", "__hash__"]
DECLARATIONS = {name for name in OWN_NAMES if name[0] != "_"} - OF_EVERY_OPERATION - OF_EFFECTS


def block(**namespace):
    return type("Named", (), {"result_type": lambda op, x: x, **namespace})


@pytest.mark.parametrize("name", OWN_NAMES)
@pytest.mark.parametrize("decorate", [hx.operation, hx.effect], ids=["operation", "effect"])
def test_what_every_operation_has_is_defined_as_what_it_is_or_refused(decorate, name):
    function = lambda op, *xs: xs
    own = inspect.getattr_static(Operation, name)
    for given in (function, "text", property(function)):
        alike = (given is function) == isinstance(own, types.FunctionType | classmethod)
        refused = {"name": given != "text", "multiple_results": decorate is hx.effect}.get(name, False)
        if name in DECLARATIONS and alike and not refused:
            assert vars(decorate(block(**{name: given})))[name] is given or name == "result_type"
        else:
            with pytest.raises(hx.errors.RegistrationError, match=f"{name!r}, ") as found:
                decorate(block(**{name: given}))
            assert found.value.hint


def test_what_a_decorator_says_is_not_lost_silently():
    for name in ("vmap", "diff", "scopes"):
        with pytest.raises(hx.errors.RegistrationError, match=rf"must not define '{name}', an argument") as found:
            hx.effect(block(**{name: "per_lane"}))
        assert f"@hx.effect({name}=...)" in found.value.hint
    with pytest.raises(hx.errors.RegistrationError, match="'name', its name in texts, as 3"):
        hx.effect(block(name=3))
    assert hx.effect(block(name="called")).name == "called"


def test_a_field_may_be_called_self():
    assert hx.effect(block(__annotations__={"self": "int"}))(self=3).fields == (3,)


# As in a file without ``from __future__ import annotations``, whose annotations Python 3.14 evaluates when asked for.
EVALUATED = """
@hx.operation
class Scaled:
    factor: float = 2.0
    def result_type(op, x): return x
    def evaluate(op, x): return op.factor * x

@hx.effect(scopes=1, vmap="per_lane", diff="bodies")
class Within:
    depth: int
    def result_type(op, body): return body
"""


def test_annotations_that_are_no_texts_declare_fields():
    made: dict = {"hx": hx, "__name__": __name__}
    exec(compile(EVALUATED, "<blocks>", "exec", dont_inherit=True), made)
    assert [field.type for field in dataclasses.fields(made["Scaled"])] == [float]
    assert hx.perform(made["Scaled"](3.0), 2.0) == 6.0
    assert made["Within"](1).depth == 1
