"""What a report of a fault says of the surroundings."""

import jaxlib
import numpy as np

import handlax as hx


def test_a_report_has_versions_devices_and_variables(capsys, monkeypatch):
    monkeypatch.setenv("HANDLAX_SOMETHING", "17")
    text = hx.print_environment_info(return_string=True)
    lines = {name: value.lstrip() for name, _, value in [line.partition(":") for line in text.splitlines()]}
    assert (lines["handlax"], lines["jaxlib"], lines["numpy"]) == (hx.__version__, jaxlib.__version__, np.__version__)
    assert lines["HANDLAX_SOMETHING"] == "17" and lines["devices"].startswith(f"{hx.device_count()} of kind")
    assert hx.print_environment_info() is None and capsys.readouterr().out == text + "\n"
    assert len({len(line) - len(line.partition(":")[2].lstrip()) for line in text.splitlines()}) == 1  # one column
