"""Loops whose bodies make choices: by tables of the answers, unrolled, in Python, and by enumeration of all paths."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import handlax as hx
from handlax import lax, nn
from handlax import numpy as hnp


@hx.effect(vmap="per_lane")
class Choose:
    """One of the numbers below n."""

    n: int

    def result_type(op):
        return hx.ArrayType((), "int32")


@hx.effect(vmap="per_lane")
class Weigh:
    """Multiply the weight of the path, or add to its logarithm."""

    def result_type(op, w):
        return None


@hx.effect(vmap="per_lane")
class Toss:
    def result_type(op):
        return hx.ArrayType((), hnp.bool_)


@hx.effect(vmap="per_lane")
class Note:
    def result_type(op, x):
        return None


def choose(n):
    return hx.perform(Choose(n))


def weigh(w):
    hx.perform(Weigh(), w)


def folding(fold, combine=lambda w, y: w * y, returns=lambda y: 1.0, support=lambda op: op.n):
    """The handler that folds the answers of all choices, weighted."""
    return hx.handler(
        {
            Choose: hx.ctl(lambda resume, op: fold(hx.vmap(resume)(hnp.arange(op.n))), support=support),
            Weigh: hx.ctl(lambda resume, op, w: combine(w, resume(None))),
        },
        returns=returns,
    )


TOTAL = folding(lambda ys: ys.sum(0))
EVIDENCE = folding(nn.logsumexp, lambda w, y: w + y, lambda y: 0.0)
BEST = folding(lambda ys: ys.max(0), lambda w, y: w + y, lambda y: 0.0)

rng = np.random.default_rng(0)
K, T = 3, 6
START, MOVE, SHOWN = [np.float32(rng.normal(size=shape)) for shape in [(K,), (K, K), (T, K)]]


def markov(start, move, shown):
    """A hidden Markov model by its logarithms, with the row of the next state as its carry."""

    def step(row, seen):
        z = choose(K)
        weigh(row[z] + seen[z])
        return move[z], None

    return lax.scan(step, start, shown)[0].sum()


def forward(start, move, shown):
    step = lambda alpha, seen: (nn.logsumexp(alpha[:, None] + move, 0) + seen, None)
    return nn.logsumexp(lax.scan(step, start + shown[0], shown[1:])[0])


def scores(start, move, shown):
    """The logarithm of the weight of every path, and the paths."""
    paths = [*itertools.product(range(len(start)), repeat=len(shown))]
    steps = lambda p: sum(move[a, b] for a, b in itertools.pairwise(p)) + sum(row[z] for row, z in zip(shown, p))
    return np.array([start[p[0]] + steps(p) for p in paths]), paths


def close(x, y, tolerance=1e-4):
    assert hx.tree.structure(x) == hx.tree.structure(y)
    for a, b in zip(hx.tree.leaves(x), hx.tree.leaves(y)):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("wrap", [lambda f: f, hx.jit, hx.grad, lambda f: hx.jit(hx.grad(f, argnums=(0, 1, 2)))])
def test_the_sum_over_all_paths_of_a_hidden_markov_model_is_the_forward_algorithm(wrap):
    close(wrap(hx.handle(EVIDENCE)(markov))(START, MOVE, SHOWN), wrap(forward)(START, MOVE, SHOWN))


def test_sequences_may_be_lanes():
    many = hnp.array(np.float32(rng.normal(size=(4, T, K))))
    mapped = [hx.vmap(f, (None, None, 0))(START, MOVE, many) for f in (hx.handle(EVIDENCE)(markov), forward)]
    close(*mapped)


def test_the_derivative_by_the_evidence_is_the_posterior():
    weights, paths = scores(START, MOVE, SHOWN)
    posterior = np.exp(weights - nn.logsumexp(weights))
    expected = np.array([[posterior[[p[t] == k for p in paths]].sum() for k in range(K)] for t in range(T)])
    close(hx.grad(hx.handle(EVIDENCE)(markov), argnums=2)(START, MOVE, SHOWN), expected)


def viterbi(start, move, shown):
    """Source: Viterbi, "Error bounds for convolutional codes" (1967)."""
    best, back = start + shown[0], []
    for row in shown[1:]:
        through = best[:, None] + move
        back.append(through.argmax(0))
        best = through.max(0) + row
    path = [best.argmax()]
    for pointers in back[::-1]:
        path.append(pointers[path[-1]])
    return best.max(), path[::-1]


def test_the_greatest_is_found_as_by_viterbi_and_its_slope_is_the_path():
    best, path = viterbi(START, MOVE, SHOWN)
    value, slope = hx.value_and_grad(hx.handle(BEST)(markov), argnums=2)(START, MOVE, SHOWN)
    assert abs(value - best) < 1e-5
    assert slope.argmax(1).tolist() == path


def test_answers_may_have_a_structure_such_as_the_best_path():
    @hx.effect(vmap="per_lane")
    class ChooseAt:
        def result_type(op, t):
            return hx.ArrayType((), "int32")

    def model():
        def step(row, each):
            t, seen = each
            z = hx.perform(ChooseAt(), t)
            weigh(row[z] + seen[z])
            return hnp.asarray(MOVE)[z], None

        lax.scan(step, START, (hnp.arange(T), SHOWN))

    def best(resume, op, t):
        score, path = hx.vmap(resume)(hnp.arange(K))
        z = score.argmax()
        return score[z], path[z].at[t].set(z)

    def scored(resume, op, w):
        score, path = resume(None)
        return w + score, path

    decoding = hx.handler(
        {ChooseAt: hx.ctl(best, support=K), Weigh: hx.ctl(scored)}, returns=lambda y: (0.0, hnp.zeros(T, "int32"))
    )
    score, path = hx.jit(hx.handle(decoding)(model))()
    expected, states = viterbi(START, MOVE, SHOWN)
    assert abs(score - expected) < 1e-5 and path.tolist() == states


def test_clauses_in_python_loops_and_bools_are_choices_too():
    both = hx.handler({Toss: hx.ctl(lambda resume, op: 0.25 * resume(True) + 0.75 * resume(False), support=2)})
    runs = lambda: lax.fori_loop(0, 9, lambda i, c: hnp.where(hx.perform(Toss()), i, c[0]) * hnp.ones(1), hnp.zeros(1))
    with pytest.raises(hx.errors.CannotCross, match="carry"):
        hx.handle(both)(runs)()
    last = lambda: lax.fori_loop(0, 9, lambda i, c: hnp.where(hx.perform(Toss()), i, -1), -1)
    assert hx.handle(both)(last)() == 0.25 * 8 - 0.75


# all chains: a table of weights by iteration, remembered choices and present one

FOLDS = {
    "sum": lambda ys: ys.sum(0),
    "max": lambda ys: ys.max(0),
    "softmax": lambda ys: hnp.log(hnp.exp(ys).sum(0)),
    "square": lambda ys: hnp.sin(ys).sum(0) + ys[0] * ys[-1],
    "first": lambda ys: ys[0],
}


def remembering(kind, n):
    """The carry at the start, after a choice, and the indices into a table of weights that it stands for."""
    table = np.arange(n * n).reshape(n, n) % n
    one_hot = np.eye(n, dtype="float32")
    return {
        "nothing": (0, lambda c, z: c, lambda c: (0, 0)),
        "last": (0, lambda c, z: z, lambda c: (c, 0)),
        "last two": ((0, n - 1), lambda c, z: (z, c[0]), lambda c: c),
        "of last": (0, lambda c, z: hnp.asarray(table)[z, 1], lambda c: (c, 0)),
        "one hot": (one_hot[0], lambda c, z: hnp.asarray(one_hot)[z], lambda c: (c.argmax(), 0)),
        "both": ((0, 0), lambda c, z: (z, (c[0] + z) % n), lambda c: c),
        "counted": ((0, 0), lambda c, z: (c[0] + 1, z), lambda c: (c[1], c[0] % n)),
    }[kind]


def a_chain(kind, weights, reverse, loop):
    """A program of a choice at each step, whose weight depends on what is remembered; its result is the last carry."""
    n = weights.shape[-1]
    start, after, indices = remembering(kind, n)

    def step(c, w):
        z = choose(n)
        i, j = indices(c)
        weigh(w[i, j, z])
        return hx.tree.map(lambda a, b: hnp.asarray(b, hnp.asarray(a).dtype), start, after(c, z)), None

    def f():
        c = loop(step, hx.tree.map(hnp.asarray, start), hnp.asarray(weights), reverse=reverse)[0]
        i, j = indices(c)
        return 1.0 + i + 2.0 * j

    return f


def in_python(step, c, xs, reverse):
    for x in xs[::-1] if reverse else xs:
        c, _ = step(c, x)
    return c, None


def by_paths(kind, weights, reverse, fold):
    """The same by recursion over all paths, with NumPy's numbers."""
    n = weights.shape[-1]
    start, after, indices = remembering(kind, n)
    rows = weights[::-1] if reverse else weights

    def answer(t, c):
        i, j = indices(c)
        if t == len(rows):
            return np.float32(1.0 + i + 2.0 * j)
        return np.asarray(fold(np.stack([rows[t][i, j, z] * answer(t + 1, after(c, z)) for z in range(n)])))

    return answer(0, start)


