#include "support/dvtest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "serve/auth.h"
#include "serve/tokens.h"
#include "store/store.h"
#include "support/test_store.h"

static const char *const tables[] = {"tokens"};
static const struct dv_store_schema schema = {.tables = tables, .n_tables = 1};

struct fixture {
    struct dv_clock_virtual clock;
    struct dv_loop *loop;
    struct dv_arena *arena;
    struct dv_store *store;
    struct test_store_faults faults;
    struct dv_tokens *tokens;
    struct dv_token_op op;
    bool is_done;
    enum dv_code code;
    char why[DV_ERR_MSG_BYTES];
    bool is_closed;
};

static size_t count_tokens(const struct fixture *fixture)
{
    size_t n = 0;

    for (size_t at = 0; dv_tokens_next(fixture->tokens, &at);)
        n++;
    return n;
}

static int begin(void **state)
{
    struct fixture *fixture = DV_ALLOC(struct fixture);
    struct dv_err err;

    dv_clock_virtual_init(&fixture->clock);
    fixture->arena = dv_arena_new();
    fixture->loop = dv_loop_new(&fixture->clock.clock, &err);
    assert_non_null(fixture->loop);
    fixture->store = test_store_open(fixture->loop, &schema, &fixture->faults);
    fixture->tokens = dv_tokens_open(fixture->loop, fixture->store, 0, &err);
    assert_non_null(fixture->tokens);
    *state = fixture;
    return 0;
}

static void on_closed(void *ctx)
{
    ((struct fixture *)ctx)->is_closed = true;
}

static bool is_closed(void *ctx)
{
    return ((struct fixture *)ctx)->is_closed;
}

static int end(void **state)
{
    struct fixture *fixture = *state;

    dv_tokens_close(fixture->tokens);
    dv_store_close(fixture->store, on_closed, fixture);
    assert_true(dv_loop_run_until(fixture->loop, is_closed, fixture, 5000));
    dv_loop_free(fixture->loop);
    dv_arena_free(fixture->arena);
    free(fixture);
    return 0;
}

static void on_done(struct dv_token_op *op, const struct dv_err *err)
{
    struct fixture *fixture = DV_CONTAINER(op, struct fixture, op);

    fixture->is_done = true;
    fixture->code = err ? err->code : DV_OK;
    (void)snprintf(fixture->why, sizeof(fixture->why), "%s", err ? err->msg : "");
}

static bool is_done(void *ctx)
{
    return ((struct fixture *)ctx)->is_done;
}

static void wait_done(struct fixture *fixture)
{
    assert_true(dv_loop_run_until(fixture->loop, is_done, fixture, 5000));
}

static dv_str create(struct fixture *fixture, struct dv_api_user_info user, int64_t lifetime_s)
{
    fixture->op = (struct dv_token_op){
        .user = user, .lifetime_s = lifetime_s, .arena = fixture->arena, .done = on_done};
    fixture->is_done = false;
    dv_tokens_create(fixture->tokens, &fixture->op);
    assert_false(fixture->is_done);
    wait_done(fixture);
    return fixture->op.secret;
}

static enum dv_code revoke(struct fixture *fixture, dv_str id)
{
    fixture->op = (struct dv_token_op){.id = id, .done = on_done};
    fixture->is_done = false;
    dv_tokens_revoke(fixture->tokens, &fixture->op);
    wait_done(fixture);
    return fixture->code;
}

/* Counts the rows of the store. */
static bool count_row(void *ctx, const struct dv_store_row *row, struct dv_err *err)
{
    size_t *n = ctx;

    (void)row;
    (void)err;
    (*n)++;
    return true;
}

static void a_token_is_its_user_until_it_is_revoked(void **state)
{
    struct fixture *fixture = *state;
    dv_str secret =
        create(fixture, dv_auth_driver(DV_STR("gpu.example.com"), DV_STR("n1"), fixture->arena), 0);
    const struct dv_token *token = dv_tokens_find(fixture->tokens, secret);
    dv_str node, driver, id;

    assert_int_equal(fixture->code, DV_OK);
    assert_non_null(token);
    assert_int_equal(dv_auth_scope(&token->user, &node, &driver), DV_SCOPE_DRIVER);
    assert_str(node, "n1");
    assert_str(driver, "gpu.example.com");
    assert_null(dv_tokens_find(fixture->tokens, DV_STR("another")));
    assert_null(dv_tokens_find(fixture->tokens, DV_STR("")));
    id = dv_str_copy(token->id, fixture->arena);
    assert_int_equal(revoke(fixture, DV_STR("nope")), DV_NOT_FOUND);
    assert_int_equal(revoke(fixture, id), DV_OK);
    assert_null(dv_tokens_find(fixture->tokens, secret));
    assert_int_equal(count_tokens(fixture), 0);
}

