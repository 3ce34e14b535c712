/* Who clients of the node's own API are: an API server that answers when it is told to. */
#include "support/dvtest.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/list.h"
#include "cluster/cluster.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "serve/kubelet/node_auth.h"
#include "serve/kubelet/node_route.h"
#include "support/turns.h"

#define CHECKS_MAX 1000u

/* A review that waits for its answer. */
struct asked {
    struct dv_link link;
    struct dv_user_review *review;
    struct dv_task task; /* tells that it was cancelled */
};

struct world {
    struct dv_cluster cluster;
    struct dv_clock_virtual clock;
    struct dv_loop *loop;
    struct dv_arena *arena;
    struct dv_list asked;
    int n_tokens; /* asked for */
    int n_rights;
    struct dv_node_auth *auth;
    struct dv_node_route route;
    int n_done;
    int n_closed;
};

struct check {
    struct dv_node_check check;
    struct world *world;
    bool is_done;
    enum dv_node_verdict verdict;
};

static void review_start(struct dv_cluster *cluster, struct dv_user_review *review)
{
    struct world *world = DV_CONTAINER(cluster, struct world, cluster);
    struct asked *asked = DV_ALLOC(struct asked);

    asked->review = review;
    review->priv = asked;
    dv_list_push(&world->asked, &asked->link);
    *(review->token ? &world->n_tokens : &world->n_rights) += 1;
}

static void on_cancelled(struct dv_task *task)
{
    struct asked *asked = DV_CONTAINER(task, struct asked, task);
    struct dv_err err;

    (void)dv_fail(&err, DV_CANCELLED, "cancelled");
    asked->review->done(asked->review, &err);
    free(asked);
}

static void review_cancel(struct dv_cluster *cluster, struct dv_user_review *review)
{
    struct asked *asked = review->priv;

    dv_link_remove(&asked->link);
    dv_task_post(&asked->task, cluster->loop, on_cancelled);
}

static const struct dv_cluster_engine engine = {.review_start = review_start,
                                                .review_cancel = review_cancel};

static void on_done(struct dv_node_check *inner, enum dv_node_verdict verdict)
{
    struct check *check = DV_CONTAINER(inner, struct check, check);

    assert_false(check->is_done);
    check->is_done = true;
    check->verdict = verdict;
    check->world->n_done++;
}

static void on_closed(void *ctx)
{
    ((struct world *)ctx)->n_closed++;
}

static int set_up(void **state)
{
    struct world *world = DV_ALLOC(struct world);
    struct dv_err err;

    dv_clock_virtual_init(&world->clock);
    world->loop = dv_loop_new(&world->clock.clock, &err);
    assert_non_null(world->loop);
    world->arena = dv_arena_new();
    world->cluster = (struct dv_cluster){.engine = &engine, .loop = world->loop};
    dv_list_init(&world->asked);
    world->auth = dv_node_auth_new(world->loop, &world->cluster, DV_STR("n1"));
    dv_node_route_parse(DV_STR("GET"), DV_STR("/pods"), world->arena, &world->route);
    *state = world;
    return 0;
}

static void turn(struct world *world)
{
    loop_turns(world->loop, 3);
}

static int tear_down(void **state)
{
    struct world *world = *state;

    if (world->auth)
        dv_node_auth_close(world->auth, on_closed, world);
    turn(world);
    assert_int_equal(world->n_closed, 1);
    dv_arena_free(world->arena);
    dv_loop_free(world->loop);
    free(world);
    return 0;
}

static void start(struct world *world, struct check *check, const char *token)
{
    *check = (struct check){
        .world = world,
        .check = {.token = dv_str_from_c(token),
                  .route = &world->route,
                  .arena = world->arena,
                  .done = on_done},
    };
    dv_node_auth_start(world->auth, &check->check);
    assert_false(check->is_done);
    turn(world);
}

/* Answers the review that has waited longest. */
static void say(struct world *world, bool is_yes, const struct dv_err *err)
{
    struct asked *asked = DV_CONTAINER(dv_list_shift(&world->asked), struct asked, link);
    struct dv_api_token_review_status token = {.authenticated = is_yes};
    struct dv_api_subject_access_review_status access = {.allowed = is_yes};

    token.user.username = is_yes ? DV_STR("bob") : DV_STR("");
    asked->review->token_status = asked->review->token && !err ? &token : NULL;
    asked->review->access_status = asked->review->access && !err ? &access : NULL;
    asked->review->done(asked->review, err);
    free(asked);
    turn(world);
}

static void expect(struct world *world, const char *token, enum dv_node_verdict verdict,
                   int n_tokens, int n_rights)
{
    struct check check;

    start(world, &check, token);
    assert_true(check.is_done);
    assert_int_equal(check.verdict, verdict);
    assert_int_equal(world->n_tokens, n_tokens);
    assert_int_equal(world->n_rights, n_rights);
}

