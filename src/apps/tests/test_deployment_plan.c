/* test_deployment_plan.c - what is decided about Deployments and ReplicaSets, as tables.
 *
 * Sets are written as a word each, the oldest first: a letter, how many pods it wants, and how many
 * of them are available. `n` is the set of the template that is wanted. Actions are the numbers
 * that sets shall want, or what else is planned. */
#include "support/dvtest.h"

#include <stdbool.h>
#include <stdlib.h>

#include "apps/plan/apps_plan.h"
#include "apps/plan/deployment.h"
#include "apps/plan/replica_set.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/vec.h"
#include "resource/resource.h"
#include "json/json.h"

#define NOW 1000000

static int set_up(void **state)
{
    *state = dv_arena_new();
    return 0;
}

static int tear_down(void **state)
{
    dv_arena_free(*state);
    return 0;
}

static void *read_as(enum dv_kind_id id, struct dv_arena *arena, const char *yaml)
{
    const struct dv_kind *kind = dv_kind(id);
    const struct dv_message *message = kind->versions[0].message;
    void *value = dv_arena_alloc(arena, message->size, message->align);
    struct dv_err err;
    const struct dv_json *doc = dv_yaml_parse(dv_str_from_c(yaml), NULL, arena, &err);

    assert_ok(doc, &err);
    assert_ok(dv_decode_json(message, doc, DV_UNKNOWN_DROP, arena, value, NULL, &err), &err);
    dv_default(kind, &kind->versions[0], value, (struct dv_time){0}, arena);
    return value;
}

#define TEMPLATE(image)                                                                            \
    "template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: 'i:" image      \
    "'}]}}"
#define OWNED(kind, name)                                                                          \
    "ownerReferences: [{apiVersion: apps/v1, kind: " kind ", name: " name                          \
    ", uid: owner, controller: true}]"

/* ---- Deployments ---- */

struct world {
    struct dv_api_deployment *deployment;
    DV_VEC(const struct dv_api_replica_set *) sets;
    bool have_pods[8];
    struct dv_plan plan;
};

/* A set that was scaled for `desired` pods of the Deployment, at most `max`. */
static void add_set(struct world *world, const char *word, int desired, int max,
                    struct dv_arena *arena)
{
    char *end;
    long n = strtol(word + 1, &end, 10);
    long n_available = strtol(end + 1, NULL, 10);
    struct dv_api_replica_set *set = read_as(
        DV_KIND_REPLICA_SET, arena,
        dv_str_printf(arena,
                      "{metadata: {name: '%c', namespace: ns, uid: set-%c, labels: {app: x}, "
                      "annotations: {deployment.kubernetes.io/revision: '%d', "
                      "deployment.kubernetes.io/desired-replicas: '%d', "
                      "deployment.kubernetes.io/max-replicas: '%d'}, " OWNED(
                          "Deployment",
                          "d") "}, "
                               "spec: {replicas: %ld, selector: {matchLabels: {app: x}}, " TEMPLATE(
                                   "%c") "}, "
                                         "status: {replicas: %ld, availableReplicas: %ld, "
                                         "readyReplicas: %ld}}",
                      word[0], word[0], (int)world->sets.n + 1, desired, max, n, word[0], n,
                      n_available, n_available)
            .p);

    set->metadata.creation_timestamp.is_set = true;
    set->metadata.creation_timestamp.seconds = NOW - 100 + (int64_t)world->sets.n;
    *dv_vec_add_in(&world->sets, arena) = set;
}

static struct world world_of(const char *spec, const char *sets, int desired, int max,
                             struct dv_arena *arena)
{
    struct world world = {0};

    world.deployment = read_as(
        DV_KIND_DEPLOYMENT, arena,
        dv_str_printf(arena,
                      "{metadata: {name: d, namespace: ns, uid: owner, annotations: "
                      "{deployment.kubernetes.io/revision: '0'}}, spec: {selector: {matchLabels: "
                      "{app: x}}, " TEMPLATE("n") ", %s}}",
                      spec)
            .p);
    while (*sets) {
        add_set(&world, sets, desired, max, arena);
        while (*sets && *sets != ' ')
            sets++;
        sets += *sets == ' ';
    }
    /* as it is once revisions are told */
    if (world.sets.n > 0)
        world.deployment->metadata.annotations[0].value = dv_str_printf(arena, "%zu", world.sets.n);
    return world;
}

