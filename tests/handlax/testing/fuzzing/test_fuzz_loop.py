"""Fuzzing finds what breaks the law, keeps what reaches new lines, and makes what it finds small."""

from fuzz_targets.readers import PARSER

from handlax.effects.programs.program import Program
from handlax.testing.fuzzing import Target, fuzz, fuzz_loop, read_corpus
from handlax.testing.fuzzing.fuzz_loop import adding, keep


def parse(data):
    program = Program.parse(data.decode("latin1"))
    assert "scan" not in str(program), "no loops"


def test_a_failure_is_found_once_and_made_small(monkeypatch):
    monkeypatch.setattr(fuzz_loop, "_REDUCING", 1.0)
    report = fuzz(Target("parsing", parse, PARSER.seeds), inputs=60)
    assert any("no loops" in failure and b"scan" in data for failure, data in report.findings)
    assert len({failure for failure, _ in report.findings}) == len(report.findings)
    assert "no loops" in str(report) and report.outcomes["ParseError"] and report.outcomes["a result"]


def test_the_corpus_is_tried_first_and_the_number_of_inputs_is_kept_to():
    tried = []
    report = fuzz(Target("listed", tried.append), [b"some bytes"], inputs=40)
    assert report.outcomes.total() == 40 and tried[0] == b"some bytes"


def test_fuzzing_ends_when_its_time_is_over():
    assert fuzz(Target("listed", len), [b"a", b"b"], seconds=0).outcomes.total() == 2


def test_an_input_is_no_longer_made_small_when_the_time_for_this_is_over(monkeypatch):
    tried = []
    target = Target("failing", lambda data: tried.append(data) or data[100])
    monkeypatch.setattr(fuzz_loop, "_REDUCING", 0.0)
    (finding,) = fuzz(target, [b"some bytes"], inputs=1).findings
    assert finding.data == b"some bytes" and {*tried} == {b"some bytes"}


def test_inputs_are_added_that_reach_lines_of_their_own():
    target, seeds = PARSER, [*PARSER.seeds()]
    short = b"program f(a: f32[]) -> (f32[]) { return (a) }"
    added, lines = adding(target, [short], [short, short + b" ", *seeds, *seeds])
    assert 1 < len(added) <= len(seeds) and lines > 100 and short not in added
    assert adding(target, [short, *added], seeds)[0] == []


def test_a_corpus_is_read_as_it_was_kept(tmp_path):
    folder = tmp_path / "corpora" / "parser"
    files = [keep(folder, data) for data in (b"a", b"b", b"a")]
    assert files[0] == files[2] and sorted(read_corpus(folder)) == [b"a", b"b"] and read_corpus(tmp_path / "no") == []
