"""The named scopes of equations beside JAX's, those of bodies included."""

import importlib

import pytest

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]


def model(lib, numpy):
    def layer(x):
        with lib.named_scope("inner"):
            return numpy.sin(x)

    def f(x):
        with lib.named_scope("first"):
            x = layer(x)
        with lib.named_scope("second"):
            x = lib.lax.scan(lambda c, _: (lib.jit(layer)(c), None), x, None, length=2)[0]
            x = lib.lax.cond(x > 0.0, layer, lambda x: x, x)
        x = lib.jit(lib.named_scope("decorated")(numpy.cos))(x)
        return lib.named_call(numpy.exp, name="called")(x)

    return f


TRANSFORMS = {
    "none": lambda lib, f: f, "grad": lambda lib, f: lib.grad(f), "jit": lambda lib, f: lib.jit(f),
    "jvp": lambda lib, f: lambda x: lib.jvp(f, (x,), (x,)), "checkpoint": lambda lib, f: lib.grad(lib.checkpoint(f)),
    "vmap": lambda lib, f: lambda x: lib.vmap(f, in_axes=None, axis_size=2)(x),
    "jit of grad": lambda lib, f: lib.jit(lib.grad(f)),
}


def scopes(root, transform):
    """The scopes in which each elementary function is performed, with those around the bodies that it is in.

    JAX marks by further elements what transformations perform, such as ``rematted_computation``.
    """
    lib = importlib.import_module(root)
    found = set()

    def walk(jaxpr, around=()):
        for eqn in jaxpr.eqns:
            stack = (*around, *[str(each.name) for each in eqn.source_info.name_stack.stack if is_scope(each)])
            if eqn.primitive.name in ("sin", "cos", "exp"):
                found.add((eqn.primitive.name, "/".join(stack)))
            for value in eqn.params.values():
                for inner in value if isinstance(value, (tuple, list)) else (value,):
                    inner = getattr(inner, "jaxpr", inner)
                    if hasattr(inner, "eqns"):
                        walk(inner, stack)

    f = TRANSFORMS[transform](lib, model(lib, importlib.import_module(f"{root}.numpy")))
    walk(lib.make_jaxpr(f)(0.5).jaxpr)
    return found


def is_scope(element):
    return type(element).__name__ != "Transform" and element.name not in ("checkpoint", "rematted_computation")


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_scopes_are_those_of_jax(transform):
    ours, theirs = scopes("handlax", transform), scopes("jax", transform)
    assert ours == theirs and len(ours) >= 4


def test_what_is_no_name_is_refused_as_there():
    for root in ("handlax", "jax"):
        with pytest.raises(TypeError, match="must be a string"), importlib.import_module(root).named_scope(3):
            pass
