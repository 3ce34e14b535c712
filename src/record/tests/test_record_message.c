#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "pb/pb.h"
#include "record/message.h"
#include "record/record.h"
#include "support/dvtest.h"

#define TEXT_BYTES_MAX 65536u
#define ALLOCATE "/v1beta1.DevicePlugin/Allocate"
#define PREPARE "/v1alpha3.Node/NodePrepareResources"

/* An answer to Allocate: envs, annotations, a device, and a field 9 that nobody knows. */
static void add_answer(struct dv_buf *bytes)
{
    size_t container = dv_pb_begin(bytes, 1);
    size_t inner = dv_pb_begin(bytes, 1);

    dv_pb_add_bytes(bytes, 1, DV_STR("TOKEN"));
    dv_pb_add_bytes(bytes, 2, DV_STR("secret-1"));
    dv_pb_end(bytes, inner);
    inner = dv_pb_begin(bytes, 4);
    dv_pb_add_bytes(bytes, 1, DV_STR("note"));
    dv_pb_add_bytes(bytes, 2, DV_STR("secret-2"));
    dv_pb_end(bytes, inner);
    inner = dv_pb_begin(bytes, 3);
    dv_pb_add_bytes(bytes, 1, DV_STR("/dev/gpu0"));
    dv_pb_end(bytes, inner);
    dv_pb_add_bytes(bytes, 9, DV_STR("secret-3"));
    dv_pb_add_number(bytes, 10, 42);
    dv_pb_end(bytes, container);
}

static void prints_what_was_sent(void **state)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf bytes;
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    struct dv_record record = {.kind = DV_RECORD_MESSAGE, .method = DV_STR(ALLOCATE)};

    (void)state;
    dv_buf_init(&bytes, TEXT_BYTES_MAX);
    dv_buf_init(&text, TEXT_BYTES_MAX);
    add_answer(&bytes);
    record.message = dv_buf_str(&bytes);
    dv_record_print_message(&record, &text);
    assert_str(dv_buf_str(&text), "{\"container_responses\":[{\"envs\":{\"TOKEN\":\"secret-1\"},"
                                  "\"devices\":[{\"container_path\":\"/dev/gpu0\"}],"
                                  "\"annotations\":{\"note\":\"secret-2\"},"
                                  "\"[unknown]\":[{\"field\":9,\"bytes\":\"c2VjcmV0LTM=\"},"
                                  "{\"field\":10,\"varint\":42}]}]}");
}

static void prints_what_it_cannot_decode(void **state)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    struct dv_record record = {
        .kind = DV_RECORD_MESSAGE, .method = DV_STR("/a.B/C"), .message = DV_STR("abc")};

    (void)state;
    dv_buf_init(&text, TEXT_BYTES_MAX);
    dv_record_print_message(&record, &text);
    assert_str(dv_buf_str(&text), "{\"[undecoded]\":\"YWJj\",\"[why]\":\"the method /a.B/C is not "
                                  "known\"}");
    dv_buf_clear(&text);
    record.method = DV_STR(ALLOCATE);
    record.message = DV_STR("\xff\xff");
    dv_record_print_message(&record, &text);
    assert_true(dv_str_starts_with(dv_buf_str(&text), DV_STR("{\"[undecoded]\":\"//8=\"")));
    dv_buf_clear(&text);
    record.message_bytes = 100;
    dv_record_print_message(&record, &text);
    assert_non_null(strstr(dv_buf_c(&text), "only 2 of 100 bytes were kept"));
}

/* The secrets that are left in the message when these are blanked. */
static void blanks_what_it_is_told(void **state)
{
    static const struct {
        const char *list;
        const char *left;
    } rows[] = {
        {"env",             "23" },
        {"annotations",     "13" },
        {"unknown",         "12" },
        {"env,annotations", "3"  },
        {"config",          "123"},
        {"all",             ""   },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf bytes;

    (void)state;
    dv_buf_init(&bytes, TEXT_BYTES_MAX);
    add_answer(&bytes);
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_record record = {
            .kind = DV_RECORD_MESSAGE, .method = DV_STR(ALLOCATE), .message = dv_buf_str(&bytes)};
        const char *left;
        uint32_t blanks;
        struct dv_err err;
        char found[4] = "";
        size_t n = 0;

        assert_ok(dv_record_blanks_parse(dv_str_from_c(rows[i].list), &blanks, &err), &err);
        dv_record_blank(&record, blanks, arena);
        left = dv_str_to_c(record.message, arena);
        for (int c = '1'; c <= '3'; c++) {
            char secret[] = "secret-?";

            secret[7] = (char)c;
            if (dv_str_find(record.message, dv_str_from_c(secret)) < record.message.n)
                found[n++] = (char)c;
        }
        assert_string_equal(found, rows[i].left);
        assert_int_equal(record.is_blanked, n < 3);
        assert_non_null(strstr(left, "TOKEN")); /* names stay */
    }
}

static void blanks_opaque_config(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf bytes;
    struct dv_record record = {.kind = DV_RECORD_CALL, .is_sent = true, .method = DV_STR(PREPARE)};
    size_t claim;

    (void)state;
    dv_buf_init(&bytes, TEXT_BYTES_MAX);
    claim = dv_pb_begin(&bytes, 1);
    dv_pb_add_bytes(&bytes, 2, DV_STR("uid-1"));
    dv_pb_add_bytes(&bytes, 4, DV_STR("opaque secret"));
    dv_pb_end(&bytes, claim);
    record.message = dv_buf_str(&bytes);
    dv_record_blank(&record, DV_BLANK_CONFIG, arena);
    assert_true(record.is_blanked);
    assert_int_equal(dv_str_find(record.message, DV_STR("secret")), record.message.n);
    assert_true(dv_str_find(record.message, DV_STR("uid-1")) < record.message.n);
}

static void blanks_all_of_what_it_cannot_decode(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_record record = {
        .kind = DV_RECORD_MESSAGE, .method = DV_STR("/a.B/C"), .message = DV_STR("secret")};

    (void)state;
    dv_record_blank(&record, DV_BLANK_ENV, arena);
    assert_true(record.is_blanked);
    assert_int_equal(record.message.n, 0);
    assert_int_equal(record.message_bytes, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints_what_was_sent),
        cmocka_unit_test(prints_what_it_cannot_decode),
        cmocka_unit_test(blanks_what_it_is_told),
        cmocka_unit_test(blanks_opaque_config),
        cmocka_unit_test(blanks_all_of_what_it_cannot_decode),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
