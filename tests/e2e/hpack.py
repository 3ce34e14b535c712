"""HPACK (RFC 7541): writes literals without indexing, reads all that an encoder may send."""


def _encode_int(value, prefix_bits, first=0):
    limit = (1 << prefix_bits) - 1
    if value < limit:
        return bytes([first | value])
    out = [first | limit]
    value -= limit
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    return bytes(out + [value])


def _encode_text(text):
    raw = text if isinstance(text, bytes) else text.encode()
    return _encode_int(len(raw), 7) + raw


def encode_header(name, value, indexed=False):
    """A literal; `indexed` puts it into the peer's dynamic table, as entry 62."""
    return bytes([0x40 if indexed else 0]) + _encode_text(name) + _encode_text(value)


def encode_headers(pairs):
    return b"".join(encode_header(name, value) for name, value in pairs)


# RFC 7541, appendix A: name, value; the first index is 1.
STATIC_TABLE = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"),
    (":path", "/index.html"), (":scheme", "http"), (":scheme", "https"), (":status", "200"),
    (":status", "204"), (":status", "206"), (":status", "304"), (":status", "400"),
    (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""),
    ("accept", ""), ("access-control-allow-origin", ""), ("age", ""), ("allow", ""),
    ("authorization", ""), ("cache-control", ""), ("content-disposition", ""),
    ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""),
    ("date", ""), ("etag", ""), ("expect", ""), ("expires", ""), ("from", ""), ("host", ""),
    ("if-match", ""), ("if-modified-since", ""), ("if-none-match", ""), ("if-range", ""),
    ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""), ("location", ""),
    ("max-forwards", ""), ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""),
    ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""), ("set-cookie", ""),
    ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""),
    ("via", ""), ("www-authenticate", ""),
]  # fmt: skip

# RFC 7541, appendix B: how many bits each byte's code has, as a letter (A: 5). The code is
# canonical, so the lengths are all there is to it.
HUFFMAN_LENGTHS = (
    "ISXXXXXXXTZXXZXXXXXXXXZXXXXXXXXXBFFHIBDGFFDGDBBBAAABBBBBBBCDKBHF"
    "IBCCCCCCCCCCCCCCCCCCCCCCDCDIOIJBKABABABBBACCBBBABCBAABCCCCCKGJIX"
    "PRPPRRRSRSSSSSTSTTRSTSSSSQRSRSSTRQPRRSSQSRRTQRSSQQRQSRSSPRRRSRRS"
    "VVPORSRUVVVWWVTUOQVWWVWTQQVVXWWWPTPQRQQSRRUUTTVSVWVVWWWWWXWWWWWV"
)


def _huffman_codes():
    """(length, code) to byte."""
    lengths = [ord(letter) - ord("A") + 5 for letter in HUFFMAN_LENGTHS]
    codes, code, last = {}, 0, 5
    for byte in sorted(range(256), key=lambda byte: (lengths[byte], byte)):
        code <<= lengths[byte] - last
        last = lengths[byte]
        codes[last, code] = byte
        code += 1
    return codes


HUFFMAN = _huffman_codes()


def _decode_huffman(raw):
    out, code, length = bytearray(), 0, 0
    for byte in raw:
        for bit in range(7, -1, -1):
            code = code << 1 | byte >> bit & 1
            length += 1
            if (length, code) in HUFFMAN:
                out.append(HUFFMAN[length, code])
                code = length = 0
    assert length < 8 and code == (1 << length) - 1, "bad Huffman padding"
    return bytes(out)


class HeaderDecoder:
    """Turns header blocks of one connection, in order, into lists of (name, value) text."""

    def __init__(self):
        self.dynamic = []  # newest first
        self.size_max = 4096

    def _int(self, block, at, prefix_bits):
        limit = (1 << prefix_bits) - 1
        value = block[at] & limit
        at += 1
        if value < limit:
            return value, at
        shift = 0
        while True:
            value += (block[at] & 127) << shift
            shift += 7
            at += 1
            if not block[at - 1] & 128:
                return value, at

    def _text(self, block, at):
        is_huffman = block[at] & 128
        n, at = self._int(block, at, 7)
        raw = bytes(block[at : at + n])
        assert len(raw) == n, "a string goes past its header block"
        raw = _decode_huffman(raw) if is_huffman else raw
        return raw.decode("utf-8", "surrogateescape"), at + n

    def _entry(self, index):
        assert index > 0, "header index 0"
        if index <= len(STATIC_TABLE):
            return STATIC_TABLE[index - 1]
        return self.dynamic[index - len(STATIC_TABLE) - 1]

    def _evict(self):
        while sum(len(name) + len(value) + 32 for name, value in self.dynamic) > self.size_max:
            self.dynamic.pop()

    def decode(self, block):
        pairs, at = [], 0
        while at < len(block):
            first = block[at]
            if first & 0x80:
                index, at = self._int(block, at, 7)
                pairs.append(self._entry(index))
                continue
            if first & 0xE0 == 0x20:
                self.size_max, at = self._int(block, at, 5)
                self._evict()
                continue
            is_indexed = first & 0x40
            index, at = self._int(block, at, 6 if is_indexed else 4)
            if index:
                name = self._entry(index)[0]
            else:
                name, at = self._text(block, at)
            value, at = self._text(block, at)
            pairs.append((name, value))
            if is_indexed:
                self.dynamic.insert(0, (name, value))
                self._evict()
        return pairs
