"""davit verify finds mistakes of device plugins on grpcio: their lists."""

import pytest

from mistakes import assert_found, rows


@pytest.mark.parametrize("fault", rows("list", "shutdown"))
def test_mistakes(python_plugin, scratch, fault):
    assert_found(python_plugin, fault, scratch)
