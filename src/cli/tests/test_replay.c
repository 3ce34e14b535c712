/* Which recorded call a new one is like, what its answer becomes, and where two messages differ. */
#include "support/dvtest.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/vec.h"
#include "cli/record/exchange.h"
#include "cli/record/json_diff.h"
#include "cli/record/tape.h"
#include "pb/pb.h"
#include "record/message.h"
#include "record/record.h"

#define BYTES_MAX 4096u
#define PREPARE "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"
#define DRIVER "gpu.example.com"

static dv_str request_for(dv_str name, dv_str uid, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf bytes;
    size_t claim;

    dv_buf_init(&bytes, BYTES_MAX);
    claim = dv_pb_begin(&bytes, 1);
    dv_pb_add_bytes(&bytes, 1, DV_STR("default"));
    dv_pb_add_bytes(&bytes, 2, uid);
    dv_pb_add_bytes(&bytes, 3, name);
    dv_pb_end(&bytes, claim);
    return dv_str_copy(dv_buf_str(&bytes), arena);
}

static dv_str answer_for(dv_str uid, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf bytes;
    size_t entry, value, device;

    dv_buf_init(&bytes, BYTES_MAX);
    entry = dv_pb_begin(&bytes, 1);
    dv_pb_add_bytes(&bytes, 1, uid);
    value = dv_pb_begin(&bytes, 2);
    device = dv_pb_begin(&bytes, 1);
    dv_pb_add_bytes(&bytes, 4, dv_str_printf(arena, "%s/claim=%.*s-0", DRIVER, DV_FMT(uid)));
    dv_pb_end(&bytes, device);
    dv_pb_end(&bytes, value);
    dv_pb_end(&bytes, entry);
    return dv_str_copy(dv_buf_str(&bytes), arena);
}

static void add_call(struct dv_tape *tape, uint64_t call, dv_str name, dv_str uid)
{
    const struct dv_record r = {
        .kind = DV_RECORD_CALL,
        .call = call,
        .is_sent = true,
        .name = DV_STR(DRIVER),
        .method = DV_STR(PREPARE),
        .message = request_for(name, uid, tape->arena),
    };
    struct dv_record answer = r;

    answer.kind = DV_RECORD_MESSAGE;
    answer.is_sent = false;
    answer.message = answer_for(uid, tape->arena);
    *dv_vec_add(&tape->records) = (struct dv_tape_record){.r = r};
    *dv_vec_add(&tape->records) = (struct dv_tape_record){.r = answer};
}

/* The number of the call that answers, and the answer as JSON. */
static uint64_t ask(struct dv_exchanges *exchanges, const char *name, const char *uid,
                    struct dv_buf *text)
{
    struct dv_exchange_pairs pairs = {0};
    struct dv_exchange *exchange;
    struct dv_record answer = {.kind = DV_RECORD_MESSAGE, .method = DV_STR(PREPARE)};
    struct dv_err err;

    exchange = dv_exchange_choose(
        exchanges, DV_STR(PREPARE),
        request_for(dv_str_from_c(name), dv_str_from_c(uid), exchanges->arena), &pairs);
    assert_non_null(exchange);
    exchange->n_used++;
    assert_ok(dv_exchange_translate(exchange->answers.v[0].record, &pairs, exchanges->arena,
                                    &answer.message, &err),
              &err);
    dv_buf_clear(text);
    dv_record_print_message(&answer, text);
    dv_vec_fini(&pairs.v);
    return exchange->start->r.call;
}

static void a_call_is_answered_as_the_one_that_is_most_like_it(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    struct dv_exchanges exchanges;
    struct dv_tape tape;
    struct dv_exchange_pairs pairs = {0};

    (void)state;
    dv_buf_init(&text, BYTES_MAX);
    dv_tape_init(&tape, NULL, 0, arena);
    add_call(&tape, 1, DV_STR("a"), DV_STR("11111111-1111"));
    add_call(&tape, 2, DV_STR("a"), DV_STR("11111111-1111"));
    add_call(&tape, 3, DV_STR("b"), DV_STR("22222222-2222"));
    dv_exchanges_gather(&exchanges, &tape, DV_STR(DRIVER), arena);
    assert_int_equal(exchanges.v.n, 3);
    /* the same request: in the order of the recording, at last the last one again and again */
    assert_int_equal(ask(&exchanges, "a", "11111111-1111", &text), 1);
    assert_int_equal(ask(&exchanges, "a", "11111111-1111", &text), 2);
    assert_int_equal(ask(&exchanges, "a", "11111111-1111", &text), 2);
    /* another claim of a known name, and one that nobody has seen */
    assert_int_equal(ask(&exchanges, "b", "33333333-3333", &text), 3);
    assert_str(dv_buf_str(&text),
               "{\"claims\":{\"33333333-3333\":{\"devices\":[{\"cdi_device_ids\":"
               "[\"" DRIVER "/claim=33333333-3333-0\"]}]}}}");
    assert_true(ask(&exchanges, "z", "44444444-4444", &text) > 0);
    assert_true(dv_str_find(dv_buf_str(&text), DV_STR("44444444-4444-0")) < text.n);
    /* other fields than any recorded call has */
    assert_null(dv_exchange_choose(&exchanges, DV_STR(PREPARE), DV_STR(""), &pairs));
    dv_vec_fini(&pairs.v);
    dv_exchanges_fini(&exchanges);
    dv_tape_fini(&tape);
}

static void differences_are_named_by_field(void **state)
{
    static const struct {
        const char *recorded;
        const char *now;
        const char *line; /* NULL: they are the same */
    } rows[] = {
        {"{\"a\":1}",             "{\"a\":1}",             NULL                               },
        {"{\"a\":{\"b\":[1,2]}}", "{\"a\":{\"b\":[1,3]}}", "a.b[1]: recorded 2, now 3"        },
        {"{\"a\":1}",             "{}",                    "a: recorded 1, now nothing"       },
        {"{}",                    "{\"a\":[1]}",           "a: recorded nothing, now [1]"     },
        {"{\"a\":[1]}",           "{\"a\":[1,\"x\"]}",     "a[1]: recorded nothing, now \"x\""},
        {"{\"a\":\"1\"}",         "{\"a\":1}",             "a: recorded \"1\", now 1"         },
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        const char *const *lines;
        size_t n = dv_json_diff(dv_str_from_c(rows[i].recorded), dv_str_from_c(rows[i].now), arena,
                                &lines);

        assert_int_equal(n, rows[i].line ? 1 : 0);
        if (rows[i].line)
            assert_string_equal(lines[0], rows[i].line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_answered_as_the_one_that_is_most_like_it),
        cmocka_unit_test(differences_are_named_by_field),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
