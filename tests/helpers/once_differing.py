"""Programs with effects that once differed from what the oracle says, for as long as a bug was there."""

from __future__ import annotations

from handlax.testing.effect_programs.blocks import Block, RandomClause, RandomHandler

TWO_ORDERS = (  # a rule of derivatives of two orders, where a branch depends on one
    Block((("handle", RandomHandler({0: RandomClause("fun", 0.453125, -0.578125), 1: RandomClause("fun", 0.25,
    0.296875), 2: RandomClause("fun", 0.0625, -0.734375), 3: RandomClause("fun", -0.421875, 0.5), 4:
    RandomClause("fun", -0.515625, 0.796875), 5: RandomClause("first", -0.5, 0.703125), 6: RandomClause("first",
    0.34375, -0.3125)}, moves="carry", start=-0.234375), Block((("vmap", 1, 1, Block((("handle", RandomHandler({3:
    RandomClause("final", -0.09375, 0.703125, 1, 2), 0: RandomClause("fun", -0.484375, 0.703125, 0)}, open=True),
    Block((("tested_while", 1, 1.9375, 12, Block((("perform", 1, 4), ("arithmetic", "add", 5, 4)), (6,)),
    Block((("cond", 4, 0.703125, Block((("perform", 3, 4),), (5,)), Block((("arithmetic", "sin", 4, 1),), (5,))),
    ("perform", 3, 5), ("arithmetic", "add", 6, 4)), (7,))),), (4,))), ("derivative", 3, "jacrev",
    Block((("switch", 3, (Block((("perform", 1, 3), ("arithmetic", "add", 6, 4)), (7,)), Block((("perform", 2, 4),
    ("arithmetic", "sin", 5, 4), ("arithmetic", "add", 7, 6)), (8,)), Block((("perform", 0, 2), ("perform", 1, 6),
    ("arithmetic", "add", 7, 4)), (8,)))), ("cond_of_all", Block((("perform", 0, 2), ("arithmetic", "add", 7, 6)),
    (8,)), Block((("arithmetic", "cos", 6, 4), ("arithmetic", "mul", 4, 7), ("arithmetic", "add", 8, 8)), (9,))),
    ("custom", 7, "vjp", 0.109375, Block((("arithmetic", "cos", 1, 1), ("arithmetic", "add", 2, 2)), (3,)), True),
    ("arithmetic", "add", 8, 8)), (9,))), ("arithmetic", "add", 5, 1)), (6,))), ("arithmetic", "add", 3, 2)),
    (4,))),), (3,))
)
ENDED_ONCE = (  # an effect that ends a loop and is performed once
    Block((("handle", RandomHandler({0: RandomClause("fun", 0.609375, -0.5), 1: RandomClause("fun", 0.546875,
    0.828125), 2: RandomClause("fun", 0.359375, 0.046875), 4: RandomClause("fun", -0.78125, -0.390625), 5:
    RandomClause("first", -0.25, -0.5625), 6: RandomClause("first", 0.703125, -0.46875)}), Block((("derivative",
    1, "jvp", Block((("switch", 1, (Block((("handle", RandomHandler({2: RandomClause("fun", 0.703125, -0.15625,
    None, 2)}, returns=True, after=1), Block((("scoped", 6, Block((("perform", 1, 3), ("checkpoint",
    Block((("perform", 1, 3), ("arithmetic", "add", 5, 2)), (6,))), ("arithmetic", "add", 5, 5)), (6,)),
    Block((("handle", RandomHandler({4: RandomClause("final", -0.671875, 0.859375, 4)}, returns=True, after=0),
    Block((("tested_while", 2, 0.53125, 12, Block((("perform", 4, 0), ("arithmetic", "add", 5, 2)), (6,)),
    Block((("cond", 4, 0.6875, Block((("perform", 4, 0),), (5,)), Block((("arithmetic", "sin", 4, 2),), (5,))),
    ("perform", 0, 4), ("arithmetic", "add", 6, 3)), (7,))),), (4,))), ("jit", Block((("arithmetic", "mul", 1, 1),
    ("arithmetic", "add", 5, 3)), (6,))), ("arithmetic", "add", 5, 4)), (6,))), ("perform", 3, 4), ("arithmetic",
    "add", 5, 4)), (6,))), ("perform", 3, 2), ("arithmetic", "add", 5, 4)), (6,)), Block((("perform", 1, 3),
    ("perform", 2, 1), ("arithmetic", "add", 5, 3)), (6,)), Block((("perform", 3, 3), ("arithmetic", "add", 4,
    1)), (5,)))), ("arithmetic", "mul", 1, 2), ("arithmetic", "cos", 3, 1), ("arithmetic", "add", 6, 1)), (7,))),
    ("arithmetic", "sin", 3, 1), ("arithmetic", "add", 4, 3)), (5,))),), (3,))
)