static const char *plan(struct world *world, struct dv_arena *arena)
{
    const struct dv_deployment_input input = {
        .deployment = world->deployment,
        .sets = world->sets.v,
        .n_sets = world->sets.n,
        .have_pods = world->have_pods,
        .now = {.is_set = true, .seconds = NOW}
    };
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, 4096);
    dv_plan_init(&world->plan, arena);
    dv_deployment_plan(&input, &world->plan);
    for (size_t i = 0; i < world->plan.actions.n; i++) {
        const struct dv_action *action = &world->plan.actions.v[i];
        struct dv_api_replica_set set = {0};

        dv_buf_add_c(&buf, buf.n > 0 ? " " : "");
        if (action->type == DV_ACTION_CHANGE_STATUS) {
            dv_buf_add_c(&buf, "status");
        } else if (action->type == DV_ACTION_CREATE) {
            dv_buf_printf(
                &buf, "new%lld",
                (long long)*((const struct dv_api_replica_set *)action->value)->spec.replicas);
        } else if (action->type == DV_ACTION_DELETE) {
            dv_buf_printf(&buf, "-%.*s", DV_FMT(action->name));
        } else if (action->kind->id == DV_KIND_REPLICA_SET) {
            assert_true(action->change(action, &set, arena));
            dv_buf_printf(&buf, "%.*s%lld", DV_FMT(action->name),
                          set.spec.replicas ? (long long)*set.spec.replicas : -1);
        } else {
            dv_buf_add_c(&buf, "revision");
        }
    }
    dv_buf_add_char(&buf, 0);
    return dv_str_copy(dv_buf_str(&buf), arena).p;
}

struct row {
    const char *sets;
    const char *actions;
};

static void check(const char *spec, const struct row *rows, size_t n, int desired, int max,
                  struct dv_arena *arena)
{
    for (size_t i = 0; i < n; i++) {
        struct world world = world_of(spec, rows[i].sets, desired, max, arena);

        assert_string_equal(plan(&world, arena), rows[i].actions);
    }
}

static void one_step_of_a_roll_out(void **state)
{
    static const struct row ten[] = {
        {"",               "new10 status"}, /* the status tells of the new set */
        {"o10/10",         "new3 status" }, /* surge 3, one out of four may be missing: 2 */
        {"o10/10 n3/0",    "o8"          },
        {"o8/8 n3/0",      "n5"          },
        {"o8/8 n5/0",      "status"      }, /* eight have to work */
        {"o8/8 n5/5",      "o3"          }, /* thirteen work, eight are enough */
        {"o3/3 n5/5",      "n10"         },
        {"o8/5 n5/0",      "status"      },
        {"o10/7 n3/3",     "o5"          }, /* those that do not work go first */
        {"p5/5 o5/5 n3/0", "p3"          }, /* of the oldest */
        {"p5/5 o5/2 n3/3", "p3 o2"       },
        {"o0/0 n10/10",    "status"      },
        {"n12/12",         "n10"         },
    };
    static const struct row one[] = {
        {"o1/1",      "new1 status"}, /* a quarter of one: a surge of 1 */
        {"o1/1 n1/0", "status"     },
        {"o1/1 n1/1", "o0"         },
        {"o1/0 n1/0", "status"     },
    };
    static const struct row careful[] = {
        {"o3/3",      "new0 status"},
        {"o3/3 n0/0", "o2"         },
        {"o2/2 n0/0", "n1"         },
        {"o2/2 n1/0", "status"     },
        {"o2/2 n1/1", "o1"         },
    };

    check("replicas: 10", ten, DV_COUNT(ten), 10, 13, *state);
    check("replicas: 1", one, DV_COUNT(one), 1, 2, *state);
    check("replicas: 3, strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}", careful,
          DV_COUNT(careful), 3, 3, *state);
}