static void a_token_ends_with_its_time(void **state)
{
    struct fixture *fixture = *state;
    dv_str secret = create(fixture, dv_auth_node(DV_STR("n1"), fixture->arena), 600);

    assert_non_null(dv_tokens_find(fixture->tokens, secret));
    dv_clock_virtual_advance_ms(&fixture->clock, 601 * 1000);
    assert_null(dv_tokens_find(fixture->tokens, secret));
    (void)create(fixture, dv_auth_node(DV_STR("n1"), fixture->arena), 600);
    assert_int_equal(count_tokens(fixture), 1); /* the old one went with the write */
}

static void a_token_that_is_not_durable_is_none(void **state)
{
    struct fixture *fixture = *state;
    dv_str secret;

    fixture->faults = (struct test_store_faults){.n_until = 1, .code = DV_RESOURCE_EXHAUSTED};
    secret = create(fixture, dv_auth_admin(DV_STR("root"), fixture->arena), 0);
    assert_int_equal(fixture->code, DV_RESOURCE_EXHAUSTED);
    assert_null(dv_tokens_find(fixture->tokens, secret));
}

static void fixed_tokens_are_not_stored(void **state)
{
    struct fixture *fixture = *state;
    struct dv_api_user_info user = dv_auth_admin(DV_STR("root"), fixture->arena);
    struct dv_err err;
    size_t n = 0;

    assert_ok(dv_tokens_add_fixed(fixture->tokens, DV_STR("secret"), &user, &err), &err);
    assert_non_null(dv_tokens_find(fixture->tokens, DV_STR("secret")));
    assert_false(dv_tokens_add_fixed(fixture->tokens, DV_STR("secret"), &user, &err));
    assert_err(&err, DV_ALREADY_EXISTS, "root");
    assert_false(dv_tokens_add_fixed(fixture->tokens, DV_STR(""), &user, &err));
    assert_err(&err, DV_INVALID_ARGUMENT, "empty");
    assert_ok(dv_store_load(fixture->store, 0, count_row, &n, &err), &err);
    assert_int_equal(n, 0);
}

static void there_are_so_many_tokens(void **state)
{
    enum { N_MAX = 10000, N_RESERVED = 1000 };
    struct fixture *fixture = *state;
    struct dv_api_user_info user = dv_auth_node(DV_STR("n1"), fixture->arena);

    for (size_t i = 0; i < N_MAX - N_RESERVED - 1; i++) {
        char secret[32];
        struct dv_err err;

        (void)snprintf(secret, sizeof(secret), "secret-%zu", i);
        assert_ok(dv_tokens_add_fixed(fixture->tokens, dv_str_from_c(secret), &user, &err), &err);
    }
    (void)create(fixture, user, 600);
    assert_int_equal(fixture->code, DV_OK);
    (void)create(fixture, user, 600);
    assert_int_equal(fixture->code, DV_RESOURCE_EXHAUSTED);
    assert_true(fixture->op.is_over_quota);
    assert_non_null(strstr(fixture->why, "quota: there are 9000 of 9000 tokens: wait"));
    fixture->op = (struct dv_token_op){.user = user,
                                       .lifetime_s = 600,
                                       .is_by_admin = true,
                                       .arena = fixture->arena,
                                       .done = on_done};
    fixture->is_done = false;
    dv_tokens_create(fixture->tokens, &fixture->op);
    wait_done(fixture);
    assert_int_equal(fixture->code, DV_OK);
    dv_clock_virtual_advance_ms(&fixture->clock, 601 * 1000);
    (void)create(fixture, user, 600); /* in the place of the first */
    assert_int_equal(fixture->code, DV_OK);
}

/* ---- shares ---- */

