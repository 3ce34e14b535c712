"""Recordings that somebody made by hand: what their texts are, stays text."""

import os
import subprocess
import zlib

import pytest

from peers import folder_of

DAVIT = os.path.join(folder_of("DAVIT_BUILD"), "davit")
PREPARE = b"/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"
GET_INFO = b"/pluginregistration.Registration/GetInfo"
CALL, MESSAGE, END, TO_PLUGIN = 5, 6, 7, 2


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def message(**fields):
    """By numbers: f1=5, f7=b"text"."""
    out = b""
    for name, value in fields.items():
        is_text = isinstance(value, bytes)
        out += varint(int(name[1:]) << 3 | 2 * is_text)
        out += varint(len(value)) + value if is_text else varint(value)
    return out


def frame(**fields):
    body = message(**fields)
    head = len(body).to_bytes(4, "little")
    return b"\xd6REC" + head + zlib.crc32(head + body).to_bytes(4, "little") + body


def call(number, driver, method, answer):
    own = {"f4": 1, "f5": number, "f7": driver, "f9": method}
    return b"".join([frame(f1=CALL, **own), frame(f1=MESSAGE, **own, f6=TO_PLUGIN, f10=b""),
                     frame(f1=MESSAGE, **own, f10=answer), frame(f1=END, **own)])


def recording(path, driver):
    """Of a DRA driver of that name, which was registered and asked once."""
    info = message(f1=b"DRAPlugin", f2=driver, f3=b"/dra.sock", f4=b"v1.DRAPlugin")
    with open(path, "wb") as file:
        file.write(b"davitrec" + bytes([1, 0, 0, 0, 0, 0, 0, 0]))
        file.write(call(1, driver, GET_INFO, info) + call(2, driver, PREPARE, b""))
    return path


@pytest.mark.parametrize("driver", [b"..", b".", b"../../x", b"a\nb", b"\x1b]0;t\x07.x"])
def test_the_name_of_a_replayed_driver_is_one_folder(short_dir, driver):
    kubelet = os.path.join(short_dir, "k")
    for name in ("plugins", "plugins_registry"):
        os.makedirs(os.path.join(kubelet, name))
    path = recording(os.path.join(short_dir, "r.dav"), driver)
    with subprocess.Popen([DAVIT, "record", "replay", "--as", "driver", path, "--kubelet-dir", kubelet],
                          stdout=subprocess.PIPE, text=True) as replay:
        line = replay.stdout.readline()
        made = [os.path.relpath(os.path.join(folder, file), kubelet)
                for folder, _, files in os.walk(kubelet) for file in files]
        replay.terminate()
    assert line.rstrip("\n").isprintable(), line
    assert " serves on " in line
    assert all(name[0] != "." and name.replace("/", "").isprintable() for name in made), made
    assert sorted(name.count("/") for name in made) == [1, 2], made
