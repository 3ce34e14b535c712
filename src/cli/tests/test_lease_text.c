/* test_lease_text.c - what is told about leases, and how they are asked for. */
#include "support/dvtest.h"

#include "base/arena.h"
#include "base/buf.h"
#include "cli/run/lease_request.h"
#include "cli/run/lease_text.h"
#include "cli/run/run_plan_wire.h"
#include "engines/engines.h"
#include "proto/davit_node_v1.pb-c.h"

#define MINUTE_MS 60000

static NodeV1__LeaseHolder holder(const char *name, const char *user, uint32_t pid, int64_t minutes)
{
    NodeV1__LeaseHolder made = NODE_V1__LEASE_HOLDER__INIT;

    made.name = name;
    made.user = user;
    made.lease = user[0] ? "l-1" : "";
    made.pid = pid;
    made.since_ms = 1000 * MINUTE_MS - minutes * MINUTE_MS;
    return made;
}

#define NOT_COUNTED UINT64_MAX

static void tells_why_it_waits(void **state)
{
    NodeV1__LeaseHolder all[] = {holder("train.py", "1001", 4121, 130),
                                 holder("eval", "ada", 0, 63), holder("ml/train-0", "", 0, 5),
                                 holder("\033[2J", "x", 1, 1)};
    NodeV1__LeaseHolder *holders[] = {&all[0], &all[1], &all[2], &all[3]};
    static const struct {
        uint64_t n_wanted;
        uint64_t n_free;
        size_t n_holders;
        uint32_t n_more;
        uint32_t place;
        const char *awaited;
        const char *want;
    } cases[] = {
        {8, 2,           2, 0, 2,  "",
         "waiting: 2 of 8 wanted v/gpu are free; held by train.py (user 1001, pid 4121, 2h10m) and "
         "eval (user ada, 63m); you are 2nd in the queue"                                                          },
        {1, 0,           1, 0, 1,  "",
         "waiting: 0 of 1 wanted v/gpu is free; held by train.py (user 1001, pid 4121, 2h10m); you "
         "are next"                                                                                                },
        {2, 0,           3, 2, 11, "",
         "waiting: 0 of 2 wanted v/gpu are free; held by train.py (user 1001, pid 4121, 2h10m), "
         "eval "
         "(user ada, 63m), ml/train-0 (pod, 5m) and 2 more; you are 11th in the queue"                             },
        {2, 0,           4, 0, 23, "",
         "waiting: 0 of 2 wanted v/gpu are free; held by train.py (user 1001, pid 4121, 2h10m), "
         "eval "
         "(user ada, 63m), ml/train-0 (pod, 5m) and 1 more; you are 23rd in the queue"                             },
        {3, NOT_COUNTED, 1, 0, 2,  "",
         "waiting for 3 v/gpu; held by train.py (user 1001, pid 4121, 2h10m); you are 2nd in the "
         "queue"                                                                                                   },
        {0, 0,           0, 0, 1,  "plugin v/gpu to register",
         "waiting for plugin v/gpu to register; you are next"                                                      },
        {0, 0,           0, 0, 3,  "",                         "waiting for those before; you are 3rd in the queue"},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        NodeV1__LeaseWaiting waiting = NODE_V1__LEASE_WAITING__INIT;
        DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

        dv_buf_init(&buf, 4096);
        waiting.short_of = "v/gpu";
        waiting.n_wanted = cases[i].n_wanted;
        waiting.n_free = cases[i].n_free;
        waiting.has_count = cases[i].n_free != NOT_COUNTED;
        waiting.holders = holders;
        waiting.n_holders = cases[i].n_holders;
        waiting.n_more_holders = cases[i].n_more;
        waiting.place = cases[i].place;
        waiting.awaited = cases[i].awaited;
        dv_lease_print_waiting(&waiting, (int64_t)1000 * MINUTE_MS, true, &buf);
        assert_str(dv_buf_str(&buf), cases[i].want);
    }
}

static void names_of_others_cannot_steer_a_terminal(void **state)
{
    NodeV1__LeaseHolder one = holder("\033[2J", "x\n", 1, 1);
    NodeV1__LeaseHolder *holders[] = {&one};
    NodeV1__LeaseWaiting waiting = NODE_V1__LEASE_WAITING__INIT;
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    (void)state;
    dv_buf_init(&buf, 4096);
    waiting.short_of = "v/gpu";
    waiting.n_wanted = 1;
    waiting.has_count = true;
    waiting.holders = holders;
    waiting.n_holders = 1;
    dv_lease_print_waiting(&waiting, 0, false, &buf);
    assert_str(dv_buf_str(&buf),
               "waiting: 0 of 1 wanted v/gpu is free; held by \\x1b[2J (user x\\n, pid 1)");
}

