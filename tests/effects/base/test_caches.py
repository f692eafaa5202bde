"""Every cache is one kind of cache, is counted in ``cache_info`` and emptied by ``clear_caches``."""

import ast
import functools
import gc
import time
import types
import weakref

import numpy as np
import pytest
from helpers import package_source
from helpers.other_threads import in_thread, together

import handlax as hx
import handlax.numpy as hnp
from handlax import lax
from handlax.effects.base import caches
from handlax.effects.base.caches import CACHES, AttachedCache, Cache, Owners, WeakCache, cached, per_process
from handlax.effects.core.arrays import scalar
from handlax.effects.core.operation import with_memo
from handlax.effects.operations.elementwise.arithmetic import IntegerPow
from handlax.effects.programs.program import derived_once
from handlax.interpreters.core.rule_cache import ADJOINTS

SOURCES = {
    package_source.name(file).removesuffix(".py").replace("/", "."): file.read_text() for file in package_source.PACKAGE
}

# Dictionaries that grow while the process runs and are no caches: emptied, they would change results.
STATE = {
    "handlax.testing.generator.control_flow:NODES": "a registry",
    "handlax.testing.fuzzing.fuzz_loop:_Trial.failures": "one pass: the findings of a target",
    "handlax.testing.fuzzing.line_coverage:LineCoverage.left": "one pass: the lines to be reached",
    "handlax.checkpoints.folder_lock:_HELD": "the locks that are held",
    "handlax.checkpoints.safetensors_file:FileArray._read": "one pass: the parts of an array that were read",
    "handlax.checkpoints.zarr_arrays:StoredArray._reads": "one pass: the parts of an array that are being read",
    "effects.base.config:CHOICES": "a registry",
    "effects.base.source_locations:_STARTS": "a registry",
    "effects.base.source_locations:_EXCLUDED": "a registry",
    "effects.base.tracebacks:_BOUNDARIES": "a registry",
    "effects.core.columns:COLUMNS": "a registry",
    "effects.core.operation:OPERATIONS": "a registry",
    "effects.programs.printer:WRITERS": "a registry",
    "effects.trees.node_types:_KEYED": "the registry of nodes",
    "effects.trees.node_types:_REGISTERED": "the registry of nodes",
    "effects.trees.cpp_pytrees:_FAILED": "a failure of each thread until it is raised, at most one",
    "effects.core.containers:_KINDS": "the registry of containers",
    "effects.core.containers:_LEAVES": "the registry of containers",
    "effects.core.containers:_OF_SPEC": "the registry of containers",
    "effects.sharding.mesh:_MESHES": "interned: equal meshes are one object; holds nothing alive",
    "effects.types.array_type:_INTERNED": "interned: equal types are one object",
    "effects.types.extent:_INTERNED": "interned: equal extents are one object",
    "lowering.jit.call_signature:_SIGNATURES": "interned: equal signatures are one object; holds nothing alive",
    "lowering.clients.runtime_access:REFUSALS": "why the runtime may not be used, at most two reasons",
    "lowering.clients.runtime_access:_INHERITED": "in a forked child what its parent held of the runtime",
    "lowering.xla.disk_cache:COUNTS": "a counter",
    "lowering.clients.platforms:COUNTS": "a counter",
    "lowering.clients.platforms:ANSWERS": "what answers for programs that are being compiled",
    "lowering.clients.joint_actions:JointActions._groups": "one for each group of processes that act together",
    "lowering.clients.joint_actions:JointActions._logs": "one for each other process",
    "lowering.clients.coordinator:Gathering.strangers": "those who may prove to be processes, bounded",
    "lowering.clients.coordinator:Gathering.by_index": "the processes that have come",
    "lowering.clients.processes:Connection._turns": "one for each group of processes that act together",
    "lowering.clients.processes:Connection._met": "the last programs, bounded: all processes forget the same at once",
    "lowering.clients.processes:Connection._said": "a counter",
    "lowering.clients.processes:_CURRENT": "the connection with other processes, one at most",
    "effects.base.wrapping:_VARIABLES": "the context variables of the package, each defined once",
    "lowering.xla.host_callbacks:_FAILURES": "errors not reported yet; bounded",
    "lowering.compile.executable_cache:ExecutableCache.compiling": "what is being compiled at this moment",
    "interpreters.custom.custom_call:CustomFunction.cache_parts": "the parts of counted caches, one for each",
    "lowering.clients.platforms:_backends": "the runtime's clients, which are never made again",
    "lowering.xla.buffer_types:AVALS": "interned: equal avals are one object",
}
# Lists and sets of a module that grow while the process runs and are no caches.
STATE |= {
    "effects.base.caches:CACHES": "the registry of caches",
    "effects.base.stack:_WATCHERS": "who asks for the runs that begin, while their blocks last",
    "handlax.interop.jax_modules:_OF_JAX": "the primitives of the modules of JAX that are loaded",
    "effects.trees.node_types:_LISTENERS": "a registry",
    "lowering.export.tree_serialization:_BY_NAME": "a registry",
    "lowering.export.tree_serialization:_BY_TYPE": "a registry",
    "lowering.xla.array_backend:ON_PLACED": "a registry",
    "lowering.xla.array_backend:PLACED": "whether arrays were placed on devices",
    "lowering.xla.executables:_LAST": "the token of the last program over several devices, at most one",
    "lowering.xla.host_callbacks:HostCall.launches": "the launches in progress of its program",
    "lowering.clients.runtime_access:AT_END": "what waits for the runtime at the end, of each module",
    "lowering.clients.runtime_access:UNINTERRUPTED": "functions of the package",
    "lowering.xla.host_callbacks:_PENDING": "what effects_barrier waits for",
}
# Dictionaries of instances that are no caches: results depend on them, or they end with the pass that makes them.
STATE |= {
    "effects.core.columns:Column.modes": "a registry",
    "handlax.testing.drawn_programs:DrawnPrograms.made": "one check: its programs",
    "handlax.testing.drawn_programs:DrawnPrograms.broad": "one check: the first programs of its laws",
    "effects.functions.captured:_Copy.copies": "one pass: a copy of a function",
    "lowering.export.artifact_writer:Numbering.numbers": "one pass: the bytes of a function",
    "interpreters.differentiation.taylor:Jet.known": "one pass: the series of the operation that is answered",
    "interpreters.library.effectful.automatic_checks:NaNFlags._known": "one call: whether its arrays have NaN",
    "interpreters.library.pure.nan_origin:NaNSearch.notes": "one call: the possible first NaNs",
    "interpreters.library.pure.nan_origin:NaNSearch._firsts": "one call: where its arrays have NaN",
    "interpreters.handlers.static_tally:_Tally.known": "one pass: a program",
    "lowering.inspection.profile:Profile.times": "one profile: the functions in it",
    "lowering.inspection.costs:_PartitionCosts.known": "one pass: the computations of a program",
    "handlax.testing.mutants.coverage_map:CoverageMap.entries": "one run: the lines of its test files",
    "handlax.testing.mutants.mutant_worker:ExecutedLines.footprints": "one process: the lines of its tests",
    "handlax.testing.mutants.mutant_worker:ExecutedLines.lines": "one test: the lines that it executes",
    "handlax.testing.mutants.mutant_worker:ExecutedLines.tests": "one process: its tests",
    "handlax.testing.mutants.mutation_run:Trials.sound": "one run: whether its tests pass without a mutant",
    "effects.programs.lexer:Tokens.known_types": "one pass: a text",
    "effects.programs.parser:BodyParser.const_numbers": "one pass: a text",
    "effects.programs.parser:BodyParser.numbers": "one pass: a text",
    "effects.programs.parser:ProgramParser.known_ops": "one pass: a text",
    "effects.programs.parser:ProgramParser.labels": "one pass: a text",
    "effects.programs.parser:ProgramParser.literals": "one pass: a text",
    "effects.programs.printer:Printer.base": "one pass: a text",
    "effects.programs.printer:Printer.labels": "one pass: a text",
    "effects.programs.printer:Printer.seen": "one pass: a text",
    "effects.programs.printer:Printer.types": "one pass: a text",
    "effects.programs.printer:Printer.uses": "one pass: a text",
    "effects.programs.program:Builder._equal": "one record: constants by value",
    "effects.programs.program:Builder._numbers": "one record: the numbers of constants",
    "effects.programs.program:Builder.inlined_blocks": "one record: part of the tape",
    "interpreters.transformations.partial_sums:_Walk.asked": "one pass: a program",
    "interpreters.differentiation.linearize_bodies:_TapedRest.repeated": "one pass: a body",
    "interpreters.differentiation.linearize_bodies:_TapedRest.residuals": "one pass: a body",
    "interpreters.differentiation.partial_eval:Splitter.cheap": "one pass: a program",
    "interpreters.differentiation.partial_eval:Splitter.far": "one pass: a program",
    "interpreters.differentiation.partial_eval:Splitter.residuals": "one pass: a program",
    "interpreters.differentiation.partial_eval:Splitter.shared_results": "one pass: a program",
    "interpreters.differentiation.partial_eval_bodies:Assembly.renamed": "one pass: a program",
    "interpreters.differentiation.remat_barriers:_Delay.makers": "one pass: a program",
    "interpreters.differentiation.remat_barriers:_Delay.numbers": "one pass: a program",
    "interpreters.handlers.resumed_branches:_Rest.programs": "one pass: a branch",
    "interpreters.inspection.stepper_prompt:_PromptSession.marks": "what the user marked",
    "interpreters.ragged.lane_lengths:RaggedLanes._derived": "one vmap: the lengths of sums and multiples",
    "interpreters.ragged.lane_lengths:RaggedLanes._layouts": "one vmap: its index arrays",
    "interpreters.ragged.lane_lengths:RaggedLanes._numbers": "one vmap: the numbers of lengths",
    "lowering.compile.emitter:Emitter.constants": "one pass: a module's text",
    "lowering.compile.emitter:Emitter.symbols": "one pass: a module's text",
}
MEMOISERS = {"cache", "lru_cache"}
MAPPINGS = {
    "dict", "OrderedDict", "defaultdict", "Counter", "WeakValueDictionary", "WeakKeyDictionary",
}
COLLECTIONS = {"list", "set", "deque", "WeakSet"}
WRITES = {"setdefault", "update", "__setitem__"}
GROWS = {"append", "appendleft", "extend", "insert", "add", "update"}
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def called(node):
    """The last word of what is called or named: ``functools.lru_cache(maxsize=3)`` gives ``lru_cache``."""
    node = node.func if isinstance(node, ast.Call) else node
    return ast.unparse(node).rpartition(".")[2]