static void remembers_what_it_was_told(void **state)
{
    struct world *world = *state;
    struct check check;

    start(world, &check, "good");
    say(world, true, NULL);  /* a token */
    say(world, false, NULL); /* no right on pods */
    say(world, true, NULL);  /* but one on proxy */
    assert_true(check.is_done && check.verdict == DV_NODE_MAY);
    assert_str(check.check.user.username, "bob");
    expect(world, "good", DV_NODE_MAY, 1, 2);
    dv_clock_virtual_advance_ms(&world->clock, 29000);
    expect(world, "good", DV_NODE_MAY, 1, 2);
    dv_clock_virtual_advance_ms(&world->clock, 2000);
    start(world, &check, "good"); /* that it may not is forgotten after 30 s */
    say(world, false, NULL);
    assert_int_equal(check.verdict, DV_NODE_MAY);
    assert_int_equal(world->n_rights, 3);
    dv_clock_virtual_advance_ms(&world->clock, 90000);
    start(world, &check, "good"); /* and whose the token is after 2 minutes */
    assert_int_equal(world->n_tokens, 2);
    say(world, false, NULL); /* it was revoked */
    assert_int_equal(check.verdict, DV_NODE_IS_NOBODY);
    expect(world, "good", DV_NODE_IS_NOBODY, 2, 3);
}

static void those_who_ask_the_same_share_a_question(void **state)
{
    struct world *world = *state;
    struct check checks[10];

    for (size_t i = 0; i < DV_COUNT(checks); i++)
        start(world, &checks[i], "good");
    assert_int_equal(world->n_tokens, 1);
    say(world, true, NULL);
    assert_int_equal(world->n_rights, 1);
    say(world, false, NULL);
    say(world, false, NULL);
    assert_int_equal(world->n_done, DV_COUNT(checks));
    for (size_t i = 0; i < DV_COUNT(checks); i++)
        assert_int_equal(checks[i].verdict, DV_NODE_MAY_NOT);
}

static void refuses_when_nobody_answers(void **state)
{
    struct world *world = *state;
    struct check check;
    struct dv_err err;

    (void)dv_fail(&err, DV_UNAVAILABLE, "down");
    start(world, &check, "good");
    say(world, false, &err);
    assert_int_equal(check.verdict, DV_NODE_IS_NOBODY);
    start(world, &check, "good"); /* that is not remembered */
    say(world, true, NULL);
    say(world, false, &err);
    assert_int_equal(check.verdict, DV_NODE_NOT_DECIDED);
}

static void guesses_keep_known_clients_out_of_nothing(void **state)
{
    struct world *world = *state;
    struct check *guesses = dv_alloc(CHECKS_MAX * sizeof(*guesses));
    struct check check;
    char text[CHECKS_MAX][16];

    start(world, &check, "good");
    say(world, true, NULL);
    say(world, true, NULL);
    assert_int_equal(check.verdict, DV_NODE_MAY);
    for (size_t i = 0; i < CHECKS_MAX; i++) {
        (void)snprintf(text[i], sizeof(text[i]), "guess %zu", i); /* fits */
        start(world, &guesses[i], text[i]);
    }
    assert_int_equal(world->n_tokens, 1 + 8);
    assert_int_equal(world->n_done, 1 + CHECKS_MAX - 8 - 64);
    assert_int_equal(guesses[CHECKS_MAX - 1].verdict, DV_NODE_IS_BUSY);
    expect(world, "good", DV_NODE_MAY, 9, 1); /* remembered */
    dv_clock_virtual_advance_ms(&world->clock, 121000);
    start(world, &check, "good"); /* asked again, beside the guesses */
    assert_int_equal(world->n_tokens, 10);
    for (int i = 0; i < 8 + 64; i++) /* of the first eight, each makes room for the next */
        say(world, i == 8, NULL);
    assert_int_equal(check.verdict, DV_NODE_MAY);
    dv_node_auth_close(world->auth, on_closed, world);
    world->auth = NULL;
    turn(world);
    assert_int_equal(world->n_done, 1 + CHECKS_MAX + 2);
    free(guesses);
}

static void ends_all_when_it_closes(void **state)
{
    struct world *world = *state;
    struct check checks[20];
    char text[DV_COUNT(checks)][8];

    for (size_t i = 0; i < DV_COUNT(checks); i++) {
        (void)snprintf(text[i], sizeof(text[i]), "%zu", i); /* fits */
        start(world, &checks[i], text[i]);
    }
    dv_node_auth_close(world->auth, on_closed, world);
    world->auth = NULL;
    assert_int_equal(world->n_closed, 0);
    turn(world);
    assert_int_equal(world->n_done, DV_COUNT(checks));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(remembers_what_it_was_told),  TEST(those_who_ask_the_same_share_a_question),
        TEST(refuses_when_nobody_answers), TEST(guesses_keep_known_clients_out_of_nothing),
        TEST(ends_all_when_it_closes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
