/* SPDY on the wire: frames as the draft has them, and peers that break its rules or mean harm. */
#include "support/dvtest.h"

#include <malloc.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/defs.h"
#include "upgrade/spdy.h"
#include "upgrade/spdy/spdy_header.h"
#include "upgrade/tests/test_spdy_side.h"

static void the_dictionary_is_that_of_the_draft(void **state)
{
    unsigned char dictionary[DV_SPDY_DICTIONARY_BYTES];

    (void)state;
    dv_spdy_dictionary(dictionary);
    assert_int_equal(adler32(1, dictionary, sizeof(dictionary)), 0xe3c6a7c2);
}

/* A peer that packs header blocks with zlib's own values, as Go does. */
struct peer {
    z_stream zlib;
    struct dv_buf bytes;
};

static void peer_init(struct peer *peer)
{
    unsigned char dictionary[DV_SPDY_DICTIONARY_BYTES];

    *peer = (struct peer){0};
    dv_spdy_dictionary(dictionary);
    assert_int_equal(deflateInit(&peer->zlib, 9), Z_OK);
    assert_int_equal(deflateSetDictionary(&peer->zlib, dictionary, sizeof(dictionary)), Z_OK);
    dv_buf_init(&peer->bytes, 64u << 20);
}

static void peer_fini(struct peer *peer)
{
    (void)deflateEnd(&peer->zlib);
    dv_buf_fini(&peer->bytes);
}

static void add_u32(struct dv_buf *out, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        dv_buf_add_char(out, (char)(value >> shift));
}

static void add_text(struct dv_buf *out, const char *text)
{
    add_u32(out, (uint32_t)strlen(text));
    dv_buf_add_c(out, text);
}

static void add_packed(struct peer *peer, dv_str block)
{
    size_t size = deflateBound(&peer->zlib, block.n) + 64;
    unsigned char *packed = test_malloc(size);

    peer->zlib.next_in = (unsigned char *)(uintptr_t)block.p;
    peer->zlib.avail_in = (unsigned)block.n;
    peer->zlib.next_out = packed;
    peer->zlib.avail_out = (unsigned)size;
    assert_int_equal(deflate(&peer->zlib, Z_SYNC_FLUSH), Z_OK);
    dv_buf_add(&peer->bytes, (dv_str){(char *)packed, size - peer->zlib.avail_out});
    test_free(packed);
}

/* A SYN_STREAM with a block that is given unpacked. */
static void add_syn(struct peer *peer, uint32_t id, uint8_t flags, dv_str block)
{
    size_t begin = peer->bytes.n;
    size_t n;

    add_u32(&peer->bytes, 0x80030001);
    add_u32(&peer->bytes, 0);
    add_u32(&peer->bytes, id);
    add_u32(&peer->bytes, 0);
    dv_buf_add(&peer->bytes, DV_STR("\0\0"));
    add_packed(peer, block);
    n = peer->bytes.n - begin - 8;
    peer->bytes.p[begin + 4] = (char)flags;
    peer->bytes.p[begin + 5] = (char)(n >> 16);
    peer->bytes.p[begin + 6] = (char)(n >> 8);
    peer->bytes.p[begin + 7] = (char)n;
}

static const struct dv_spdy_options as_server;

static void streams_of_a_go_client_are_understood(void **state)
{
    struct dv_buf block;
    struct side server;
    struct peer peer;
    struct dv_err err;
    dv_str bytes;

    (void)state;
    side_init(&server, &as_server);
    peer_init(&peer);
    dv_buf_init(&block, 1000);
    add_u32(&block, 3);
    add_text(&block, "streamtype");
    add_text(&block, "error");
    add_text(&block, "port");
    add_text(&block, "80");
    add_text(&block, "requestid");
    add_text(&block, "0");
    for (uint32_t id = 1; id < 1000; id += 2) /* the dictionary grows with the connection */
        add_syn(&peer, id, 0, dv_buf_str(&block));
    server.is_quiet = true;
    assert_ok(dv_spdy_receive(server.spdy, dv_buf_str(&peer.bytes), &err), &err);
    assert_int_equal(dv_spdy_n_streams(server.spdy), 500);
    assert_true(dv_spdy_pull(server.spdy, &bytes));
    dv_buf_fini(&block);
    peer_fini(&peer);
    side_fini(&server);
}