static void another_number_in_the_middle(void **state)
{
    static const struct row grown[] = {
        {"n10/10",    "n20"    },
        {"o8/8 n5/0", "o16 n10"}, /* of 26 that may be: by shares */
        {"o5/5 n5/5", "o10 n16"}, /* the newer gets what is left over */
    };
    static const struct row shrunk[] = {
        {"o8/8 n5/0", "o4 n3"},
        {"o5/5 n5/5", "o3 n4"},
    };
    static const struct row none[] = {
        {"o8/8 n5/0", "o0 n0"},
    };

    check("replicas: 20, strategy: {rollingUpdate: {maxSurge: 30%}}", grown, DV_COUNT(grown), 10,
          13, *state);
    check("replicas: 5", shrunk, DV_COUNT(shrunk), 10, 13, *state);
    check("replicas: 0", none, DV_COUNT(none), 10, 13, *state);
}

/* The sum of a share overflowed 64 bits, and sets wanted what no set can. */
static void numbers_may_be_as_large_as_they_can(void **state)
{
    static const struct row grown[] = {
        {"o1000000000/1 n500000000/0", "o1431655765 n715827882"},
    };
    static const struct row odd[] = {
        {"o2000000000/1 n5/0", "o2147483642 n5"},
    };

    check("replicas: 2147483647, strategy: {rollingUpdate: {maxSurge: 100%}}", grown,
          DV_COUNT(grown), 10, 1500000000, *state);
    check("replicas: 2147483647, strategy: {rollingUpdate: {maxSurge: 2147483647}}", odd,
          DV_COUNT(odd), 10, 1, *state);
}

static void a_paused_deployment_only_scales(void **state)
{
    static const struct row rows[] = {
        {"o3/3", "o5"    },
        {"",     "status"},
    };

    check("replicas: 5, paused: true", rows, DV_COUNT(rows), 3, 4, *state);
}

static void recreating_overlaps_nothing(void **state)
{
    struct world world = world_of("replicas: 2, strategy: {type: Recreate}", "o2/2", 2, 2, *state);

    world.have_pods[0] = true;
    assert_string_equal(plan(&world, *state), "o0");
    world = world_of("replicas: 2, strategy: {type: Recreate}", "o0/0", 2, 2, *state);
    world.have_pods[0] = true;
    assert_string_equal(plan(&world, *state), "status"); /* one is still ending */
    world.have_pods[0] = false;
    assert_string_equal(plan(&world, *state), "new2 status");
}

static void going_back_gives_the_highest_number(void **state)
{
    struct world world = world_of("replicas: 1", "n0/0 o1/1", 1, 2, *state);
    struct dv_api_replica_set set = *world.sets.v[0];

    assert_string_equal(plan(&world, *state), "n-1");
    assert_true(world.plan.actions.v[0].change(&world.plan.actions.v[0], &set, *state));
    assert_str(dv_entry_find(set.metadata.annotations, set.metadata.n_annotations,
                             DV_STR("deployment.kubernetes.io/revision"))
                   ->value,
               "3");
    assert_str(dv_entry_find(set.metadata.annotations, set.metadata.n_annotations,
                             DV_STR("deployment.kubernetes.io/revision-history"))
                   ->value,
               "1");
}

static const struct dv_api_deployment_condition *condition_of(struct world *world, const char *type,
                                                              struct dv_arena *arena)
{
    struct dv_api_deployment *told = DV_NEW(arena, struct dv_api_deployment);
    size_t n = world->plan.actions.n;

    assert_true(n > 0);
    assert_true(world->plan.actions.v[n - 1].change(&world->plan.actions.v[n - 1], told, arena));
    world->deployment->status = told->status;
    for (size_t i = 0; i < told->status.n_conditions; i++)
        if (dv_str_eq(told->status.conditions[i].type, dv_str_from_c(type)))
            return &told->status.conditions[i];
    return NULL;
}

static void progress_is_told(void **state)
{
    struct dv_arena *arena = *state;
    struct world world = world_of("replicas: 1", "", 1, 2, arena);
    struct dv_api_deployment_status late;

    assert_string_equal(plan(&world, arena), "new1 status");
    assert_str(condition_of(&world, "Progressing", arena)->reason, "NewReplicaSetCreated");
    add_set(&world, "n1/0", 1, 2, arena);
    world.deployment->metadata.annotations[0].value = DV_STR("1");
    assert_string_equal(plan(&world, arena), "status");
    assert_str(condition_of(&world, "Progressing", arena)->reason, "ReplicaSetUpdated");
    assert_str(condition_of(&world, "Available", arena)->reason, "MinimumReplicasUnavailable");
    assert_string_equal(plan(&world, arena), "");
    assert_int_equal(world.plan.again_ms, 601000);
    late = world.deployment->status;
    for (size_t i = 0; i < late.n_conditions; i++)
        late.conditions[i].last_update_time.seconds -= 601;
    world.deployment->status = late;
    assert_string_equal(plan(&world, arena), "status");
    assert_str(condition_of(&world, "Progressing", arena)->reason, "ProgressDeadlineExceeded");
    world.sets.n = 0;
    add_set(&world, "n1/1", 1, 2, arena);
    assert_string_equal(plan(&world, arena), "status");
    assert_str(condition_of(&world, "Progressing", arena)->reason, "NewReplicaSetAvailable");
    assert_str(condition_of(&world, "Available", arena)->status, "True");
    assert_string_equal(plan(&world, arena), "");
}

