#include "support/dvtest.h"

#include <string.h>

#include "base/arena.h"
#include "http1/http1.h"

#define HEAD                                                                                       \
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: SPDY/3.1\r\nX-Empty:\r\nContent-Length: "        \
    "7\r\n\r\n"

static void a_head_is_parsed_when_it_is_complete(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str bytes = DV_STR(HEAD "\x80\x03 and so on");
    struct dv_h1_reply reply;
    struct dv_err err;

    (void)state;
    for (size_t n = 0; n < sizeof(HEAD) - 1; n++) {
        assert_true(dv_h1_parse_reply(dv_str_slice(bytes, 0, n), arena, &reply, &err));
        assert_int_equal(reply.head_bytes, 0);
    }
    assert_true(dv_h1_parse_reply(bytes, arena, &reply, &err));
    assert_int_equal(reply.head_bytes, sizeof(HEAD) - 1);
    assert_int_equal(reply.status, 101);
    assert_int_equal(reply.n_fields, 3);
    assert_str(reply.fields[0].name, "Upgrade");
    assert_str(reply.fields[0].value, "SPDY/3.1");
    assert_str(reply.fields[1].value, "");
    assert_true(reply.has_length);
    assert_int_equal(reply.length, 7);
}

static void what_is_no_answer_is_refused(void **state)
{
    static const char *const cases[] = {
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "SSH-2.0-OpenSSH\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\na: b\r\n folded\r\n\r\n",
        "HTTP/1.1 200 OK\r\na: b\nc: d\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "\r\n\r\n",
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_h1_reply reply;
    struct dv_err err;

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        assert_false(dv_h1_parse_reply(dv_str_from_c(cases[i]), arena, &reply, &err));
        assert_int_equal(err.code, DV_INTERNAL);
    }
}

static void a_head_without_an_end_has_a_limit(void **state)
{
    static char bytes[DV_H1_HEAD_BYTES_MAX + 1];
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_h1_reply reply;
    struct dv_err err;

    (void)state;
    memset(bytes, 'a', sizeof(bytes));
    assert_true(dv_h1_parse_reply((dv_str){bytes, sizeof(bytes) - 1}, arena, &reply, &err));
    assert_false(dv_h1_parse_reply((dv_str){bytes, sizeof(bytes)}, arena, &reply, &err));
    assert_int_equal(err.code, DV_RESOURCE_EXHAUSTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_is_parsed_when_it_is_complete),
        cmocka_unit_test(what_is_no_answer_is_refused),
        cmocka_unit_test(a_head_without_an_end_has_a_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
