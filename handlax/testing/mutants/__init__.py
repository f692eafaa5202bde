"""``python -m handlax.testing.mutants``: what tests do not see, found by breaking code one place at a time.

    python -m handlax.testing.mutants my_op.py --tests test_my_op.py

A mutant is the code with one small mistake: a sign, an axis, a guard, a cache key. Tests that pass with it would pass
with that mistake of yours. Each mutant is executed with the tests that reach its line, the fastest first, up to the
first that fails, so it is killed, survived or timed out. The files of the tree stay as they are.

Source: DeMillo, Lipton & Sayward, "Hints on Test Data Selection", Computer 11 (1978); Just et al., "Are Mutants a Valid
Substitute for Real Faults in Software Testing?", FSE 2014
"""
