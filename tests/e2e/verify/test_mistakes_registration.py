"""davit verify finds mistakes of device plugins on grpcio: how they make themselves known."""

import pytest

from mistakes import assert_found, rows


@pytest.mark.parametrize("fault", rows("register"))
def test_mistakes(python_plugin, scratch, fault):
    assert_found(python_plugin, fault, scratch)