chains = given(
    kind=st.sampled_from(["nothing", "last", "last two", "of last", "one hot", "both", "counted"]),
    n=st.integers(1, 3), length=st.sampled_from([0, 1, 2, 5]), reverse=st.booleans(),
    fold=st.sampled_from(sorted(FOLDS)), seed=st.integers(0, 2**16),
)


def all_ways_agree(kind, n, length, reverse, fold, seed):
    weights = np.float32(np.random.default_rng(seed).uniform(0.2, 1.2, size=(length, n, n, n)))
    handler = folding(FOLDS[fold], returns=lambda y: y)
    looped = a_chain(kind, weights, reverse, lax.scan)
    expected = by_paths(kind, weights, reverse, FOLDS[fold])
    for run in (
        hx.handle(handler)(looped), hx.handle(handler, unroll=True)(looped), hx.jit(hx.handle(handler)(looped)),
        hx.handle(handler)(a_chain(kind, weights, reverse, in_python)),
    ):
        np.testing.assert_allclose(run(), expected, rtol=2e-4, atol=1e-5)


@settings(max_examples=10, deadline=None)
@chains
def test_by_tables_unrolled_in_python_and_by_all_paths_the_answer_is_the_same(**chain):
    all_ways_agree(**chain)


@pytest.mark.sweep
@settings(max_examples=300, deadline=None)
@chains
def test_the_same_for_many_chains(**chain):
    all_ways_agree(**chain)


