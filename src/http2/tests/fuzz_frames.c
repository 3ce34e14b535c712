/* Frames from records that a fuzzer can mutate, and a look at the frames that come back. */
#include <assert.h>
#include <nghttp2/nghttp2.h>
#include <string.h>

#include "base/defs.h"
#include "base/num.h"
#include "http2/tests/fuzz_session.h"

#define FRAME_HEAD_BYTES 9u
#define OUTPUT_BYTES_MAX (64u << 20)
#define N_STREAMS 512u

/* Corpus files count on the order: add at the end. */
static const struct {
    const char *name;
    const char *value;
} fields[] = {
    {":method",           "POST"                  },
    {":path",             "/a.B/C"                },
    {"content-type",      "application/grpc"      },
    {":scheme",           "http"                  },
    {":authority",        "localhost"             },
    {"te",                "trailers"              },
    {"grpc-timeout",      "1S"                    },
    {"grpc-encoding",     "gzip"                  },
    {"x-key",             "value"                 },
    {":status",           "200"                   },
    {"grpc-status",       "0"                     },
    {"grpc-status",       "5"                     },
    {"grpc-message",      "no%20such%C3%A4%zz"    },
    {":method",           "GET"                   },
    {":path",             "/"                     },
    {"content-type",      "text/html"             },
    {":authority",        "/var/run/plugin.sock"  },
    {"grpc-timeout",      "99999999H"             },
    {"grpc-timeout",      "bad"                   },
    {"grpc-encoding",     "identity"              },
    {"connection",        "close"                 },
    {":status",           "103"                   },
    {":status",           "404"                   },
    {":status",           "abc"                   },
    {"grpc-status",       "x"                     },
    {"grpc-status",       "4294967295"            },
    {"X-Upper",           ""                      },
    {"",                  ""                      },
    {"trailer-bin",       "AAEC"                  },
    {"user-agent",        "fuzz"                  },
    {":path",             "/package.Service/Watch"},
    {":path",             "/a?b=c"                },
    {":scheme",           "https"                 },
    {":method",           "HEAD"                  },
    {":method",           "CONNECT"               },
    {"host",              "localhost"             },
    {"host",              "other"                 },
    {"content-length",    "2"                     },
    {"content-length",    "0"                     },
    {"expect",            "100-continue"          },
    {"transfer-encoding", "chunked"               },
};

enum kind {
    KIND_DATA,
    KIND_MESSAGE,
    KIND_HEADERS,
    KIND_CONTINUATION,
    KIND_RESET,
    KIND_SETTINGS,
    KIND_PING,
    KIND_GOAWAY,
    KIND_WINDOW,
    KIND_RAW, /* type, flags, payload */
    N_KINDS,
};

#define KIND_FLAG_END 0x80u
#define KIND_FLAG_PAD 0x40u
#define KIND_FLAG_PART 0x20u
#define KIND_FLAG_ACK 0x10u

static void add_u32(struct dv_buf *out, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        dv_buf_add_char(out, (char)(value >> shift));
}

static uint8_t byte_at(dv_str s, size_t i)
{
    return i < s.n ? (uint8_t)s.p[i] : 0;
}

/* Small ones are themselves; the last few are near the edges. */
static uint32_t number_at(dv_str s, size_t i)
{
    static const uint32_t edges[] = {
        0x7fffffff, 0x80000000, 0xffffffff, 65535, 65536, 16384, 0x7fff0000, 100000,
    };
    uint8_t value = byte_at(s, i);

    return value < 248 ? value : edges[value - 248];
}

static void add_field(struct dv_buf *out, uint8_t i)
{
    const char *name = fields[i % DV_COUNT(fields)].name;
    const char *value = fields[i % DV_COUNT(fields)].value;

    dv_buf_add_char(out, 0); /* literal, not indexed */
    dv_buf_add_char(out, (char)strlen(name));
    dv_buf_add_c(out, name);
    dv_buf_add_char(out, (char)strlen(value));
    dv_buf_add_c(out, value);
}

static void add_settings(struct dv_buf *out, dv_str body)
{
    for (size_t i = 0; i + 1 < body.n; i += 2) {
        dv_buf_add_char(out, 0);
        dv_buf_add_char(out, (char)(byte_at(body, i) % 10));
        add_u32(out, number_at(body, i + 1));
    }
}

