"""What beginners write: the message names what they wrote, and its hint says what to write instead."""

from __future__ import annotations

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax, random
from handlax import numpy as hnp

X = hnp.ones(3)


@hx.effect
class Ask:
    def result_type(op):
        return hx.ArrayType((), hnp.float32)


@hx.effect
class Draw:
    n: int

    def result_type(op):
        return hx.ArrayType((), hnp.int32)


@hx.effect
class Seed:
    def result_type(op):
        return hx.typeof(random.key(0))


class Plain:
    pass


def declared(**declarations):
    """A class made an effect, with these declarations, which answers by a scalar."""
    return hx.effect(**declarations)(type("Made", (), {"result_type": lambda op: hx.ArrayType((), hnp.float32)}))


def performed_with(given):
    """An effect performed whose block has this function as ``result_type``."""
    return hx.perform(hx.effect(type("Made", (), {"result_type": given}))())


def asked(clause):
    return hx.handle(hx.handler({Ask: clause}))(lambda: hx.perform(Ask()))()


# the mistake: (its class, what the first line says, what the hint says)
MISTAKES = {
    "sizes of a shape as arguments": (
        lambda: hnp.zeros(2, 3), errors.DTypeMismatch, "a dtype is needed, got 3.", "one tuple, (2, 3)"),
    "arrays as arguments of concatenate": (
        lambda: hnp.concatenate(X, X), errors.ShapeMismatch, "the elements of f32[3]", "one list, concatenate([x, y])"),
    "two arrays for a function of one": (
        lambda: hnp.max(X, hnp.float32(0)), errors.BadAxis, "max: an axis must be an integer, got f32[].",
        "functions such as hx.numpy.maximum and add"),
    "sizes as arguments of reshape": (
        lambda: hnp.reshape(X, 3, 1), errors.BadArgument, "order must be 'C' or 'F', got 1.", "reshape(x, (2, 3))"),
    "the class of an effect": (
        lambda: hx.perform(Ask), errors.BadCall, "got the class Ask.", "perform(Ask(), operand, ...), an instance"),
    "the class of an effect with fields": (
        lambda: hx.perform(Draw, 1.0), errors.BadCall, "got the class Draw.", "perform(Draw(n), operand, ...)"),
    "a clause with one parameter too many": (
        lambda: asked(lambda op, x: x), errors.BadCall, "takes (op, x), it is called with (op).",
        "under hx.handle(h, state)(f) it would be called with (state, op)"),
    "rows of different lengths": (
        lambda: hnp.array([[1, 2], [3]]), errors.ShapeMismatch, "must have equal lengths", "hx.Ragged(data, lengths)"),
    "range of a traced value": (
        lambda: hx.jit(lambda n: [*range(n)])(3), errors.TracerIntegerConversionError, "depends on n",
        "loop by lax.fori_loop"),
    "argnums from 1": (
        lambda: hx.grad(lambda x, y: x * y, argnums=2)(1.0, 2.0), errors.BadArgument,
        "one of 2 positional arguments, counted from 0, got 2.", "by position"),
    "vmap of a number": (
        lambda: hx.vmap(lambda x, y: x + y)(X, 1.0), errors.BadArgument, "f32[]~, whose rank is 0, got 0.",
        "use None for an argument that all lanes share"),
    "an axis that is not there": (
        lambda: hx.vmap(lambda x: x, in_axes=1)(X), errors.BadArgument, "f32[3], whose rank is 1, got 1.",
        "help(hx.errors.BadArgument)"),
    "a clause for an instance": (
        lambda: hx.handler({Ask(): lambda op: 1.0}), errors.BadArgument, "got Ask().",
        "the class Ask, not an instance."),
    "a clause for a function": (
        lambda: hx.handler({lax.sin: lambda op, x: x}), errors.BadArgument, "sin", "the class Sin, not sin or Sin()."),
    "a clause for a class that is no operation": (
        lambda: hx.handler({Plain: lambda op: 1.0}), errors.BadArgument, "Plain'>", "decorate it with @hx.effect."),
    "an instance of a class that is no operation": (
        lambda: hx.perform(Plain()), errors.BadCall, "got Plain.", "@hx.effect"),
    "a traced value as a field": (
        lambda: hx.jit(lambda n: hx.perform(Draw(n)))(3), errors.BadStaticArgument, "Draw(n=Box",
        "an array is an operand instead of a field"),
    "arrays as arguments of stack": (
        lambda: hnp.stack(X, X), errors.BadAxis, "stack: an axis must be an integer, got f32[3].", "stack([x, y])"),
    "resume without a kind": (
        lambda: asked(lambda op, resume: resume(1.0)), errors.BadCall, "takes (op, resume)",
        "hx.ctl(lambda resume, op: ...), with resume first."),
    "resume first without a kind": (
        lambda: asked(lambda resume, op: resume(1.0)), errors.BadCall, "takes (resume, op)", "hx.ctl(lambda resume"),
    "the shape in place of the key": (
        lambda: random.normal((3,)), errors.NotAnArray, "normal: key must be a number or an array, got tuple (3,).",
        "random.key(seed) makes a key; a shape comes after it."),
    "a static array": (
        lambda: hx.jit(lambda x: x, static_argnums=0)(X), errors.BadStaticArgument, "got the array f32[3].",
        "leave it dynamic"),
    "an axis by name": (
        lambda: hnp.sum(X, axis="rows"), errors.BadAxis, "must be an integer, got 'rows'.", "BadAxis"),
    "axes by names": (
        lambda: hnp.sum(X, axis=("rows",)), errors.BadAxis, "must be an integer, got 'rows'.", "BadAxis"),
    "a cotangent of another shape": (
        lambda: hx.vjp(lambda x: x * 2, 1.0)[1](X), errors.ShapeMismatch,
        "a cotangent has the shape of its result, (), got (3,).", "ShapeMismatch"),
    "a cotangent of another dtype": (
        lambda: hx.vjp(lambda x: x * 2, 1.0)[1](hnp.int32(1)), errors.DTypeMismatch,
        "a cotangent has the dtype of its result, float32, got int32.", "DTypeMismatch"),
    "a size that is no integer": (
        lambda: hx.ArrayType((3.5,), "float32"), errors.NotAnInteger, "ArrayType: a size must be an integer, got 3.5.",
        "NotAnInteger"),
    "a negative size": (
        lambda: hx.ArrayType((2, -1), "float32"), errors.BadArgument, "must not be negative, got (2, -1).",
        "BadArgument"),
    "a size in place of the shape": (
        lambda: hx.ArrayType(3, "float32"), errors.BadShape, "a sequence of integers, got 3.", "one size is (3,)."),
    "the dtype before the shape": (
        lambda: hx.ArrayType("float32", (3,)), errors.BadShape, "got 'float32'.", "the shape comes first"),
    "a dtype that is none": (
        lambda: hx.ShapeDtypeStruct((3,), "flt"), errors.DTypeMismatch, "'flt' is not a dtype.", "'float32'"),
    "a dtype as the type of a result": (
        lambda: performed_with(lambda op: np.float32), errors.RegistrationError, "got <class 'numpy.float32'>.",
        "hx.ArrayType((), hx.numpy.float32)"),
    "a result_type without op": (
        lambda: performed_with(lambda: None), errors.RegistrationError,
        "Made: result_type must take the operation as its first parameter", "def result_type(op): ..."),
    "a misspelt declaration": (
        lambda: declared(vmap="perlane"), errors.BadArgument, "effect: vmap must be 'once', 'per_lane' or 'refuse'",
        "did you mean 'per_lane'?"),
    "a field that is missing": (
        lambda: Draw(), errors.BadCall, "Draw misses its field 'n'.", "Draw(n=...); operands are arguments of perform"),
    "an operand as a field": (lambda: Ask(X), errors.BadCall, "Ask has 0 fields, got 1 arguments.", "Ask();"),
    "an answer of another shape": (
        lambda: asked(lambda op: X), errors.ShapeMismatch, "f32[], got f32[3].", "broadcast, in the clause"),
    "an answer of another dtype": (
        lambda: asked(lambda op: hnp.float16(1)), errors.DTypeMismatch, "f32[], got f16[].", "convert with astype"),
    "the words of a key": (
        lambda: hx.handle(hx.handler({Seed: lambda op: random.PRNGKey(0)}))(lambda: hx.perform(Seed()))(),
        errors.ShapeMismatch, "key<fry>[], got u32[2].", "random.key(seed)"),
    "the derivative by an integer": (
        lambda: hx.grad(lambda x: x * x)(3), errors.NotDifferentiable, "the derivative by x, of dtype int32",
        "a floating-point argument, 3.0 instead of 3,"),
    "a matrix that is to be transposed": (
        lambda: hnp.ones((2, 3)) @ hnp.ones((2, 3)), errors.ShapeMismatch, "got 3 and 2", "transposed: a @ b.mT."),
    "another matrix that is to be transposed": (
        lambda: hnp.ones((2, 4)) @ hnp.ones((2, 3)), errors.ShapeMismatch, "got 4 and 2", "a.mT @ b."),
    "matrices of other sizes": (
        lambda: hnp.ones((2, 4)) @ hnp.ones((3, 3)), errors.ShapeMismatch, "got 4 and 3", "a vector has the size k."),
    "a shape with other elements": (
        lambda: X.reshape(2, 2), errors.ShapeMismatch, "f32[3] with 3 elements for (2, 2) with 4.", "may be -1"),
    "a shape that does not divide": (
        lambda: X.reshape(2, -1), errors.ShapeMismatch, "does not divide into (2, -1).", "must divide 3, it is 2."),
    "indices in another order": (
        lambda: hnp.einsum("ij,jk", hnp.ones((2, 3)), hnp.ones((2, 3))), errors.ShapeMismatch, "index 'j'",
        "in order: 'ij' of (2, 3), 'jk' of (2, 3)."),
    "an index of the result alone": (
        lambda: hnp.einsum("i->il", X), errors.BadArgument, "got 'il' of 'i->il'.", "'l' is an index of no operand."),
    "an index twice in the result": (
        lambda: hnp.einsum("i->ii", X), errors.BadArgument, "got 'ii' of 'i->ii'.", "each index once"),
    "an axis beyond the last": (
        lambda: hnp.sum(X, axis=1), errors.BadAxis, "axis 1 is out of range for an array of rank 1.",
        "its last one is 0, or -1."),
    "an axis of a scalar": (lambda: hnp.sum(1.0, axis=0), errors.BadAxis, "of rank 0.", "a scalar has no axes."),
    "a value for a function": (
        lambda: hx.grad(3.0), errors.NotAFunction, "grad: a function is needed, got float.", "not what a call returns"),
    "trees of other keys": (
        lambda: hx.tree.map(lambda x, y: x, {"w": X}, {"v": X}), errors.TreeMismatch,
        "at the root there must be a dict with keys ['w'], got a dict with keys ['v'].", "TreeMismatch"),
    "out=": (lambda: hnp.add(X, 1.0, out=X), errors.NotProvided, "immutable", "use the result."),
    "out= of a reduction": (lambda: hnp.sum(X, out=X), errors.NotProvided, "there is no out=.", "use the result."),
    "where= of a ufunc": (
        lambda: hnp.add(X, 1.0, where=X > 0), errors.NotProvided, "immutable", "hx.numpy.where(condition, result, x)"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_first_mistake_is_told_with_its_remedy(name):
    mistake, kind, said, hint = MISTAKES[name]
    with pytest.raises(kind) as caught:
        mistake()
    what, _, last = str(caught.value).split("\n")
    assert type(caught.value) is kind and said in what and hint in last