@pytest.mark.sweep
@settings(max_examples=60, deadline=None)
@chains
def test_derivatives_and_lanes_of_tables_are_those_of_the_unrolled_loop(kind, n, length, reverse, fold, seed):
    weights = hnp.asarray(np.random.default_rng(seed).uniform(0.2, 1.2, size=(2, length, n, n, n)), "float32")
    handler = folding(FOLDS[fold], returns=lambda y: y)
    tables, unrolled = [
        hx.grad(lambda w, unroll=unroll: hx.handle(handler, unroll=unroll)(a_chain(kind, w, reverse, lax.scan))())
        for unroll in (False, True)
    ]
    close(hx.vmap(tables)(weights), hnp.stack([unrolled(w) for w in weights]), 1e-3)


# what stands in and around the loop

WEIGHTS = np.float32(np.random.default_rng(1).uniform(0.2, 1.2, size=(4, 2, 2, 2)))


def agree(f, *args, handler=TOTAL):
    """By tables, eagerly and compiled, as unrolled."""
    expected = hx.handle(handler, unroll=True)(f)(*args)
    for run in (hx.handle(handler)(f), hx.jit(hx.handle(handler)(f))):
        close(run(*args), expected)
    return expected


def test_a_step_may_make_two_choices_that_are_remembered_apart():
    def factorial():
        def step(c, w):
            a, b = choose(2), choose(3)
            weigh(w[c[0], a, 1] + 0.3 * c[1])
            weigh(w[0, a, 0] + 0.5 * b)
            return (a, b), None

        lax.scan(step, (0, 0), WEIGHTS)

    assert agree(factorial) > 1