static void old_sets_go_when_all_is_done(void **state)
{
    static const struct row rows[] = {
        {"p0/0 o0/0 n2/2", "-p"    },
        {"p0/0 o0/0 n2/1", "status"},
        {"p1/0 o0/0 n2/2", "p0"    },
    };

    check("replicas: 2, revisionHistoryLimit: 1", rows, DV_COUNT(rows), 2, 3, *state);
}

/* ---- ReplicaSets ---- */

static const struct dv_api_pod *pod_of(const char *name, const char *more, struct dv_arena *arena)
{
    return read_as(DV_KIND_POD, arena,
                   dv_str_printf(arena,
                                 "{metadata: {name: %s, namespace: ns, uid: %s, labels: {app: x}, "
                                 "creationTimestamp: '1970-01-12T00:00:00Z', " OWNED("ReplicaSet",
                                                                                     "r") "}, %s}",
                                 name, name, more)
                       .p);
}

static void the_least_is_lost(void **state)
{
    struct dv_arena *arena = *state;
    const struct dv_api_pod *pods[] = {
        pod_of("ready",
               "status: {phase: Running, conditions: [{type: Ready, status: 'True', "
               "lastTransitionTime: '1970-01-12T00:00:00Z'}]}, spec: {nodeName: b}",
               arena),
        pod_of("crowded",
               "status: {phase: Running, conditions: [{type: Ready, status: 'True', "
               "lastTransitionTime: '1970-01-12T00:00:00Z'}]}, spec: {nodeName: a}",
               arena),
        pod_of("unready", "status: {phase: Running}, spec: {nodeName: a}", arena),
        pod_of("pending", "status: {phase: Pending}, spec: {nodeName: a}", arena),
        pod_of("unassigned", "status: {phase: Pending}", arena),
    };
    static const char *const expected[] = {"unassigned", "pending", "unready", "crowded", "ready"};
    const struct dv_replica_input input = {
        .now = {.is_set = true, .seconds = NOW}
    };

    dv_replica_sort(&input, pods, DV_COUNT(pods), arena);
    for (size_t i = 0; i < DV_COUNT(pods); i++)
        assert_str(pods[i]->metadata.name, expected[i]);
}

/* Each pod was compared with each: that took minutes. */
static void a_hundred_thousand_are_put_in_order(void **state)
{
    enum { N = 100000 };
    struct dv_arena *arena = *state;
    const struct dv_api_pod *crowded =
        pod_of("crowded", "status: {phase: Running}, spec: {nodeName: a}", arena);
    const struct dv_api_pod *alone =
        pod_of("alone", "status: {phase: Running}, spec: {nodeName: b}", arena);
    const struct dv_api_pod **pods = DV_NEW_ARRAY(arena, const struct dv_api_pod *, N);
    const struct dv_replica_input input = {
        .siblings = &crowded, .n_siblings = 1, .now = {.is_set = true, .seconds = NOW}
    };

    for (size_t i = 0; i < N; i++)
        pods[i] = i == 0 ? alone : crowded;
    dv_replica_sort(&input, pods, N, arena);
    assert_str(pods[0]->metadata.name, "crowded");
    assert_str(pods[N - 1]->metadata.name, "alone");
}

/* A name that is cut must not end with a dot, which no dash may follow. */
static void names_have_room_for_the_hash(void **state)
{
    assert_str(dv_template_name(DV_STR("web"), 10, DV_STR("abc"), *state), "web-abc");
    assert_str(dv_template_name(DV_STR("web.example"), 3, DV_STR("abc"), *state), "web-abc");
    assert_str(dv_template_name(DV_STR("web.example"), 4, DV_STR("abc"), *state), "web-abc");
}

