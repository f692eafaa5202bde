"""Values recorded with JAX, the tables of calls that give them, and the tests that compare."""