def test_jitted_functions_branches_and_loops_may_stand_in_a_step():
    def f(x):
        @hx.jit
        def flip(last, w):
            z = lax.cond(w[0, 0, 0] > 0.6, lambda: choose(2), lambda: 1 - choose(2))
            lax.cond(z > last, lambda: weigh(w[last, z, 0]), lambda: None)
            return z

        def step(last, w):
            z = flip(last, w)
            lax.fori_loop(0, 2, lambda i, c: (weigh(w[i, z, 1] * x), c)[1], 0)
            return z, None

        return lax.scan(step, 0, WEIGHTS[:2])

    agree(f, 1.5)
    f_of = lambda unroll: hx.grad(hx.handle(TOTAL, unroll=unroll)(f))
    close(f_of(False)(1.5), f_of(True)(1.5))


def test_a_branch_may_make_fewer_choices_than_another_one():
    def step(last, w):
        z = lax.cond(w[0, 0, 0] > 0.6, lambda: choose(3), lambda: choose(2) + choose(2))
        weigh(w[last % 2, z % 2, 0] + z)
        return z, None

    agree(lambda: lax.scan(step, 0, WEIGHTS)[0])


def test_loops_may_stand_in_loops():
    def f(x):
        def inner(c, w):
            z = choose(2)
            weigh(w[c, z] * x)
            return z, None

        def outer(c, w):
            z, _ = lax.scan(inner, c, w)
            y = choose(2)
            weigh(w[1, z, y])
            return (z + y) % 2, None

        return lax.scan(outer, 0, WEIGHTS)[0]

    agree(f, 0.7, handler=folding(lambda ys: ys.sum(0), returns=lambda y: 1.0 + y))


def test_a_loop_may_stand_in_a_branch_by_a_traced_value_and_between_choices():
    def f(x):
        def step(last, w):
            z = choose(2)
            weigh(w[last, z, 0] * x)
            return z, None

        before = choose(2)
        last = lax.cond(x > 0, lambda: lax.scan(step, before, WEIGHTS)[0], lambda: lax.scan(step, 1, WEIGHTS[:2])[0])
        weigh(1.0 + last + before)
        return choose(2) + last

    handler = folding(lambda ys: ys.sum(0), returns=lambda y: 1.0 + y)
    agree(f, 0.7, handler=handler)
    agree(f, -0.7, handler=handler)


def test_results_that_depend_on_no_choice_are_stacked_in_the_order_of_the_slices():
    """Also those of the first iterations, which have tables of their own as long as fewer choices are remembered."""
    def f(reverse):
        def step(c, w):
            z = choose(2)
            weigh(w[c[2], c[1], z])
            return (c[0] + w[0, 0, 0], z, c[1]), (c[0], w[1, 1, 1], z)

        (total, *_), (before, same, _) = lax.scan(step, (0.0, 0, 0), hnp.asarray(WEIGHTS), reverse=reverse)
        return total, before, same

    handler = folding(lambda ys: hx.tree.map(lambda y: y[0], ys), combine=lambda w, y: y, returns=lambda y: y)
    for reverse in (False, True):
        agree(partial(f, reverse), handler=handler)


def test_a_loop_that_only_scores_needs_no_support():
    scored = hx.handler({Weigh: hx.ctl(lambda resume, op, w: w * resume(None))}, returns=lambda y: y)
    f = lambda: lax.fori_loop(0, 5, lambda i, c: (weigh(2.0), c + i)[1], 0)
    assert hx.handle(scored)(f)() == 32 * 10


def test_what_ends_the_program_is_an_answer_in_the_tables():
    stopping = TOTAL | hx.handler({Note: hx.final(lambda op, x: 1.0 * x)})

    def step(last, w):
        z = choose(2)
        lax.cond(z * last > 0, lambda: hx.perform(Note(), w[0, 0, 0]), lambda: None)
        weigh(w[last, z, 0])
        return z, None

    agree(lambda: lax.scan(step, 0, WEIGHTS)[0], handler=stopping)


@hx.effect(vmap="per_lane")
class Rate:
    def result_type(op, x):
        return x