static void a_line_is_cut_to_the_terminal(void **state)
{
    static const struct {
        const char *line;
        size_t columns;
        const char *want;
    } cases[] = {
        {"abcdef",                0, "abcdef"               },
        {"abcdef",                6, "abcdef"               },
        {"abcdef",                5, "ab..."                },
        {"abcdef",                2, ".."                   },
        {"\u00e4\u00f6\u00fcabc", 6, "\u00e4\u00f6\u00fcabc"},
        {"\u00e4\u00f6\u00fcabc", 5, "\u00e4\u00f6..."      },
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

        dv_buf_init(&buf, 4096);
        dv_lease_print_cut(cases[i].line, cases[i].columns, &buf);
        assert_str(dv_buf_str(&buf), cases[i].want);
    }
}

static void tells_why_a_lease_has_ended(void **state)
{
    NodeV1__LeaseEnd end = NODE_V1__LEASE_END__INIT;
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    (void)state;
    dv_buf_init(&buf, 4096);
    end.reason = "EndedByAdmin";
    end.by = "root";
    end.message = "maintenance";
    dv_lease_print_end(&end, &buf);
    assert_str(dv_buf_str(&buf), "an admin has ended it (root): maintenance");
}

static void words_name_resources(void **state)
{
    static const struct {
        const char *word;
        const char *resource; /* NULL: refused */
        uint64_t count;
    } cases[] = {
        {"nvidia.com/gpu=2", "nvidia.com/gpu", 2},
        {"gpu",              "gpu",            1},
        {"gpu=",             NULL,             0},
        {"gpu=0",            NULL,             0},
        {"gpu=-1",           NULL,             0},
        {"gpu=two",          NULL,             0},
        {"gpu:2",            NULL,             0},
        {"=2",               NULL,             0},
        {"a b=2",            NULL,             0},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(cases); i++) {
        struct dv_err err;
        dv_str resource;
        uint64_t count;

        if (!dv_lease_word_parse(dv_str_from_c(cases[i].word), &resource, &count, &err)) {
            assert_null(cases[i].resource);
            continue;
        }
        assert_str(resource, cases[i].resource);
        assert_int_equal(count, cases[i].count);
    }
}

static void a_plan_is_read_as_it_was_sent(void **state)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    dv_str words[] = {DV_STR("a"), DV_STR(""), DV_STR("b c")};
    dv_str env[] = {DV_STR("X=y")};
    struct dv_engine_node node = {DV_STR("/dev/a"), DV_STR("/dev/b"), DV_STR_NONE};
    struct dv_engine_mount mount = {DV_STR("/in"), DV_STR("/out"), true};
    uint32_t gid = 44;
    const struct dv_engine_plan plan = {words, 3, env, 1, &node, 1, &mount, 1, &gid, 1, NULL, 0};
    struct dv_engine_plan got;
    bool is_isolated = false;

    (void)state;
    dv_buf_init(&buf, 4096);
    dv_run_plan_encode(&plan, true, &buf);
    assert_true(dv_run_plan_decode(dv_buf_str(&buf), arena, &got, &is_isolated));
    assert_true(is_isolated);
    assert_int_equal(got.n_words, 3);
    assert_str(got.words[2], "b c");
    assert_str(got.env[0], "X=y");
    assert_str(got.nodes[0].host_path, "/dev/b");
    assert_true(got.mounts[0].is_read_only);
    assert_int_equal(got.gids[0], 44);
    for (size_t n = 0; n < buf.n; n++) /* a part of it is no plan */
        assert_false(dv_run_plan_decode((dv_str){buf.p, n}, arena, &got, &is_isolated));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_why_it_waits),
        cmocka_unit_test(names_of_others_cannot_steer_a_terminal),
        cmocka_unit_test(a_line_is_cut_to_the_terminal),
        cmocka_unit_test(tells_why_a_lease_has_ended),
        cmocka_unit_test(words_name_resources),
        cmocka_unit_test(a_plan_is_read_as_it_was_sent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