@functools.lru_cache(maxsize=1)  # of a module, which many questions are asked about
def nodes(tree):
    return [*ast.walk(tree)]


def memoisers(tree):
    """The lines where Python's own memoisers are used or imported."""
    for node in nodes(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "functools":
            if MEMOISERS & {alias.name for alias in node.names}:
                yield node.lineno
        elif isinstance(node, ast.Attribute) and node.attr in MEMOISERS and ast.unparse(node.value) == "functools":
            yield node.lineno


def is_dictionary(value):
    return isinstance(value, ast.Dict | ast.DictComp) or (isinstance(value, ast.Call) and called(value) in MAPPINGS)


def is_empty_dictionary(value):
    filled = isinstance(value, ast.DictComp) or getattr(value, "keys", None) or getattr(value, "args", None)
    return is_dictionary(value) and not filled


def is_collection(value):
    displays = ast.List | ast.ListComp | ast.Set | ast.SetComp
    return isinstance(value, displays) or (isinstance(value, ast.Call) and called(value) in COLLECTIONS)


def bound(lines, test):
    """The targets of those assignments among ``lines`` whose value passes the test."""
    for node in lines:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and test(node.value):
            yield from node.targets if isinstance(node, ast.Assign) else [node.target]


def classes(tree):
    return [node for node in nodes(tree) if isinstance(node, ast.ClassDef)]


def dictionaries(tree):
    """The names at the top of a module, and in its classes, that are bound to a dictionary."""
    return [ast.unparse(x) for scope in [tree, *classes(tree)] for x in bound(scope.body, is_dictionary)]


def collections(tree):
    """The names at the top of a module that are bound to a list or a set."""
    return [ast.unparse(x) for x in bound(tree.body, is_collection)]


def on_instances(tree):
    """``Class.attribute`` for the attributes of ``self`` that methods bind to an empty dictionary, which they fill."""
    for kind in classes(tree):
        for x in bound(ast.walk(kind), is_empty_dictionary):
            if isinstance(x, ast.Attribute) and ast.unparse(x.value) == "self":
                yield f"{kind.name}.{x.attr}"


def growing(tree, methods):
    """The names into which functions of a module put entries, under keys or by these methods."""
    functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    for node in {inner for function in functions for inner in ast.walk(function)}:
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            yield ast.unparse(node.value).rpartition(".")[2]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods:
            yield ast.unparse(node.func.value).rpartition(".")[2]


def mutable_defaults(tree):
    """The lines of functions that have a dictionary, list or set as default of a parameter."""
    for node in [node for node in nodes(tree) if isinstance(node, FUNCTIONS)]:
        if any(is_dictionary(x) or is_collection(x) for x in [*node.args.defaults, *node.args.kw_defaults] if x):
            yield node.lineno


def in_closures(tree):
    """The dictionaries of a function that outlive its call: a function that it returns fills them or hands them on."""
    for outer in [node for node in nodes(tree) if isinstance(node, ast.FunctionDef)]:
        results = [node.value for node in outer.body if isinstance(node, ast.Return)]
        names = {ast.unparse(result) for result in results if result}
        inner = [node for node in outer.body if isinstance(node, ast.FunctionDef) and node.name in names]
        inner += [result for result in results if isinstance(result, ast.Lambda)]
        calls = [node for function in inner for node in ast.walk(function) if isinstance(node, ast.Call)]
        passed = {ast.unparse(x) for call in calls for x in call.args}
        for name in {ast.unparse(x) for x in bound(outer.body, is_empty_dictionary)}:
            if name in passed or any(name in growing(function, WRITES) for function in inner):
                yield f"{outer.name}.{name}"


def mistakes(module, source):
    """What in a module's source is a cache that nobody counts."""
    tree = ast.parse(source)
    if module != "effects.base.caches":
        yield from [f"{module}:{line} uses a memoiser of functools" for line in memoisers(tree)]
        counted = {cache.attribute for cache in CACHES if isinstance(cache, AttachedCache)}
        escaped = {name for name in on_instances(tree) if name.partition(".")[2] not in counted}
    else:
        escaped = set()
    for names, methods in ((dictionaries(tree), WRITES), (collections(tree), GROWS)):
        escaped |= {*names} & {*growing(tree, methods)} if names else set()
    escaped |= {*in_closures(tree)}
    for name in sorted(escaped):
        if f"{module}:{name}" not in STATE:
            yield f"{module}:{name} grows: make it a cache of effects/base/caches.py, or say in STATE what it is"
    yield from [f"{module}:{line} has a default that can grow" for line in mutable_defaults(tree)]


def uncounted(objects):
    """The functions of the package among these objects that remember what they gave, and that no cache counts."""
    counted = {id(cache.function) for cache in CACHES if isinstance(cache, caches._FunctionCache)}
    for x in objects:
        if type(x) is functools._lru_cache_wrapper and (x.__module__ or "").split(".")[0] == "handlax":
            code = getattr(x.__wrapped__, "__code__", None)
            if id(x) not in counted and (code is None or code.co_filename != caches.__file__):
                yield f"{x.__module__}.{x.__qualname__}"


def test_no_cache_of_the_source_escapes():
    assert [mistake for source in SOURCES.items() for mistake in mistakes(*source)] == []


def test_no_cache_of_the_process_escapes():
    hx.grad(lambda x: hnp.sum(hnp.sin(hnp.einsum("ij,jk", x, x))))(hnp.ones((2, 2)))
    assert not list(uncounted(gc.get_objects()))


def test_what_is_said_to_be_state_is_there():
    trees = {module: ast.parse(SOURCES[module]) for module in {name.partition(":")[0] for name in STATE}}
    finders = dictionaries, collections, on_instances, in_closures
    found = {f"{module}:{name}" for module, tree in trees.items() for find in finders for name in find(tree)}
    assert sorted(set(STATE) - found) == []


@pytest.mark.parametrize(
    "source",
    [
        "import functools\n@functools.cache\ndef f(x): return x",
        "import functools\n@functools.lru_cache(maxsize=8)\ndef f(x): return x",
        "from functools import lru_cache\n@lru_cache\ndef f(x): return x",
        "import functools\nf = functools.lru_cache(8)(abs)",
        "_SEEN = {}\ndef f(x):\n    _SEEN[x] = abs(x)",
        "_SEEN: dict[int, int] = {}\ndef f(x): return _SEEN.setdefault(x, abs(x))",
        "_SEEN = dict()\nf = lambda x: _SEEN.setdefault(x, abs(x))",
        "import weakref\n_SEEN = weakref.WeakKeyDictionary()\ndef f(x):\n    _SEEN[x] = 1",
        "class A:\n    seen = {}\n    def f(self, x):\n        self.seen[x] = 1",
        "class A:\n    def __init__(self):\n        self.seen = {}\n    def f(self, x):\n        self.seen[x] = 1",
        "class A:\n    def __init__(self):\n        self.seen: dict[int, int] = dict()",
        "_SEEN = []\ndef f(x):\n    if not _SEEN: _SEEN.append(abs(x))\n    return _SEEN[0]",
        "_SEEN = [None] * 3\n_SEEN = [None]\ndef f(x):\n    _SEEN[0] = x",
        "_SEEN = set()\ndef f(x): _SEEN.add(x)",
        "def f(x, seen={}): return seen.setdefault(x, abs(x))",
        "f = lambda x, *, seen=[]: seen",
        "def f(g):\n    seen = {}\n    def h(x):\n        seen[x] = g(x)\n        return seen[x]\n    return h",
        "def f(g):\n    seen = {}\n    def h(x): return look_up(x, seen)\n    return h",
        "def f(g):\n    seen = {}\n    return lambda x: seen.setdefault(x, g(x))",
    ],
)
def test_a_cache_that_escapes_is_found(source):
    assert list(mistakes("effects.mistake", source))


def test_a_function_that_escapes_is_found():
    f = functools.cache(types.FunctionType((lambda x: x).__code__, {"__name__": "handlax.mistake"}))
    assert list(uncounted([f]))
    assert not list(uncounted([cached("counted function")(f.__wrapped__), per_process(f.__wrapped__)]))


@pytest.fixture(autouse=True)
def as_before():
    """The caches that a test makes are gone after it."""
    before = list(CACHES)
    yield
    CACHES[:] = before


def test_names_are_unique():
    assert len(hx.cache_info()) == len(CACHES)


def test_clear_caches_empties_every_cache_and_nothing_breaks():
    def f(x):
        y = hx.jit(lambda x: lax.fori_loop(0, 3, lambda i, c: hnp.sin(c) * x, x))(x)
        return hnp.sum(hnp.einsum("ij,jk", y, y)) + hnp.float16(1)

    x = np.ones((2, 2), np.float32)
    first = hx.grad(f)(x)
    assert sum(info.size for info in hx.cache_info().values()) > 50
    hx.clear_caches()
    assert [name for name, info in hx.cache_info().items() if info.size] == []
    np.testing.assert_array_equal(np.asarray(hx.grad(f)(x)), np.asarray(first))


def test_a_full_cache_drops_its_older_half():
    cache = Cache("small", 4)
    for i in range(5):
        assert cache.get(i, lambda i=i: -i) == -i
    assert list(cache.entries) == [2, 3, 4]
    assert cache.get(4, pytest.fail) == -4
    assert cache.info() == (1, 5, 3, 4)
    cache.clear()
    assert len(cache) == 0


def test_a_failed_entry_is_asked_for_again():
    cache = Cache("failing")
    with pytest.raises(ZeroDivisionError):
        cache.get(1, lambda: 1 / 0)
    assert cache.get(1, lambda: 2) == 2


def test_a_cached_function_is_counted_and_bounded():
    @cached("doubles", 2)
    def double(x):
        """Twice."""
        return 2 * x

    assert [double(x) for x in (1, 2, 3, 3)] == [2, 4, 6, 6]
    assert double.__doc__ == "Twice."
    assert hx.cache_info()["doubles"] == (1, 3, 2, 2)


def test_once_is_once_though_many_threads_call():
    calls = []

    @per_process
    def slow():
        calls.append(1)
        time.sleep(0.05)  # others call meanwhile
        return object()

    found = together(8, lambda _: slow())
    assert len(calls) == 1 and len(set(found)) == 1
    hx.clear_caches()
    assert slow() is found[0]


def test_what_fails_is_not_done_once():
    tries = []

    @per_process
    def second():
        tries.append(1)
        return 1 / (len(tries) - 1)

    with pytest.raises(ZeroDivisionError):
        second()
    assert second() == 1


class Owner:
    def __init__(self, owners):
        self.part = {}
        owners.add(self)


def test_a_part_goes_with_its_owner_and_all_are_bounded_together():
    owners = Owners()
    cache = AttachedCache("parts", "part", 4, owners)
    a, b = Owner(owners), Owner(owners)
    assert [cache.add(owner.part, i, -i) for i, owner in enumerate((a, b))] == [0, -1]
    assert cache.add(a.part, 0, "late") == 0
    assert len(cache) == 2
    del b
    gc.collect()
    assert cache.parts() == [a.part]
    for i in range(100):
        cache.add(a.part, i, i)
        assert len(cache) <= 4


def test_what_cannot_hold_a_dictionary_is_found_by_identity():
    cache = WeakCache("watched")
    f = lambda: None
    part = cache.part(f)
    cache.add(part, "x", 1)
    assert cache.part(f) is part and len(cache) == 1
    cache.clear()
    assert cache.part(f) is part and len(cache) == 0
    assert cache.part(1) is not cache.part(1)
    assert len(cache.watched) == 1
    del f
    gc.collect()
    assert not cache.watched


def test_the_dictionaries_of_all_owners_together_are_bounded():
    cache, fs = WeakCache("bounded", 4), [lambda: None for _ in range(3)]
    for i in range(100):
        cache.add(cache.part(fs[i % 3]), i, i)
        assert len(cache) <= 4


def test_a_fact_is_derived_once_for_each_program_and_argument():
    asked = []

    @derived_once
    def fact(program, *more):
        asked.append(more)

    p, q = hx.make_program(hnp.sin)(1.0), hx.make_program(hnp.sin)(1.0)
    assert [fact(p), fact(p), fact(p, 2), fact(p, 2), fact(q)] == [None] * 5
    assert asked == [(), (2,), ()]
    hx.clear_caches()
    fact(p)
    assert len(asked) == 4


def test_a_memo_goes_with_its_operation():
    memo = weakref.ref(with_memo(IntegerPow(3)).memo)
    gc.collect()
    assert memo() is None


def test_a_number_is_not_given_away_though_the_cache_of_numbers_was_emptied():
    x = scalar(2.5)
    hx.clear_caches()
    f = hx.jit(lambda x: x + 1, donate_argnums=0)
    assert float(f(x)) == 3.5 == float(x) + 1


class Finalized:
    """A value whose finalizer calls ``f``."""

    def __init__(self, f):
        self.f = f

    def __del__(self):
        self.f()


def test_a_value_that_is_dropped_may_fill_the_cache_again():
    cache, added = Cache("of a test", 4), []

    def fill():
        for _ in range(5):
            added.append(len(added))
            cache.add(added[-1], None)

    def drop():
        cache.add("first", Finalized(fill))
        fill()

    in_thread(drop)  # one that waited for itself would not end
    assert added == [*range(10)] and len(cache) <= 4
    CACHES.remove(cache)


def test_a_finalizer_may_add_an_owner_while_dead_ones_are_forgotten():
    owners, owner = Owners(), {*"a"}
    owners.bound = 0
    owners.references.append(lambda: owners.add(owner))  # a collection may run a finalizer anywhere in this loop
    in_thread(owners.add, owner)
    assert owners.alive() == [owner, owner]


@pytest.mark.usefixtures("nothing_placed")
def test_the_dictionaries_of_a_jitted_function_are_counted_and_emptied():
    hx.clear_caches()
    f = hx.jit(lambda x, n: x * n, static_argnums=1)
    assert float(f(2.0, 3)) == 6 == float(f(2.0, 3))
    jitted = f._jit_info
    parts = [jitted.compiled, jitted.traces, jitted.positions, jitted.active_plans[1]]
    assert all(parts)
    counted = {id(part) for cache in CACHES if isinstance(cache, AttachedCache) for part in cache.parts()}
    assert {*map(id, parts)} <= counted
    hx.clear_caches()
    assert not any(parts)
    assert float(f(2.0, 3)) == 6


def test_the_adjoints_of_rule_programs_are_counted_and_emptied():
    hx.clear_caches()
    gradient = hx.grad(lambda x: hnp.sum(hnp.sin(x) * hnp.tanh(x)))
    first = gradient(hnp.ones(3))
    assert hx.cache_info()["adjoints of rule programs"].size
    blocks = ADJOINTS.owners.alive()  # so that they outlive the cache of rule programs
    hx.clear_caches()
    assert blocks and not any(block.adjoints for block in blocks)
    np.testing.assert_array_equal(gradient(hnp.ones(3)), first)


def test_the_traces_of_a_checkpointed_function_are_counted_and_emptied():
    hx.clear_caches()
    f = hx.checkpoint(lambda x: hnp.sin(hnp.sin(x)))
    f(1.0)
    assert hx.cache_info()["trace"].size == 1
    hx.clear_caches()
    assert hx.cache_info()["trace"].size == 0
    f(1.0)