static void a_set_has_as_many_as_it_wants(void **state)
{
    static const struct {
        int wanted;
        const char *first; /* of two pods */
        size_t n_created;
        size_t n_deleted;
    } rows[] = {
        {2, "status: {phase: Running}",   0, 0},
        {3, "status: {phase: Running}",   1, 0},
        {1, "status: {phase: Running}",   0, 1},
        {0, "status: {phase: Running}",   0, 2},
        {2, "status: {phase: Failed}",    1, 0}, /* what has ended does not count, and stays */
        {1, "status: {phase: Succeeded}", 0, 0},
    };
    struct dv_arena *arena = *state;

    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        const struct dv_api_pod *pods[] = {pod_of("a", rows[i].first, arena),
                                           pod_of("b", "status: {phase: Running}", arena)};
        const struct dv_replica_input input = {
            .set =
                read_as(DV_KIND_REPLICA_SET, arena,
                        dv_str_printf(
                            arena,
                            "{metadata: {name: r, namespace: ns, uid: owner}, spec: "
                            "{replicas: %d, selector: {matchLabels: {app: x}}, " TEMPLATE("i") "}}",
                            rows[i].wanted)
                            .p),
            .pods = pods,
            .n_pods = DV_COUNT(pods)};
        struct dv_plan plan;
        size_t n_created = 0;
        size_t n_deleted = 0;

        dv_plan_init(&plan, arena);
        dv_replica_plan(&input, &plan);
        for (size_t j = 0; j < plan.actions.n; j++) {
            n_created += plan.actions.v[j].type == DV_ACTION_CREATE;
            n_deleted += plan.actions.v[j].type == DV_ACTION_DELETE;
        }
        assert_int_equal(n_created, rows[i].n_created);
        assert_int_equal(n_deleted, rows[i].n_deleted);
    }
}

/* One number in a manifest must not fill the memory with pods that no node has room for. */
static void no_more_are_made_than_may_wait(void **state)
{
    static const struct {
        size_t n_waiting, n_placed;
        size_t n_created;
    } rows[] = {
        {19999, 0,     1  },
        {20000, 0,     0  },
        {20001, 0,     0  },
        {19000, 50000, 500},
    };
    struct dv_arena *arena = *state;
    const struct dv_api_pod *waiting = pod_of("a", "status: {phase: Pending}", arena);
    const struct dv_api_pod *placed = pod_of("b", "spec: {nodeName: node}", arena);

    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        size_t n = rows[i].n_waiting + rows[i].n_placed;
        const struct dv_api_pod **pods = DV_NEW_ARRAY(arena, const struct dv_api_pod *, n);
        const struct dv_replica_input input = {
            .set = read_as(
                DV_KIND_REPLICA_SET, arena,
                "{metadata: {name: r, namespace: ns, uid: owner}, spec: {replicas: 2000000000, "
                "selector: {matchLabels: {app: x}}, " TEMPLATE("i") "}}"),
            .pods = pods,
            .n_pods = n};
        struct dv_plan plan;
        size_t n_created = 0;

        for (size_t j = 0; j < n; j++)
            pods[j] = j < rows[i].n_waiting ? waiting : placed;
        dv_plan_init(&plan, arena);
        dv_replica_plan(&input, &plan);
        for (size_t j = 0; j < plan.actions.n; j++)
            n_created += plan.actions.v[j].type == DV_ACTION_CREATE;
        assert_int_equal(n_created, rows[i].n_created);
    }
}

#define a_test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        a_test(one_step_of_a_roll_out),
        a_test(another_number_in_the_middle),
        a_test(numbers_may_be_as_large_as_they_can),
        a_test(a_paused_deployment_only_scales),
        a_test(recreating_overlaps_nothing),
        a_test(going_back_gives_the_highest_number),
        a_test(progress_is_told),
        a_test(old_sets_go_when_all_is_done),
        a_test(no_more_are_made_than_may_wait),
        a_test(the_least_is_lost),
        a_test(a_hundred_thousand_are_put_in_order),
        a_test(names_have_room_for_the_hash),
        a_test(a_set_has_as_many_as_it_wants),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
