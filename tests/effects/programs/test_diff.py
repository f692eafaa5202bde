"""The difference of two programs: minimal, and readable."""

import handlax as hx
from handlax.effects.programs.program import Program


@hx.effect
class Knocked:
    """Knock, once."""

    def result_type(op):
        return None


def test_a_difference_is_minimal_and_readable():
    p = Program.parse("""program f(a: f32[3]) -> (f32[3]) {
  b: f32[3] = neg a
  c: f32[3] = mul b b
  d: f32[3] = add c 1.0:f32[]
  return (d)
}""")
    inserted = Program.parse(str(p).replace("  c: f32[3] = mul b b\n", "  x: f32[3] = abs b\n  c: f32[3] = mul b b\n"))
    assert str(p.diff(inserted)) == "+ c: f32[3] = abs b" and p.diff(inserted).inserted == ((1, "c: f32[3] = abs b"),)
    assert str(inserted.diff(p)) == "- c: f32[3] = abs b"
    rewired = Program.parse(str(p).replace("mul b b", "mul b a"))
    assert str(p.diff(rewired)) == "- c: f32[3] = mul b b\n+ c: f32[3] = mul b a"
    constant = Program.parse(str(p).replace("1.0:", "-1.0:"))
    assert str(p.diff(constant)) == "- d: f32[3] = add c 1.0:f32[]\n+ d: f32[3] = add c -1.0:f32[]"
    assert str(p.diff(Program.parse(str(p).replace("return (d)", "return (c)")))) == "- return (d)\n+ return (c)"
    wider = Program.parse(str(p).replace("f32[3]", "f32[4]"))
    assert p.diff(wider).signature == ("- inputs (f32[3])", "+ inputs (f32[4])")
    knocked = Program.parse(str(p).replace("  return", "  knocked\n  return"))
    assert str(p.diff(knocked)) == "- effects {}\n+ effects {Knocked}\n+ knocked"
