"""How large a program is, sub-programs included: what must grow linearly where a clock would say how fast."""


def programs_in(program):
    """The program and all its sub-programs, each once."""
    found, left = {}, [program]
    while left:
        inner = left.pop()
        if id(inner) not in found:
            found[id(inner)] = inner
            left += [body for op in inner.ops if op.bodied for body in op.bodies]
    return list(found.values())


def equations_in(program):
    """The number of equations, those of each sub-program counted once."""
    return sum(len(inner.ops) for inner in programs_in(program))


def is_linear(size, few=8):
    """Whether ``size(n)`` grows by the same amount from ``few`` to twice and from there to three times as many."""
    one, two, three = [size(few * k) for k in (1, 2, 3)]
    return three - two == two - one > 0