static void blocks_that_are_none_end_the_session(void **state)
{
    static const struct {
        dv_str block;
        const char *why;
    } rows[] = {
        {DV_STR_INIT(""),                                             "without a count"    },
        {DV_STR_INIT("\0\0\0"),                                       "without a count"    },
        {DV_STR_INIT("\0\0\0\1"),                                     "within a field"     },
        {DV_STR_INIT("\0\0\0\1\0\0\0\1a"),                            "within a field"     },
        {DV_STR_INIT("\0\0\0\1\0\0\0\1a\0\0\0\2b"),                   "within a field"     },
        {DV_STR_INIT("\0\0\0\1\xff\xff\xff\xff"
                     "a"),
         "within a field"                                                                  },
        {DV_STR_INIT("\0\0\0\1\0\0\0\0\0\0\0\1b"),                    "empty, in upper"    },
        {DV_STR_INIT("\0\0\0\1\0\0\0\1A\0\0\0\1b"),                   "empty, in upper"    },
        {DV_STR_INIT("\0\0\0\2\0\0\0\1a\0\0\0\1b\0\0\0\1a\0\0\0\1b"), "there twice"        },
        {DV_STR_INIT("\0\0\0\0x"),                                    "goes on"            },
        {DV_STR_INIT("\0\0\0\x41"),                                   "of 65 fields"       },
        {DV_STR_INIT("\xff\xff\xff\xff"),                             "of 4294967295 field"},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct side server;
        struct peer peer;
        struct dv_err err;

        side_init(&server, &as_server);
        peer_init(&peer);
        add_syn(&peer, 1, 0, rows[i].block);
        if (dv_spdy_receive(server.spdy, dv_buf_str(&peer.bytes), &err))
            fail_msg("row %zu is taken", i);
        assert_err(&err, err.code, rows[i].why);
        assert_true(dv_spdy_is_over(server.spdy));
        assert_events(&server, "");
        peer_fini(&peer);
        side_fini(&server);
    }
}

/* Ten megabytes of zeros are ten kilobytes on the wire. */
static void a_block_that_explodes_costs_little(void **state)
{
    static char zeros[10u << 20];
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    struct side server;
    struct peer peer;
    struct dv_err err;

    (void)state;
    peer_init(&peer);
    side_init(&server, &as_server);
    add_syn(&peer, 1, 0, (dv_str){zeros, sizeof(zeros)});
    assert_false(dv_spdy_receive(server.spdy, dv_buf_str(&peer.bytes), &err));
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "larger than 16384 bytes");
    assert_true(mallinfo2().uordblks + mallinfo2().hblkhd < before + (2u << 20));
    peer_fini(&peer);
    side_fini(&server);
}