/* As a token for a pod had it before tokens were signed. */
static struct dv_api_user_info user_of_pod(struct fixture *fixture, const char *node,
                                           const char *pod)
{
    static const char *const keys[] = {DV_EXTRA_NODE, DV_EXTRA_POD_NAME, DV_EXTRA_POD_UID};
    const char *const values[] = {node, pod, pod};
    struct dv_api_user_info user = {.username = DV_STR("system:serviceaccount:default:used")};

    user.n_extra = DV_COUNT(keys);
    user.extra = DV_NEW_ARRAY(fixture->arena, struct dv_strs_entry, DV_COUNT(keys));
    for (size_t i = 0; i < DV_COUNT(keys); i++) {
        dv_str *value = DV_NEW(fixture->arena, dv_str);

        *value = dv_str_copy(dv_str_from_c(values[i]), fixture->arena);
        user.extra[i] = (struct dv_strs_entry){
            dv_str_from_c(keys[i]), {value, 1}
        };
    }
    return user;
}

static void fill_pod(struct fixture *fixture, const char *node, const char *pod, size_t n)
{
    struct dv_api_user_info user = user_of_pod(fixture, node, pod);

    for (size_t i = 0; i < n; i++) {
        char secret[64];
        struct dv_err err;

        (void)snprintf(secret, sizeof(secret), "%s-%s-%zu", node, pod, i);
        assert_ok(dv_tokens_add_fixed(fixture->tokens, dv_str_from_c(secret), &user, &err), &err);
    }
}

static bool is_not_of_gone_pod(const void *ctx, const struct dv_api_user_info *user)
{
    const char *gone = ctx;

    return !dv_str_eq(user->extra[1].value.v[0], dv_str_from_c(gone));
}

static void begin_for_pod(struct fixture *fixture, const char *node, const char *pod,
                          const char *gone)
{
    fixture->op = (struct dv_token_op){.user = user_of_pod(fixture, node, pod),
                                       .lifetime_s = 600,
                                       .is_bound_there = is_not_of_gone_pod,
                                       .ctx = gone,
                                       .arena = fixture->arena,
                                       .done = on_done};
    fixture->is_done = false;
    dv_tokens_create(fixture->tokens, &fixture->op);
}

/* Those that were made before tokens were signed. */
static void tokens_of_pods_that_are_gone_make_room(void **state)
{
    struct fixture *fixture = *state;

    fill_pod(fixture, "n1", "p", 8900);
    fill_pod(fixture, "n1", "gone", 100);
    begin_for_pod(fixture, "n1", "p", "gone");
    wait_done(fixture);
    assert_int_equal(fixture->code, DV_OK);
    assert_int_equal(count_tokens(fixture), 9000 - 16 + 1);
}

static void on_other_done(struct dv_token_op *op, const struct dv_err *err)
{
    (void)op;
    assert_err(err, DV_RESOURCE_EXHAUSTED, "there are 9000 of 9000 tokens: wait");
}

static bool is_over_quota(void *ctx)
{
    return ((const struct dv_token_op *)ctx)->is_over_quota;
}

/* One token's place, and two that want it before the first is stored. */
static void what_is_being_made_counts(void **state)
{
    struct fixture *fixture = *state;
    struct dv_token_op other;

    fill_pod(fixture, "n1", "p", 8999);
    begin_for_pod(fixture, "n1", "p", "");
    other = (struct dv_token_op){
        .user = user_of_pod(fixture, "n1", "p"), .arena = fixture->arena, .done = on_other_done};
    dv_tokens_create(fixture->tokens, &other);
    wait_done(fixture);
    assert_int_equal(fixture->code, DV_OK);
    assert_true(dv_loop_run_until(fixture->loop, is_over_quota, &other, 5000));
    assert_int_equal(count_tokens(fixture), 9000);
}

/* ---- what goes on with a token ---- */

struct watch {
    struct dv_token_use use;
    int n_ended;
};

static void on_use_ended(struct dv_token_use *use)
{
    DV_CONTAINER(use, struct watch, use)->n_ended++;
}

static bool has_ended(void *ctx)
{
    return ((const struct watch *)ctx)->n_ended > 0;
}

static dv_str hash_of(struct fixture *fixture, dv_str secret)
{
    return dv_str_copy(dv_tokens_find(fixture->tokens, secret)->hash, fixture->arena);
}

