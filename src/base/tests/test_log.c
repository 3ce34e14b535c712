#include "support/dvtest.h"

#include "base/buf.h"
#include "base/log.h"

static void keep_line(void *ctx, enum dv_log_level level, dv_str line)
{
    struct dv_buf *buf = ctx;

    (void)level;
    dv_buf_clear(buf);
    dv_buf_add(buf, line);
}

static int start(void **state)
{
    static struct dv_buf buf;

    dv_buf_init(&buf, 1u << 20);
    *state = &buf;
    return 0;
}

static int end(void **state)
{
    dv_buf_fini(*state);
    dv_log_set_sink(&(struct dv_log_sink){0});
    return 0;
}

static void log_to(struct dv_buf *buf, enum dv_log_format format)
{
    struct dv_log_sink sink = {
        .write = keep_line, .ctx = buf, .level = DV_LOG_INFO, .format = format};

    dv_buf_clear(buf);
    dv_log_set_sink(&sink);
}

static void text_lines_are_key_value(void **state)
{
    struct dv_buf *buf = *state;
    struct dv_err err;

    log_to(buf, DV_LOG_TEXT);
    (void)dv_fail(&err, DV_UNAVAILABLE, "socket \"a\": gone");
    dv_log(DV_LOG_WARN, "plugin: lost", DV_F_STR("socket", DV_STR("/run/a.sock")), DV_F_U64("n", 7),
           DV_F_I64("delta", -7), DV_F_BOOL("again", true), DV_F_REQUEST(12), DV_F_CODE(&err),
           DV_F_ERR(&err), DV_F_C("empty", ""));
    assert_string_equal(dv_buf_c(buf),
                        "warn plugin: lost socket=/run/a.sock n=7 delta=-7 again=true request=12 "
                        "code=UNAVAILABLE error=\"socket \\\"a\\\": gone\" empty=\"\"\n");
}

static void json_lines_are_json(void **state)
{
    struct dv_buf *buf = *state;

    log_to(buf, DV_LOG_JSON);
    dv_log(DV_LOG_INFO, "no fields");
    assert_string_equal(dv_buf_c(buf), "{\"level\":\"info\",\"msg\":\"no fields\"}\n");
    dv_log(DV_LOG_INFO, "m", DV_F_STR("s", DV_STR("a\n\x01\xff\"")), DV_F_U64("u", UINT64_MAX));
    assert_string_equal(dv_buf_c(buf), "{\"level\":\"info\",\"msg\":\"m\",\"s\":\"a\\n\\u0001"
                                       "\xef\xbf\xbd\\\"\",\"u\":18446744073709551615}\n");
}

static void a_line_is_one_line_whatever_a_value_holds(void **state)
{
    struct dv_buf *buf = *state;

    log_to(buf, DV_LOG_TEXT);
    dv_log(DV_LOG_INFO, "m", DV_F_STR("s", DV_STR("a\nerror forged=1\r\x1b[2J")));
    assert_string_equal(dv_buf_c(buf), "info m s=\"a\\nerror forged=1\\r\\u001b[2J\"\n");
}

static void secrets_are_never_printed(void **state)
{
    static const char *const keys[] = {"token",         "admin_token",  "Authorization",
                                       "user_password", "clientSecret", "Set-Cookie"};
    struct dv_buf *buf = *state;

    for (size_t i = 0; i < DV_COUNT(keys); i++) {
        for (int format = DV_LOG_TEXT; format <= DV_LOG_JSON; format++) {
            log_to(buf, (enum dv_log_format)format);
            dv_log(DV_LOG_INFO, "m", DV_F_C(keys[i], "hunter2"), DV_F_U64(keys[i], 4711),
                   DV_F_C("other", "shown"));
            assert_int_equal(dv_str_find(dv_buf_str(buf), DV_STR("hunter2")), buf->n);
            assert_int_equal(dv_str_find(dv_buf_str(buf), DV_STR("4711")), buf->n);
            assert_true(dv_str_find(dv_buf_str(buf), DV_STR("[redacted]")) < buf->n);
            assert_true(dv_str_find(dv_buf_str(buf), DV_STR("shown")) < buf->n);
        }
    }
}

static void values_are_bounded(void **state)
{
    struct dv_buf *buf = *state;
    static char text[100000];

    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = "\xc3\xa4"[i % 2];
    log_to(buf, DV_LOG_TEXT);
    dv_log(DV_LOG_INFO, "m", DV_F_STR("s", ((dv_str){text, sizeof(text)})));
    assert_in_range(buf->n, 1024, 1100);
    assert_true(dv_str_is_utf8(dv_buf_str(buf)));
}

static void levels_are_honoured_and_parsed(void **state)
{
    struct dv_buf *buf = *state;
    enum dv_log_level level;

    log_to(buf, DV_LOG_TEXT);
    dv_log(DV_LOG_DEBUG, "not shown");
    assert_int_equal(buf->n, 0);
    assert_true(dv_log_level_parse(DV_STR("trace"), &level));
    assert_int_equal(level, DV_LOG_TRACE);
    assert_false(dv_log_level_parse(DV_STR("loud"), &level));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(text_lines_are_key_value, start, end),
        cmocka_unit_test_setup_teardown(json_lines_are_json, start, end),
        cmocka_unit_test_setup_teardown(a_line_is_one_line_whatever_a_value_holds, start, end),
        cmocka_unit_test_setup_teardown(secrets_are_never_printed, start, end),
        cmocka_unit_test_setup_teardown(values_are_bounded, start, end),
        cmocka_unit_test_setup_teardown(levels_are_honoured_and_parsed, start, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