static void frames_that_cannot_be_end_the_session(void **state)
{
    static const struct {
        dv_str bytes;
        const char *why;
    } rows[] = {
        {DV_STR_INIT("\x80\2\0\1\0\0\0\0"),                           "another version"   },
        {DV_STR_INIT("\x80\3\0\1\0\0\0\x09"),                         "has 9 bytes"       },
        {DV_STR_INIT("\x80\3\0\1\0\xff\xff\xff"),                     "has 16777215 bytes"},
        {DV_STR_INIT("\x80\3\0\2\0\0\0\0"),                           "has 0 bytes"       },
        {DV_STR_INIT("\x80\3\0\3\0\0\0\7"),                           "has 7 bytes"       },
        {DV_STR_INIT("\x80\3\0\4\0\0\0\0"),                           "has 0 bytes"       },
        {DV_STR_INIT("\x80\3\0\4\0\0\0\4\0\0\0\1"),                   "have 1 entries"    },
        {DV_STR_INIT("\x80\3\0\4\0\0\x10\0"),                         "has 4096 bytes"    },
        {DV_STR_INIT("\x80\3\0\6\0\0\0\5"),                           "has 5 bytes"       },
        {DV_STR_INIT("\x80\3\0\7\0\0\0\4"),                           "has 4 bytes"       },
        {DV_STR_INIT("\x80\3\0\x09\0\0\0\4"),                         "has 4 bytes"       },
        {DV_STR_INIT("\x80\3\0\1\0\0\0\x0e\0\0\0\1\0\0\0\0\0\0garb"), "cannot be unpacked"},
        {DV_STR_INIT("GET / HTTP/1.1\r\n\r\n"),                       NULL                },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct side server;
        struct dv_err err;
        dv_str bytes;

        side_init(&server, &as_server);
        if (dv_spdy_receive(server.spdy, rows[i].bytes, &err)) {
            if (rows[i].why)
                fail_msg("row %zu is taken", i);
        } else {
            assert_err(&err, err.code, rows[i].why);
            assert_true(dv_spdy_pull(server.spdy, &bytes)); /* a GOAWAY with PROTOCOL_ERROR */
            assert_int_equal(bytes.n, 16);
            assert_memory_equal(bytes.p, "\x80\3\0\7\0\0\0\x08\0\0\0\0\0\0\0\1", 16);
            assert_false(dv_spdy_receive(server.spdy, DV_STR("x"), &err));
        }
        side_fini(&server);
    }
}

#define EMPTY_BLOCK DV_STR("\0\0\0\0")

static void ids_must_grow_and_be_the_peers(void **state)
{
    static const struct {
        uint32_t ids[2];
        const char *why;
    } rows[] = {
        {{2, 4}, "cannot open stream 2"},
        {{0, 1}, "cannot open stream 0"},
        {{3, 1}, "comes after 3"       },
        {{1, 1}, "comes after 1"       },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct side server;
        struct peer peer;
        struct dv_err err;

        side_init(&server, &as_server);
        peer_init(&peer);
        add_syn(&peer, rows[i].ids[0], 0, EMPTY_BLOCK);
        add_syn(&peer, rows[i].ids[1], 0, EMPTY_BLOCK);
        assert_false(dv_spdy_receive(server.spdy, dv_buf_str(&peer.bytes), &err));
        assert_err(&err, DV_INVALID_ARGUMENT, rows[i].why);
        peer_fini(&peer);
        side_fini(&server);
    }
}

static void frames_for_streams_that_are_not_are_answered(void **state)
{
    static const struct {
        dv_str says;
        dv_str hears;
        const char *events;
    } rows[] = {
  /* data for a stream that never was, and data after the end */
        {DV_STR_INIT("\0\0\0\7\0\0\0\1x"),                              DV_STR_INIT("\x80\3\0\3\0\0\0\x08\0\0\0\7\0\0\0\2"), ""            },
        {DV_STR_INIT("\0\0\0\1\1\0\0\1x\0\0\0\1\0\0\0\1y"),
         DV_STR_INIT("\x80\3\0\3\0\0\0\x08\0\0\0\1\0\0\0\x09"),
         "1 data x\n1 finished\n1 ended CANCELLED\n"                                                                                       },
 /* a reset of nothing, window updates, unknown frames and settings mean nothing */
        {DV_STR_INIT("\x80\3\0\3\0\0\0\x08\0\0\0\7\0\0\0\1"),           DV_STR_INIT(""),                                     ""            },
        {DV_STR_INIT("\x80\3\0\x09\0\0\0\x08\0\0\0\1\0\0\0\1"),         DV_STR_INIT(""),                                     ""            },
        {DV_STR_INIT("\x80\3\0\x63\0\0\0\3abc"),                        DV_STR_INIT(""),                                     ""            },
        {DV_STR_INIT("\x80\3\0\4\0\0\0\x0c\0\0\0\1\0\0\0\4\0\0\0\x64"), DV_STR_INIT(""),                                     ""            },
 /* pings of the client's are echoed */
        {DV_STR_INIT("\x80\3\0\6\0\0\0\4\0\0\0\5"),                     DV_STR_INIT("\x80\3\0\6\0\0\0\4\0\0\0\5"),           ""            },
        {DV_STR_INIT("\x80\3\0\6\0\0\0\4\0\0\0\6"),                     DV_STR_INIT(""),                                     "pong\n"      },
        {DV_STR_INIT("\x80\3\0\7\0\0\0\x08\0\0\0\0\0\0\0\0"),           DV_STR_INIT(""),                                     "going away\n"},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct side server;
        struct peer peer;
        struct dv_err err;
        dv_str bytes = DV_STR("");

        side_init(&server, &as_server);
        server.has_reply = false;
        peer_init(&peer);
        add_syn(&peer, 1, 0, EMPTY_BLOCK);
        assert_ok(dv_spdy_receive(server.spdy, dv_buf_str(&peer.bytes), &err), &err);
        dv_buf_clear(&server.events);
        assert_ok(dv_spdy_receive(server.spdy, rows[i].says, &err), &err);
        (void)dv_spdy_pull(server.spdy, &bytes);
        if (!dv_str_eq(bytes, rows[i].hears))
            fail_msg("row %zu: %zu bytes", i, bytes.n);
        assert_events(&server, rows[i].events);
        peer_fini(&peer);
        side_fini(&server);
    }
}

