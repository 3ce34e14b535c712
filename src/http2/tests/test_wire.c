#include "http2/tests/test_wire.h"

#include "support/dvtest.h"

#include <inttypes.h>
#include <string.h>

#include "base/num.h"

#define WIRE_BYTES_MAX (64u << 20)
#define FIELDS_MAX 256u
#define BLOCK_BYTES_MAX (1u << 20)
#define FRAME_HEAD_BYTES 9u
#define PADDING "\0\0\0\0\0\0\0"

static const struct kind {
    const char *name;
    uint8_t type;
} kinds[] = {
    {"data",         NGHTTP2_DATA         },
    {"message",      NGHTTP2_DATA         },
    {"headers",      NGHTTP2_HEADERS      },
    {"continuation", NGHTTP2_CONTINUATION },
    {"reset",        NGHTTP2_RST_STREAM   },
    {"settings",     NGHTTP2_SETTINGS     },
    {"ping",         NGHTTP2_PING         },
    {"goaway",       NGHTTP2_GOAWAY       },
    {"window",       NGHTTP2_WINDOW_UPDATE},
    {"priority",     NGHTTP2_PRIORITY     },
    {"push",         NGHTTP2_PUSH_PROMISE },
};

void wire_init(struct wire *wire)
{
    assert_int_equal(nghttp2_hd_deflate_new(&wire->deflater, 4096), 0);
    assert_int_equal(nghttp2_hd_inflate_new(&wire->inflater), 0);
    dv_buf_init(&wire->bytes, WIRE_BYTES_MAX);
    dv_buf_init(&wire->heard, WIRE_BYTES_MAX);
}

void wire_fini(struct wire *wire)
{
    nghttp2_hd_deflate_del(wire->deflater);
    nghttp2_hd_inflate_del(wire->inflater);
    dv_buf_fini(&wire->bytes);
    dv_buf_fini(&wire->heard);
}

/* ---- from text ---- */

static uint32_t number_of(dv_str text)
{
    uint32_t value;

    if (!dv_str_to_u32(text, &value))
        fail_msg("not a number: %.*s", DV_FMT(text));
    return value;
}

static dv_str word(dv_str *rest)
{
    dv_str piece = DV_STR_NONE;

    if (rest->p)
        (void)dv_str_split(rest, ' ', &piece);
    return piece;
}

static void add_u32(struct dv_buf *out, uint32_t value)
{
    uint8_t bytes[] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8),
                       (uint8_t)value};

    dv_buf_add(out, (dv_str){(const char *)bytes, sizeof(bytes)});
}

static uint8_t hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = strchr(digits, c);

    assert_non_null(at);
    return (uint8_t)(at - digits);
}

static void add_hex(struct dv_buf *out, dv_str hex)
{
    assert_int_equal(hex.n % 2, 0);
    for (size_t i = 0; i < hex.n; i += 2)
        dv_buf_add_char(out, (char)(hex_digit(hex.p[i]) << 4 | hex_digit(hex.p[i + 1])));
}

/* "name=value|name=value", where a value may have '=' in it. */
static void add_block(struct wire *wire, struct dv_buf *out, dv_str list)
{
    static uint8_t block[BLOCK_BYTES_MAX];
    nghttp2_nv fields[FIELDS_MAX];
    size_t n_fields = 0;
    dv_str field;
    ssize_t n;

    while (list.n > 0 && dv_str_split(&list, '|', &field)) {
        size_t name_n = dv_str_find_char(field, '=');

        assert_true(n_fields < FIELDS_MAX && name_n < field.n);
        fields[n_fields++] = (nghttp2_nv){
            .name = (uint8_t *)(uintptr_t)field.p, /* not written to */
            .namelen = name_n,
            .value = (uint8_t *)(uintptr_t)(field.p + name_n + 1),
            .valuelen = field.n - name_n - 1,
        };
    }
    n = nghttp2_hd_deflate_hd(wire->deflater, block, sizeof(block), fields, n_fields);
    assert_true(n >= 0);
    dv_buf_add(out, (dv_str){(const char *)block, (size_t)n});
}

