"""The faults of `tests/support/planted_faults.py` still apply; checking that each is caught takes minutes and is not done here."""

from __future__ import annotations

import pytest
from planted_faults import FAULTS, ROOT, Fault


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_has_its_place_and_its_tests(fault: Fault) -> None:
    assert (ROOT / "compress" / fault.file).read_text(encoding="utf-8").count(fault.right) == 1
    assert fault.wrong != fault.right
    assert all((ROOT / name).exists() for name in fault.tests.split())