def test_plain_clauses_and_a_default_one_answer_in_the_tables():
    doubled = hx.handler(
        {Rate: lambda op, x: 3.0 * x}, otherwise=lambda op, x: 2.0 * hx.perform(op, x),
        over=lambda op: isinstance(op, hx.operations.Sin),
    )

    def step(last, w):
        z = choose(2)
        weigh(hx.perform(Rate(), w[last, z, 0]) + hnp.sin(w[z, last, 1]))
        return z, None

    f = lambda: lax.scan(step, 0, hnp.asarray(WEIGHTS))[0]
    merged = agree(f, handler=TOTAL | doubled)
    close(hx.handle(TOTAL)(hx.handle(doubled)(f))(), merged)


# cost


def equations(program):
    return sum(1 + sum(map(equations, getattr(op, "bodies", ()))) for op in program.ops)


def test_the_program_has_one_size_for_all_lengths():
    sizes = [
        equations(hx.make_program(hx.handle(EVIDENCE)(markov))(START, MOVE, np.zeros((length, K), "float32")))
        for length in (10, 1000)
    ]
    assert sizes[0] == sizes[1]


def test_it_costs_a_small_multiple_of_the_forward_algorithm():
    args = [np.float32(rng.normal(size=shape)) for shape in [(16,), (16, 16), (100, 16)]]

    def model(start, move, shown):
        def step(row, seen):
            z = choose(16)
            weigh(row[z] + seen[z])
            return move[z], None

        lax.scan(step, start, shown)

    close(hx.handle(EVIDENCE)(model)(*args), forward(*args), 1e-3)
    flops = lambda f: hx.jit(f).lower(*args).compile().cost_analysis()["flops"]
    assert flops(hx.handle(EVIDENCE)(model)) < 1.5 * flops(forward)
    slopes = [hx.grad(f, argnums=(0, 1, 2)) for f in (hx.handle(EVIDENCE)(model), forward)]
    assert flops(slopes[0]) < 1.5 * flops(slopes[1])


def test_lanes_that_number_a_choice_are_the_axis_of_the_table():
    def model(shown):
        def step(last, seen):
            z = choose(K)
            weigh(seen.sum())
            return z, None

        return lax.scan(step, 0, shown)[0]

    for wrap in (lambda f: f, hx.grad):
        text = str(hx.make_program(wrap(hx.handle(EVIDENCE)(model)))(SHOWN))
        assert "gather" not in text and "scatter" not in text


# unrolled


def test_an_unrolled_loop_hands_on_a_state_and_stacks_its_results():
    both = lambda resume, s, op: hx.tree.map(lambda *ys: hnp.stack(ys), resume(s, 0), resume(s + 1, 1))
    listing = hx.handler({Choose: hx.ctl(both)})
    f = lambda reverse: lax.scan(lambda c, x: (c * 2 + choose(2), x + c), 0, hnp.arange(3), reverse=reverse)
    for reverse in (False, True):
        s, (last, ys) = hx.handle(listing, 0, unroll=True)(partial(f, reverse))()
        for bits in itertools.product((0, 1), repeat=3):
            c, rows = 0, []
            for x, bit in zip([2, 1, 0] if reverse else [0, 1, 2], bits):
                rows.append(x + c)
                c = 2 * c + bit
            assert (s[bits], last[bits], ys[bits].tolist()) == (sum(bits), c, rows[::-1] if reverse else rows)


def test_an_unrolled_map_stacks_what_each_path_has():
    summed = folding(lambda ys: ys.sum(0), returns=lambda y: 1.0 * y.sum())
    assert hx.handle(summed, unroll=True)(lambda: lax.map(lambda x: x * choose(2), hnp.arange(3)))() == 8 * 1.5