static void what_uses_a_token_ends_with_it(void **state)
{
    struct fixture *fixture = *state;
    struct dv_api_user_info user = dv_auth_node(DV_STR("n1"), fixture->arena);
    dv_str secret = create(fixture, user, 0);
    dv_str other = create(fixture, user, 0);
    dv_str hash = hash_of(fixture, secret);
    struct watch watches[3] = {0};
    struct watch late = {.use.ended = on_use_ended};

    for (size_t i = 0; i < DV_COUNT(watches); i++) {
        watches[i].use.ended = on_use_ended;
        assert_true(dv_token_use_begin(&watches[i].use, fixture->tokens,
                                       i == 2 ? hash_of(fixture, other) : hash));
    }
    dv_token_use_end(&watches[1].use); /* it has ended by itself */
    assert_int_equal(
        revoke(fixture, dv_str_copy(dv_tokens_find(fixture->tokens, secret)->id, fixture->arena)),
        DV_OK);
    assert_int_equal(watches[0].n_ended, 1);
    assert_int_equal(watches[1].n_ended, 0);
    assert_int_equal(watches[2].n_ended, 0);
    assert_false(dv_tokens_is_valid(fixture->tokens, hash));
    assert_false(dv_token_use_begin(&late.use, fixture->tokens, hash));
    dv_token_use_end(&watches[2].use);
}

static void what_uses_a_token_ends_with_its_time(void **state)
{
    struct fixture *fixture = *state;
    dv_str secret = create(fixture, dv_auth_node(DV_STR("n1"), fixture->arena), 600);
    struct watch watch = {.use.ended = on_use_ended};

    assert_true(dv_token_use_begin(&watch.use, fixture->tokens, hash_of(fixture, secret)));
    for (int i = 0; i < 70 && !watch.n_ended; i++) {
        assert_int_equal(watch.n_ended, 0);
        dv_clock_virtual_advance_ms(&fixture->clock, 10 * 1000);
        assert_true(!dv_loop_run_until(fixture->loop, has_ended, &watch, 1) || i >= 59);
    }
    assert_int_equal(watch.n_ended, 1);
}

/* From the moment of the request nothing new begins, so that nothing follows its answer. */
static void a_token_is_invalid_while_it_is_revoked(void **state)
{
    struct fixture *fixture = *state;
    dv_str secret = create(fixture, dv_auth_node(DV_STR("n1"), fixture->arena), 0);
    dv_str hash = hash_of(fixture, secret);
    dv_str id = dv_str_copy(dv_tokens_find(fixture->tokens, secret)->id, fixture->arena);

    fixture->faults = (struct test_store_faults){.n_until = 1, .code = DV_RESOURCE_EXHAUSTED};
    fixture->op = (struct dv_token_op){.id = id, .done = on_done};
    fixture->is_done = false;
    dv_tokens_revoke(fixture->tokens, &fixture->op);
    assert_false(dv_tokens_is_valid(fixture->tokens, hash));
    wait_done(fixture);
    assert_int_equal(fixture->code, DV_RESOURCE_EXHAUSTED);
    assert_true(dv_tokens_is_valid(fixture->tokens, hash)); /* it could not be */
    assert_int_equal(revoke(fixture, id), DV_OK);
    assert_false(dv_tokens_is_valid(fixture->tokens, hash));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_token_is_its_user_until_it_is_revoked, begin, end),
        cmocka_unit_test_setup_teardown(a_token_ends_with_its_time, begin, end),
        cmocka_unit_test_setup_teardown(a_token_that_is_not_durable_is_none, begin, end),
        cmocka_unit_test_setup_teardown(fixed_tokens_are_not_stored, begin, end),
        cmocka_unit_test_setup_teardown(there_are_so_many_tokens, begin, end),
        cmocka_unit_test_setup_teardown(tokens_of_pods_that_are_gone_make_room, begin, end),
        cmocka_unit_test_setup_teardown(what_is_being_made_counts, begin, end),
        cmocka_unit_test_setup_teardown(what_uses_a_token_ends_with_it, begin, end),
        cmocka_unit_test_setup_teardown(what_uses_a_token_ends_with_its_time, begin, end),
        cmocka_unit_test_setup_teardown(a_token_is_invalid_while_it_is_revoked, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