static void add_settings(struct dv_buf *out, dv_str list)
{
    dv_str pair;

    while (list.n > 0 && dv_str_split(&list, ' ', &pair)) {
        size_t at = dv_str_find_char(pair, '=');
        uint32_t id = number_of(dv_str_slice(pair, 0, at));

        dv_buf_add_char(out, (char)(id >> 8));
        dv_buf_add_char(out, (char)id);
        add_u32(out, number_of(dv_str_slice(pair, at + 1, pair.n)));
    }
}

static void add_payload(struct wire *wire, struct dv_buf *out, const struct kind *kind, dv_str rest)
{
    switch (kind->type) {
    case NGHTTP2_DATA:
        if (strcmp(kind->name, "data") == 0) {
            add_hex(out, rest);
        } else {
            dv_buf_add_char(out, 0);
            add_u32(out, (uint32_t)rest.n);
            dv_buf_add(out, rest);
        }
        break;
    case NGHTTP2_HEADERS:
        add_block(wire, out, rest);
        break;
    case NGHTTP2_PUSH_PROMISE:
        add_u32(out, number_of(word(&rest)));
        add_block(wire, out, rest);
        break;
    case NGHTTP2_SETTINGS:
        add_settings(out, rest);
        break;
    case NGHTTP2_RST_STREAM:
    case NGHTTP2_WINDOW_UPDATE:
        add_u32(out, number_of(rest));
        break;
    case NGHTTP2_GOAWAY:
        add_u32(out, number_of(word(&rest)));
        add_u32(out, number_of(rest));
        break;
    default:
        add_hex(out, rest);
        break;
    }
}

static void add_frame(struct wire *wire, uint8_t type, uint8_t flags, uint32_t stream,
                      dv_str payload)
{
    struct dv_buf *out = &wire->bytes;

    dv_buf_add_char(out, (char)(payload.n >> 16));
    dv_buf_add_char(out, (char)(payload.n >> 8));
    dv_buf_add_char(out, (char)payload.n);
    dv_buf_add_char(out, (char)type);
    dv_buf_add_char(out, (char)flags);
    add_u32(out, stream);
    dv_buf_add(out, payload);
}

static uint8_t flags_of(dv_str names, uint8_t type)
{
    uint8_t flags = 0;
    bool is_part = false;
    dv_str name;

    while (names.n > 0 && dv_str_split(&names, '+', &name)) {
        if (dv_str_eq(name, DV_STR("end")))
            flags |= NGHTTP2_FLAG_END_STREAM;
        else if (dv_str_eq(name, DV_STR("ack")))
            flags |= NGHTTP2_FLAG_ACK;
        else if (dv_str_eq(name, DV_STR("pad")))
            flags |= NGHTTP2_FLAG_PADDED;
        else if (dv_str_eq(name, DV_STR("part")))
            is_part = true;
        else
            fail_msg("no flag %.*s", DV_FMT(name));
    }
    if (!is_part &&
        (type == NGHTTP2_HEADERS || type == NGHTTP2_CONTINUATION || type == NGHTTP2_PUSH_PROMISE))
        flags |= NGHTTP2_FLAG_END_HEADERS;
    return flags;
}

static void add_known(struct wire *wire, const struct kind *kind, dv_str flag_names, dv_str rest)
{
    uint8_t flags = flags_of(flag_names, kind->type);
    bool has_stream = kind->type != NGHTTP2_SETTINGS && kind->type != NGHTTP2_PING;
    uint32_t stream = has_stream ? number_of(word(&rest)) : 0;
    struct dv_buf payload;

    dv_buf_init(&payload, WIRE_BYTES_MAX);
    if (flags & NGHTTP2_FLAG_PADDED)
        dv_buf_add_char(&payload, sizeof(PADDING) - 1);
    add_payload(wire, &payload, kind, rest);
    if (flags & NGHTTP2_FLAG_PADDED)
        dv_buf_add(&payload, DV_STR(PADDING));
    add_frame(wire, kind->type, flags, stream, dv_buf_str(&payload));
    dv_buf_fini(&payload);
}