static uint8_t type_of(enum kind kind, dv_str body)
{
    static const uint8_t types[] = {
        [KIND_DATA] = NGHTTP2_DATA,
        [KIND_MESSAGE] = NGHTTP2_DATA,
        [KIND_HEADERS] = NGHTTP2_HEADERS,
        [KIND_CONTINUATION] = NGHTTP2_CONTINUATION,
        [KIND_RESET] = NGHTTP2_RST_STREAM,
        [KIND_SETTINGS] = NGHTTP2_SETTINGS,
        [KIND_PING] = NGHTTP2_PING,
        [KIND_GOAWAY] = NGHTTP2_GOAWAY,
        [KIND_WINDOW] = NGHTTP2_WINDOW_UPDATE,
    };

    return kind == KIND_RAW ? byte_at(body, 0) : types[kind];
}

static uint8_t flags_of(uint8_t kind_byte, enum kind kind, dv_str body)
{
    uint8_t flags = 0;

    if (kind == KIND_RAW)
        return byte_at(body, 1);
    if (kind_byte & KIND_FLAG_END && (kind <= KIND_HEADERS))
        flags |= NGHTTP2_FLAG_END_STREAM;
    if (kind_byte & KIND_FLAG_PAD && (kind <= KIND_HEADERS))
        flags |= NGHTTP2_FLAG_PADDED;
    if (!(kind_byte & KIND_FLAG_PART) && (kind == KIND_HEADERS || kind == KIND_CONTINUATION))
        flags |= NGHTTP2_FLAG_END_HEADERS;
    if (kind_byte & KIND_FLAG_ACK && (kind == KIND_SETTINGS || kind == KIND_PING))
        flags |= NGHTTP2_FLAG_ACK;
    return flags;
}

static void add_body(struct dv_buf *out, enum kind kind, dv_str body)
{
    switch (kind) {
    case KIND_MESSAGE:
        dv_buf_add_char(out, 0);
        add_u32(out, (uint32_t)body.n);
        dv_buf_add(out, body);
        break;
    case KIND_HEADERS:
    case KIND_CONTINUATION:
        for (size_t i = 0; i < body.n; i++)
            add_field(out, byte_at(body, i));
        break;
    case KIND_RESET:
    case KIND_WINDOW:
        add_u32(out, number_at(body, 0));
        break;
    case KIND_SETTINGS:
        add_settings(out, body);
        break;
    case KIND_PING:
        dv_buf_add(out, DV_STR("12345678"));
        break;
    case KIND_GOAWAY:
        add_u32(out, number_at(body, 0));
        add_u32(out, number_at(body, 1));
        break;
    case KIND_DATA:
    case KIND_RAW:
    case N_KINDS:
        dv_buf_add(out, kind == KIND_RAW ? dv_str_slice(body, 2, body.n) : body);
        break;
    }
}

static void add_record(struct dv_buf *bytes, uint8_t kind_byte, uint32_t stream, dv_str body)
{
    enum kind kind = (enum kind)((kind_byte & 0x0fu) % N_KINDS);
    uint8_t flags = flags_of(kind_byte, kind, body);
    bool is_padded = kind != KIND_RAW && flags & NGHTTP2_FLAG_PADDED;
    struct dv_buf payload;

    dv_buf_init(&payload, FUZZ_BYTES_MAX);
    if (is_padded)
        dv_buf_add_char(&payload, 3);
    add_body(&payload, kind, body);
    if (is_padded)
        dv_buf_add(&payload, DV_STR("\0\0\0"));
    if (kind == KIND_SETTINGS || kind == KIND_PING || kind == KIND_GOAWAY)
        stream = 0;
    dv_buf_add_char(bytes, 0);
    dv_buf_add_char(bytes, (char)(payload.n >> 8));
    dv_buf_add_char(bytes, (char)payload.n);
    dv_buf_add_char(bytes, (char)type_of(kind, body));
    dv_buf_add_char(bytes, (char)flags);
    add_u32(bytes, stream);
    dv_buf_add(bytes, dv_buf_str(&payload));
    dv_buf_fini(&payload);
}

