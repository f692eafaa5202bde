"""The instructions of compiled programs, as XLA prints them."""

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.lowering.inspection.hlo_program import HloArray, hlo_program

TEXT = """HloModule m

%inner (a: f32[2,3]) -> f32[2,3] {
  %a = f32[2,3]{1,0} parameter(0)
  ROOT %b.1 = f32[2,3]{1,0:T(8,128)} sine(%a), metadata={op_name="encoder/\\"norm\\"/sin"}
}

ENTRY %main (x: f32[2,3]) -> (f32[2,3], pred[], s4[3]) {
  %x = f32[2,3]{1,0} parameter(0)
  %f = f32[2,3]{1,0} fusion(%x), kind=kLoop, calls=%inner
  ROOT %t = (f32[2,3]{1,0}, pred[], /*index=2*/s4[3]{0}) custom-call(%f, %x), custom_call_target="g"
}
"""


def test_a_text_is_read():
    program = hlo_program(TEXT)
    assert program.entry == "main" and [*program.computations] == ["inner", "main"]
    parameter, sine = program.computations["inner"]
    assert sine[:4] == ("b.1", "sine", (HloArray((2, 3), 32),), ("a",))
    assert sine.scope == 'encoder/"norm"' and parameter.scope == ""
    *_, last = program.computations["main"]
    assert last.operands == ("f", "x") and [array.nbytes for array in last.results] == [24, 1, 2]


def test_every_operand_of_a_compiled_program_is_an_instruction_of_its_computation():
    f = lambda x: lax.scan(lambda c, y: (hnp.tanh(c @ y), c.sum()), x, hnp.ones((3, 8, 8)))
    program = hlo_program(hx.jit(f).lower(hnp.ones((8, 8))).compile().as_text())
    assert {"while", "dot"} <= {each.opcode for body in program.computations.values() for each in body}
    for instructions in program.computations.values():
        names = {each.name for each in instructions}
        assert instructions and all(names.issuperset(each.operands) for each in instructions)
