"""Pictures of the page, compared by what a person would see from some steps away: in grey, and each cell of some pixels
as one value, so that another machine's fonts and edges do not matter, and a part that is gone does."""

import os
import struct
import zlib

CELL = 12  # pixels of a picture that become one of what is stored
MEAN_MAX = 4.0  # of 255, over all cells
FAR = 44  # a cell that differs so much shows something else
FAR_SHARE_MAX = 0.025
FOLDER = os.path.join(os.path.dirname(__file__), "screens")


def _unfilter(kind, line, before, step):
    for i, value in enumerate(line):
        left = line[i - step] if i >= step else 0
        up = before[i]
        corner = before[i - step] if i >= step else 0
        if kind == 1:
            value += left
        elif kind == 2:
            value += up
        elif kind == 3:
            value += (left + up) // 2
        elif kind == 4:
            near = min((abs(up - corner), 0, left), (abs(left - corner), 1, up),
                       (abs(left + up - 2 * corner), 2, corner))
            value += near[2]
        line[i] = value & 255
    return line


def read(path):
    """(width, height, rows of grey values) of a PNG with 8 bits a channel, not interlaced."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", path
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", data[at + 8:at + 21])
        elif kind == b"IDAT":
            packed += data[at + 8:at + 8 + size]
        at += 12 + size
    assert (depth, interlace) == (8, 0), path
    step = {0: 1, 2: 3, 6: 4}[colour]
    raw = zlib.decompress(packed)
    rows, before = [], bytearray(width * step)
    for y in range(height):
        start = y * (width * step + 1)
        before = _unfilter(raw[start], bytearray(raw[start + 1:start + 1 + width * step]), before, step)
        if step == 1:
            rows.append(bytes(before))
        else:
            rows.append(bytes((77 * r + 150 * g + 29 * b) >> 8 for r, g, b in
                              zip(before[0::step], before[1::step], before[2::step])))
    return width, height, rows


def write(path, rows):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows), 9)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b""))


def small(path):
    width, height, rows = read(path)
    cells = []
    for y in range(0, height - CELL + 1, CELL):
        sums = [0] * (width // CELL)
        for row in rows[y:y + CELL]:
            for i in range(len(sums)):
                sums[i] += sum(row[i * CELL:(i + 1) * CELL])
        cells.append(bytes(total // (CELL * CELL) for total in sums))
    return cells


def difference(rows, others):
    """(the mean of all cells, the share of those that are far apart); None: other sizes."""
    if len(rows) != len(others) or len(rows[0]) != len(others[0]):
        return None
    apart = [abs(a - b) for row, other in zip(rows, others) for a, b in zip(row, other)]
    return sum(apart) / len(apart), sum(value > FAR for value in apart) / len(apart)


def check(name, path):
    """Holds a picture against the one that is stored; DAVIT_SCREENS=write stores it instead."""
    stored = os.path.join(FOLDER, f"{name}.png")
    now = small(path)
    if os.environ.get("DAVIT_SCREENS") == "write":
        os.makedirs(FOLDER, exist_ok=True)
        write(stored, now)
        return
    apart = difference(now, read(stored)[2])
    assert apart, f"{path} has not the size of {stored}"
    mean, share = apart
    print(f"{name}: mean {mean:.1f}, far {share:.3f}")
    assert mean <= MEAN_MAX and share <= FAR_SHARE_MAX, (
        f"{path} is not what {stored} shows: mean {mean:.1f}, {share:.1%} of it far apart; look at both, and if the"
        " new one is what is meant, run this with DAVIT_SCREENS=write")