void fuzz_frames(bool is_server, dv_str records, struct dv_buf *bytes)
{
    if (is_server)
        dv_buf_add_c(bytes, NGHTTP2_CLIENT_MAGIC);
    dv_buf_add(bytes, DV_STR("\0\0\0\4\0\0\0\0\0")); /* SETTINGS */
    while (records.n >= 3) {
        size_t n = dv_size_min(byte_at(records, 2), records.n - 3);

        add_record(bytes, byte_at(records, 0), byte_at(records, 1),
                   dv_str_slice(records, 3, 3 + n));
        records = dv_str_slice(records, 3 + n, records.n);
    }
}

/* ---- output ---- */

static uint32_t u32_at(dv_str bytes, size_t at)
{
    return (uint32_t)byte_at(bytes, at) << 24 | (uint32_t)byte_at(bytes, at + 1) << 16 |
           (uint32_t)byte_at(bytes, at + 2) << 8 | byte_at(bytes, at + 3);
}

/* Whether a list that we can read has a field of this name. */
static bool has_field(nghttp2_hd_inflater *inflater, dv_str block, const char *name)
{
    bool is_there = false;
    int flags = 0;

    while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
        nghttp2_nv nv;
        ssize_t n =
            nghttp2_hd_inflate_hd2(inflater, &nv, &flags, (const uint8_t *)block.p, block.n, 1);

        assert(n >= 0);
        block = dv_str_slice(block, (size_t)n, block.n);
        if (flags & NGHTTP2_HD_INFLATE_EMIT)
            is_there |= dv_str_eq((dv_str){(const char *)nv.name, nv.namelen}, dv_str_from_c(name));
    }
    (void)nghttp2_hd_inflate_end_headers(inflater); /* always 0 */
    return is_there;
}

/* How far an answer is. */
enum answer {
    FRESH,
    BEGUN,
    ENDED,
    RESET,
};

/* An answer is headers, perhaps data, and at its end headers with a status; only a reset may come
 * at any time, and nothing after it. */
static void check_answer(uint8_t type, bool is_end, bool has_status, uint8_t *stream_state)
{
    if (type == NGHTTP2_HEADERS) {
        assert(*stream_state == FRESH || (*stream_state == BEGUN && is_end));
        assert(has_status == is_end);
        *stream_state = is_end ? ENDED : BEGUN;
    } else if (type == NGHTTP2_DATA) {
        assert(*stream_state == BEGUN && !is_end);
    } else if (type == NGHTTP2_RST_STREAM) {
        *stream_state = RESET;
    }
}

void fuzz_check_output(bool is_server, dv_str bytes)
{
    uint8_t streams[N_STREAMS] = {0};
    nghttp2_hd_inflater *inflater;
    bool is_first = true;

    if (nghttp2_hd_inflate_new(&inflater) != 0)
        return;
    if (!is_server && bytes.n > 0) {
        assert(dv_str_starts_with(bytes, DV_STR(NGHTTP2_CLIENT_MAGIC)));
        bytes = dv_str_slice(bytes, NGHTTP2_CLIENT_MAGIC_LEN, bytes.n);
    }
    while (bytes.n > 0) {
        size_t n = u32_at(bytes, 0) >> 8;
        uint8_t type = byte_at(bytes, 3);
        uint32_t stream = u32_at(bytes, 5);

        bool is_end = byte_at(bytes, 4) & NGHTTP2_FLAG_END_STREAM;
        bool has_status = false;

        assert(bytes.n >= FRAME_HEAD_BYTES && n <= bytes.n - FRAME_HEAD_BYTES);
        assert(!is_first || type == NGHTTP2_SETTINGS);
        is_first = false;
        if (type == NGHTTP2_HEADERS) /* each of them, because the table changes */
            has_status =
                has_field(inflater, dv_str_slice(bytes, FRAME_HEAD_BYTES, FRAME_HEAD_BYTES + n),
                          "grpc-status");
        if (is_server && stream > 0 && stream < N_STREAMS)
            check_answer(type, is_end, has_status, &streams[stream]);
        bytes = dv_str_slice(bytes, FRAME_HEAD_BYTES + n, bytes.n);
    }
    nghttp2_hd_inflate_del(inflater);
}