static void flags_of_the_first_frame_count(void **state)
{
    static const struct {
        uint8_t flags;
        const char *events;
    } rows[] = {
        {0, "1 opened\n"                        },
        {1, "1 opened\n1 finished\n"            },
        {2, "1 opened\n"                        },
        {3, "1 opened\n1 finished\n1 ended OK\n"},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct side server;
        struct peer peer;
        struct dv_err err;

        side_init(&server, &as_server);
        peer_init(&peer);
        add_syn(&peer, 1, rows[i].flags, EMPTY_BLOCK);
        assert_ok(dv_spdy_receive(server.spdy, dv_buf_str(&peer.bytes), &err), &err);
        assert_events(&server, rows[i].events);
        peer_fini(&peer);
        side_fini(&server);
    }
}

static void floods_are_bounded(void **state)
{
    struct dv_spdy_options options = {.streams_max = 10};
    size_t before;
    struct side server;
    struct peer peer;
    struct dv_err err;
    bool is_fine = true;

    (void)state;
    peer_init(&peer);
    side_init(&server, &options);
    before = mallinfo2().uordblks;
    server.is_quiet = true;
    for (uint32_t id = 1; is_fine && id < 2000000; id += 2) { /* it never reads */
        dv_buf_clear(&peer.bytes);
        add_syn(&peer, id, 0, EMPTY_BLOCK);
        is_fine = dv_spdy_receive(server.spdy, dv_buf_str(&peer.bytes), &err);
        assert_true(dv_spdy_n_streams(server.spdy) <= 10);
    }
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "does not read its answers");
    assert_true(mallinfo2().uordblks < before + (4u << 20));
    side_fini(&server);
    side_init(&server, &as_server);
    is_fine = true;
    for (int i = 0; is_fine && i < 1000000; i++)
        is_fine = dv_spdy_receive(server.spdy, DV_STR("\x80\3\0\6\0\0\0\4\0\0\0\5"), &err);
    assert_err(&err, DV_RESOURCE_EXHAUSTED, "does not read its answers");
    side_fini(&server);
    peer_fini(&peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_dictionary_is_that_of_the_draft),
        cmocka_unit_test(streams_of_a_go_client_are_understood),
        cmocka_unit_test(blocks_that_are_none_end_the_session),
        cmocka_unit_test(a_block_that_explodes_costs_little),
        cmocka_unit_test(frames_that_cannot_be_end_the_session),
        cmocka_unit_test(ids_must_grow_and_be_the_peers),
        cmocka_unit_test(frames_for_streams_that_are_not_are_answered),
        cmocka_unit_test(flags_of_the_first_frame_count),
        cmocka_unit_test(floods_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