static void add_raw(struct wire *wire, dv_str rest)
{
    uint32_t stream = number_of(word(&rest));
    uint8_t type = (uint8_t)number_of(word(&rest));
    uint8_t flags = (uint8_t)number_of(word(&rest));
    struct dv_buf payload;

    dv_buf_init(&payload, WIRE_BYTES_MAX);
    add_hex(&payload, rest);
    add_frame(wire, type, flags, stream, dv_buf_str(&payload));
    dv_buf_fini(&payload);
}

static void add_line(struct wire *wire, dv_str line)
{
    dv_str rest = line;
    dv_str flags = word(&rest);
    dv_str name = DV_STR_NONE;

    (void)dv_str_split(&flags, '+', &name);
    if (dv_str_eq(name, DV_STR("preface"))) {
        dv_buf_add_c(&wire->bytes, NGHTTP2_CLIENT_MAGIC);
        return;
    }
    if (dv_str_eq(name, DV_STR("frame"))) {
        add_raw(wire, rest);
        return;
    }
    for (size_t i = 0; i < DV_COUNT(kinds); i++) {
        if (dv_str_eq(name, dv_str_from_c(kinds[i].name))) {
            add_known(wire, &kinds[i], flags, rest);
            return;
        }
    }
    fail_msg("no frame: %.*s", DV_FMT(line));
}

dv_str wire_bytes(struct wire *wire, const char *frames)
{
    dv_str rest = dv_str_from_c(frames);
    dv_str line;

    dv_buf_clear(&wire->bytes);
    while (rest.n > 0 && dv_str_split(&rest, '\n', &line))
        add_line(wire, line);
    return dv_buf_str(&wire->bytes);
}

/* ---- to text ---- */

static uint32_t u32_at(dv_str bytes, size_t at)
{
    uint32_t value = 0;

    assert_true(at + 4 <= bytes.n);
    for (size_t i = 0; i < 4; i++)
        value = value << 8 | (uint8_t)bytes.p[at + i];
    return value;
}

static void print_block(struct wire *wire, dv_str block, struct dv_buf *text)
{
    const char *separator = "";
    int flags = 0;

    while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
        nghttp2_nv field;
        ssize_t n = nghttp2_hd_inflate_hd2(wire->inflater, &field, &flags, (const uint8_t *)block.p,
                                           block.n, 1);

        assert_true(n >= 0);
        block = dv_str_slice(block, (size_t)n, block.n);
        if (flags & NGHTTP2_HD_INFLATE_EMIT) {
            dv_buf_printf(text, "%s%.*s=%.*s", separator, (int)field.namelen,
                          (const char *)field.name, (int)field.valuelen, (const char *)field.value);
            separator = "|";
        }
    }
    assert_int_equal(nghttp2_hd_inflate_end_headers(wire->inflater), 0);
}

static void print_payload(struct wire *wire, uint8_t type, dv_str payload, struct dv_buf *text)
{
    switch (type) {
    case NGHTTP2_HEADERS:
        print_block(wire, payload, text);
        break;
    case NGHTTP2_RST_STREAM:
        dv_buf_printf(text, "%s", nghttp2_http2_strerror(u32_at(payload, 0)));
        break;
    case NGHTTP2_GOAWAY:
        dv_buf_printf(text, "%" PRIu32 " %s", u32_at(payload, 0),
                      nghttp2_http2_strerror(u32_at(payload, 4)));
        break;
    case NGHTTP2_DATA:
        dv_buf_printf(text, "of %zu bytes", payload.n);
        break;
    default:
        for (size_t i = 0; i < payload.n; i++)
            dv_buf_printf(text, "%02x", (unsigned)(uint8_t)payload.p[i]);
        break;
    }
}