def test_an_unrolled_loop_takes_time_by_its_length_alone():
    counted = hx.handler({Weigh: hx.ctl(lambda resume, s, op, w: resume(s + 1, None))})
    summed = lambda n: lax.fori_loop(0, n, lambda i, c: (weigh(1.0), c + i)[1], 0)
    for n in (0, 1, 300):
        assert hx.handle(counted, 0, unroll=True)(partial(summed, n))() == (n, n * (n - 1) // 2)


# refused

SUMMED = hx.handler({Choose: hx.ctl(lambda resume, op: resume(0) + resume(1))})


def test_answers_keep_their_type():
    counting = folding(lambda ys: ys.sum(0), returns=lambda y: hnp.int32(1))
    f = lambda: lax.fori_loop(0, 3, lambda i, c: (weigh(0.5), choose(2))[1], 0)
    with pytest.raises(hx.errors.StateTypeError, match=r"the answers of clauses in it: the carry must keep its type"):
        hx.handle(counting)(f)()
    growing = hx.handler({Choose: hx.ctl(lambda resume, op: [resume(0), resume(1)], support=2)})
    with pytest.raises(hx.errors.TreeMismatch, match="the answers of clauses in it"):
        hx.handle(growing)(lambda: lax.fori_loop(0, 3, lambda i, c: choose(2), 0))()


STATEFUL = hx.handler({Choose: hx.ctl(lambda resume, s, op: resume(s, 0), support=2)})


def looped(step):
    return lambda: lax.fori_loop(0, 3, step, 0)


@pytest.mark.parametrize(("handler", "state", "f", "words"), [
    (SUMMED, (), looped(lambda i, c: choose(2)), r"choose: a clause.*(.|\n)*support=n(.|\n)*unroll=True"),
    (TOTAL, (), looped(lambda i, c: c + choose(2)), r"carry 1, i32\[\].*all earlier(.|\n)*unroll=True"),
    (TOTAL, (), lambda: lax.scan(lambda c, _: (c, choose(2)), 0, None, 3)[1].sum(), r"all choices(.|\n)*unroll=True"),
    (TOTAL, (), looped(lambda i, c: (hx.perform(Note(), i), choose(2))[1]), r"Note(.|\n)*unroll=True"),
    (TOTAL, (), lambda: (looped(lambda i, c: choose(2))(), hx.perform(Note(), 1.0)), "Note.*more than once"),
    (TOTAL, (), lambda: lax.while_loop(lambda c: c < 1, lambda c: choose(2), 0), r"resume(.|\n)*unroll"),
    (STATEFUL, (0,), looped(lambda i, c: choose(2)), r"state(.|\n)*unroll=True"),
])
def test_what_has_no_table_is_refused_with_the_remedy(handler, state, f, words):
    noting = hx.handler({Note: lambda op, x: None})
    with pytest.raises((hx.errors.CannotCross, hx.errors.EscapedBox), match=words):
        hx.handle(noting)(hx.handle(handler, *state)(f))()


@pytest.mark.parametrize(("support", "words"), [
    (lambda op: 0, "positive integer"), (lambda op: 2.0, "positive integer"),
    (lambda op: op.n - 1, "resumes with one of 0, ..., 1"),
])
def test_a_support_that_is_none_is_refused(support, words):
    summed = hx.handler({Choose: hx.ctl(lambda resume, op: sum(resume(i) for i in range(op.n)), support=support)})
    with pytest.raises(hx.errors.BadArgument, match=words):
        hx.handle(summed)(lambda: lax.fori_loop(0, 3, lambda i, c: choose(3), 0))()


def test_a_choice_is_a_scalar_and_a_support_a_number():
    for support in ("2", 0, -1):
        with pytest.raises(hx.errors.BadArgument, match="support"):
            hx.ctl(lambda resume, op: resume(0), support=support)
    many = hx.handler({Note: hx.ctl(lambda resume, op, x: resume(None), support=2)})
    with pytest.raises(hx.errors.BadArgument, match="one scalar integer or bool"):
        hx.handle(many)(lambda: lax.fori_loop(0, 3, lambda i, c: (hx.perform(Note(), c), c)[1], 0.0))()


def test_a_final_clause_ends_the_program_in_a_loop_of_known_length():
    @hx.effect(vmap="per_lane")
    class End:
        def result_type(op):
            return hx.ArrayType((), "float32")

    h = hx.handler({
        Choose: hx.ctl(lambda resume, op: resume(0) + resume(1), support=2),
        End: hx.final(lambda op: hnp.float32(-1.0)),
    })
    f = lambda: choose(2) + lax.scan(lambda c, _: (c + hx.perform(End()), None), hnp.float32(0.0), None, 2)[0]
    assert hx.handle(h)(f)() == hx.handle(h, unroll=True)(f)() == hx.direct(h)(f)() == -2.0