static const char *name_of(uint8_t type)
{
    for (size_t i = 0; i < DV_COUNT(kinds); i++) {
        if (kinds[i].type == type)
            return kinds[i].name;
    }
    return "unknown";
}

static void print_frame(struct wire *wire, uint8_t type, uint8_t flags, uint32_t stream,
                        dv_str payload, struct dv_buf *text)
{
    bool has_end = type == NGHTTP2_HEADERS || type == NGHTTP2_DATA;

    dv_buf_add_c(text, name_of(type));
    if (has_end && flags & NGHTTP2_FLAG_END_STREAM)
        dv_buf_add_c(text, "+end");
    if (type == NGHTTP2_PING && flags & NGHTTP2_FLAG_ACK)
        dv_buf_add_c(text, "+ack");
    if (type == NGHTTP2_HEADERS)
        assert_true(flags & NGHTTP2_FLAG_END_HEADERS); /* none of ours is so long */
    if (stream)
        dv_buf_printf(text, " %" PRIu32, stream);
    dv_buf_add_char(text, ' ');
    print_payload(wire, type, payload, text);
    dv_buf_add_char(text, '\n');
}

void wire_print(struct wire *wire, dv_str bytes, struct dv_buf *frames)
{
    if (dv_str_starts_with(bytes, DV_STR(NGHTTP2_CLIENT_MAGIC)))
        bytes = dv_str_slice(bytes, NGHTTP2_CLIENT_MAGIC_LEN, bytes.n);
    while (bytes.n > 0) {
        size_t n;
        uint8_t type;

        assert_true(bytes.n >= FRAME_HEAD_BYTES);
        n = u32_at(bytes, 0) >> 8;
        type = (uint8_t)bytes.p[3];
        assert_true(n <= bytes.n - FRAME_HEAD_BYTES);
        if (type != NGHTTP2_SETTINGS && type != NGHTTP2_WINDOW_UPDATE)
            print_frame(wire, type, (uint8_t)bytes.p[4], u32_at(bytes, 5) & 0x7fffffff,
                        dv_str_slice(bytes, FRAME_HEAD_BYTES, FRAME_HEAD_BYTES + n), frames);
        bytes = dv_str_slice(bytes, FRAME_HEAD_BYTES + n, bytes.n);
    }
}

/* ---- with a session ---- */

void wire_meet_server(struct wire *wire, struct side *server, const struct dv_h2_options *options)
{
    struct dv_h2_options defaults = dv_h2_default_options(true);

    wire_init(wire);
    side_init(server, options ? options : &defaults);
    server->on_message = side_echo;
    (void)wire_hear(wire, server);
    wire_say(wire, server, "preface\nsettings\nsettings+ack");
    assert_string_equal(wire_hear(wire, server), "");
    assert_events(server, "ready\n");
}

void wire_meet_client(struct wire *wire, struct side *client, const struct dv_h2_options *options)
{
    struct dv_h2_options defaults = dv_h2_default_options(false);

    wire_init(wire);
    side_init(client, options ? options : &defaults);
    (void)wire_hear(wire, client);
    wire_say(wire, client, "settings\nsettings+ack");
    assert_string_equal(wire_hear(wire, client), "");
    assert_events(client, "ready\n");
}

void wire_say(struct wire *wire, struct side *side, const char *frames)
{
    struct dv_err err;

    assert_ok(dv_h2_receive(side->h2, wire_bytes(wire, frames), &err), &err);
}

const char *wire_hear(struct wire *wire, struct side *side)
{
    dv_str bytes;

    dv_buf_clear(&wire->heard);
    while (dv_h2_pull(side->h2, &bytes))
        wire_print(wire, bytes, &wire->heard);
    return dv_buf_c(&wire->heard);
}

void wire_part(struct wire *wire, struct side *side)
{
    side_fini(side);
    wire_fini(wire);
}
