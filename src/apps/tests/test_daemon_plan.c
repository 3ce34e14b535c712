/* test_daemon_plan.c - what is decided about DaemonSets, as tables.
 *
 * Places are written as a word for each node: its sign, its name, and its pods in the order of
 * their ages. A node with `!` has a taint that keeps pods away, one with `#` a taint that drives
 * them out, one with `~` lacks the label that the set wants, and one with `?` does not exist. A pod
 * is two letters: O or N for an old or the new template; A for available, R for ready a moment ago,
 * n for not ready, F for failed, S for succeeded, D for being deleted, U for not scheduled yet.
 * Actions are `+a` for a pod on node a, and `-a0` for the deletion of its first pod. */
#include "support/dvtest.h"

#include <stdbool.h>
#include <string.h>

#include "apps/plan/apps_plan.h"
#include "apps/plan/daemon_set.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/vec.h"
#include "resource/resource.h"
#include "json/json.h"

#define NOW 1000000
#define MIN_READY 10

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

static void *read_as(const struct dv_message *message, const char *yaml, struct dv_arena *arena)
{
    void *value = dv_arena_alloc(arena, message->size, message->align);
    struct dv_err err;
    const struct dv_json *doc = dv_yaml_parse(dv_str_from_c(yaml), NULL, arena, &err);

    assert_ok(doc, &err);
    assert_ok(dv_decode_json(message, doc, DV_UNKNOWN_DROP, arena, value, NULL, &err), &err);
    return value;
}

/* ---- a world of a few nodes ---- */

struct world {
    struct dv_arena *arena;
    struct dv_api_daemon_set *set;
    DV_VEC(const struct dv_api_node *) nodes;
    DV_VEC(const struct dv_api_pod *) pods;
    DV_VEC(const struct dv_api_controller_revision *) revisions;
    DV_VEC(struct dv_daemon_wait) waits;
    bool has_failed;
    struct dv_plan plan;
};

static struct dv_api_daemon_set *set_of(const char *strategy, struct dv_arena *arena)
{
    const struct dv_kind *kind = dv_kind(DV_KIND_DAEMON_SET);
    struct dv_api_daemon_set *set =
        read_as(&dv_message_daemon_set,
                dv_str_printf(
                    arena,
                    "{metadata: {name: d, namespace: ns, uid: set-uid, generation: 3, annotations: "
                    "{deprecated.daemonset.template.generation: '2'}}, spec: {minReadySeconds: 10, "
                    "revisionHistoryLimit: 1, selector: {matchLabels: {app: x}}, template: "
                    "{metadata: {labels: {app: x}}, spec: {nodeSelector: {has: gpu}, containers: "
                    "[{name: c, image: i}]}}, updateStrategy: %s}}",
                    strategy)
                    .p,
                arena);

    dv_default(kind, &kind->versions[0], set, (struct dv_time){0}, arena);
    return set;
}

static void add_revision(struct world *world, const char *name, dv_str data, int64_t number)
{
    struct dv_api_controller_revision *revision =
        read_as(&dv_message_controller_revision,
                dv_str_printf(
                    world->arena,
                    "{metadata: {name: d-%s, namespace: ns, uid: %s, labels: {app: x, "
                    "controller-revision-hash: %s}, ownerReferences: [{apiVersion: apps/v1, kind: "
                    "DaemonSet, name: d, uid: set-uid, controller: true}]}}",
                    name, name, name)
                    .p,
                world->arena);

    revision->data = data;
    revision->revision = number;
    *dv_vec_add_in(&world->revisions, world->arena) = revision;
}

static void add_node(struct world *world, char sign, char name)
{
    const char *taint = sign == '!'   ? "{key: t, effect: NoSchedule}"
                        : sign == '#' ? "{key: t, effect: NoExecute}"
                                      : "";

    if (sign != '?')
        *dv_vec_add_in(&world->nodes, world->arena) =
            read_as(&dv_message_node,
                    dv_str_printf(world->arena,
                                  "{metadata: {name: %c, labels: {has: %s}}, spec: {taints: [%s]}}",
                                  name, sign == '~' ? "none" : "gpu", taint)
                        .p,
                    world->arena);
}

static void set_ready(struct dv_api_pod *pod, char how, struct dv_arena *arena)
{
    struct dv_api_pod_condition *ready = DV_NEW(arena, struct dv_api_pod_condition);

    ready->type = DV_STR("Ready");
    ready->status = how == 'A' || how == 'R' ? DV_STR("True") : DV_STR("False");
    ready->last_transition_time.is_set = true;
    ready->last_transition_time.seconds = how == 'A' ? NOW - MIN_READY : NOW - MIN_READY + 1;
    pod->status.conditions = ready;
    pod->status.n_conditions = 1;
}

static void add_pod(struct world *world, char node, size_t i, const char letters[2])
{
    struct dv_api_pod *pod =
        read_as(&dv_message_pod,
                dv_str_printf(
                    world->arena,
                    "{metadata: {name: %c%zu, namespace: ns, uid: %c%zu, labels: {app: x, "
                    "controller-revision-hash: %s}, ownerReferences: [{apiVersion: apps/v1, kind: "
                    "DaemonSet, name: d, uid: set-uid, controller: true}]}, spec: {%s}}",
                    node, i, node, i, letters[0] == 'N' ? "new" : "old",
                    letters[1] == 'U'
                        ? dv_str_printf(
                              world->arena,
                              "affinity: {nodeAffinity: "
                              "{requiredDuringSchedulingIgnoredDuringExecution: "
                              "{nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: "
                              "In, values: [%c]}]}]}}}",
                              node)
                              .p
                        : dv_str_printf(world->arena, "nodeName: %c", node).p)
                    .p,
                world->arena);

    pod->metadata.creation_timestamp.is_set = true;
    pod->metadata.creation_timestamp.seconds = NOW - 1000 + (int64_t)i;
    pod->metadata.deletion_timestamp.is_set = letters[1] == 'D';
    pod->status.phase = letters[1] == 'F'   ? DV_STR("Failed")
                        : letters[1] == 'S' ? DV_STR("Succeeded")
                                            : DV_STR("Running");
    set_ready(pod, letters[1], world->arena);
    *dv_vec_add_in(&world->pods, world->arena) = pod;
}

static struct world world_of(const char *strategy, const char *places, struct dv_arena *arena)
{
    struct world world = {.arena = arena, .set = set_of(strategy, arena)};

    add_revision(&world, "old", DV_STR("{}"), 1);
    add_revision(&world, "new", dv_daemon_revision_data(world.set, arena), 2);
    while (*places) {
        char sign = strchr("!#~?", *places) ? *places++ : ' ';
        char name = *places++;

        add_node(&world, sign, name);
        for (size_t i = 0; *places && *places != ' '; i++, places += 2)
            add_pod(&world, name, i, places);
        places += *places == ' ';
    }
    return world;
}

static const char *plan(struct world *world)
{
    const struct dv_daemon_input input = {
        .set = world->set,
        .nodes = world->nodes.v,
        .n_nodes = world->nodes.n,
        .pods = world->pods.v,
        .n_pods = world->pods.n,
        .revisions = world->revisions.v,
        .n_revisions = world->revisions.n,
        .waits = world->waits.v,
        .n_waits = world->waits.n,
        .has_failed = world->has_failed,
        .now = {.is_set = true, .seconds = NOW}
    };
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, 4096);
    dv_plan_init(&world->plan, world->arena);
    dv_daemon_plan(&input, &world->plan);
    for (size_t i = 0; i < world->plan.actions.n; i++) {
        const struct dv_action *action = &world->plan.actions.v[i];

        dv_buf_add_c(&buf, buf.n > 0 ? " " : "");
        if (action->type == DV_ACTION_CREATE && action->kind->id == DV_KIND_POD)
            dv_buf_printf(&buf, "+%.*s", DV_FMT(dv_daemon_node_of(action->value)));
        else if (action->type == DV_ACTION_DELETE)
            dv_buf_printf(&buf, "-%.*s", DV_FMT(action->name));
        else if (action->type == DV_ACTION_CHANGE_STATUS)
            dv_buf_add_c(&buf, "status");
        else
            dv_buf_printf(&buf, "%s %.*s", action->type == DV_ACTION_CREATE ? "new" : "change",
                          DV_FMT(action->name));
    }
    dv_buf_add_char(&buf, 0);
    return dv_str_copy(dv_buf_str(&buf), world->arena).p;
}

struct row {
    const char *places;
    const char *actions;
};

static void check(const char *strategy, const struct row *rows, size_t n, struct dv_arena *arena)
{
    for (size_t i = 0; i < n; i++) {
        struct world world = world_of(strategy, rows[i].places, arena);

        assert_string_equal(plan(&world), rows[i].actions);
    }
}

#define UNAVAILABLE(n) "{rollingUpdate: {maxUnavailable: " n "}}"
#define SURGE(n) "{rollingUpdate: {maxUnavailable: 0, maxSurge: " n "}}"

/* ---- tables ---- */

static void each_node_has_the_pod_that_it_shall_have(void **state)
{
    static const struct row rows[] = {
        {"a b",      "+a +b" },
        {"aNA b",    "+b"    },
        {"!a ~b #c", "status"}, /* nothing is to run there */
        {"!aNA",     "status"}, /* a taint that comes later drives nobody out */
        {"#aNA",     "-a0"   },
        {"~aNA",     "-a0"   },
        {"aNANA",    "-a1"   }, /* the oldest stays */
        {"aNUNA",    "-a0"   }, /* and one that is on the node before one that waits for it */
        {"aND",      "status"}, /* until it is gone */
        {"aNF",      "-a0"   },
        {"aNS",      "-a0"   },
        {"?aNU bNA", "-a0"   },
        {"?aNA bNA", "status"}, /* what was on a node that is gone is the collector's */
    };

    check(UNAVAILABLE("1"), rows, DV_COUNT(rows), *state);
}

static void old_pods_give_way_a_few_at_a_time(void **state)
{
    static const struct row one[] = {
        {"aOA bOA cOA", "-a0"    },
        {"aNA bOA cOA", "-b0"    },
        {"aNR bOA cOA", "status" }, /* it has not been ready for long enough */
        {"aNn bOA cOA", "status" },
        {"aOD bOA cOA", "status" },
        {"aOn bOA cOA", "-a0"    }, /* nothing is lost with it */
        {"aOn bOn cOA", "-a0 -b0"},
        {"aNA bNA cNA", "status" },
    };
    static const struct row all[] = {
        {"aOA bOA cOA", "-a0 -b0 -c0"},
        {"aNn bOA cOA", "-b0 -c0"    },
    };
    static const struct row half[] = {
        {"aOA bOA cOA", "-a0 -b0"}, /* of three, rounded up */
    };
    static const struct row none[] = {
        {"aOA bOn", "status"},
    };

    check(UNAVAILABLE("1"), one, DV_COUNT(one), *state);
    check(UNAVAILABLE("'100%'"), all, DV_COUNT(all), *state);
    check(UNAVAILABLE("'50%'"), half, DV_COUNT(half), *state);
    check("{type: OnDelete}", none, DV_COUNT(none), *state);
}

static void new_pods_come_first_while_surging(void **state)
{
    static const struct row rows[] = {
        {"aOA bOA",   "+a"    },
        {"aOANn bOA", "status"},
        {"aOANR bOA", "status"},
        {"aOANA bOA", "-a0"   },
        {"aNA bOA",   "+b"    },
        {"aOn bOA",   "+a +b" }, /* one that does not work is not waited for */
        {"aOnNn",     "-a0"   },
        {"aNA bNA",   "status"},
        {"aOD",       "+a"    }, /* beside one that ends */
        {"aODNA",     "status"},
        {"aOANnNn",   "-a2"   },
        {"!aOA bOA",  "-a0 +b"}, /* b works without it
  */
        {"!aOA bOn",  "+b"    }, /* it stays until another works */
        {"!aOA bNA",  "-a0"   },
        {"!aOn bNA",  "-a0"   },
    };

    check(SURGE("1"), rows, DV_COUNT(rows), *state);
}

static void a_failed_pod_waits_where_others_failed(void **state)
{
    struct world world = world_of(UNAVAILABLE("1"), "aNF", *state);

    *dv_vec_add_in(&world.waits, world.arena) = (struct dv_daemon_wait){world.pods.v[0], 1500};
    assert_string_equal(plan(&world), "status");
    assert_int_equal(world.plan.again_ms, 1500);
    world.waits.n = 0;
    assert_string_equal(plan(&world), "-a0");
    assert_str(dv_str_printf(*state, "%.*s", DV_FMT(world.plan.actions.v[0].message)),
               "Found failed daemon pod ns/a0 on node a, will try to kill it");
}

static void a_template_has_a_revision(void **state)
{
    struct world world = world_of(UNAVAILABLE("1"), "aNA", *state);
    const struct dv_api_controller_revision *made;

    world.revisions.n = 1; /* the old one */
    (void)plan(&world);
    assert_int_equal(world.plan.actions.n, 1);
    made = world.plan.actions.v[0].value;
    assert_int_equal(made->revision, 2);
    assert_true(dv_str_starts_with(made->metadata.name, DV_STR("d-")));
    assert_str(
        made->data,
        "{\"spec\":{\"template\":{\"$patch\":\"replace\",\"metadata\":{\"labels\":{\"app\":"
        "\"x\"}},\"spec\":{\"containers\":[{\"image\":\"i\",\"imagePullPolicy\":\"Always\","
        "\"name\":\"c\",\"resources\":{},\"terminationMessagePath\":\"/dev/termination-log\","
        "\"terminationMessagePolicy\":\"File\"}],\"dnsPolicy\":\"ClusterFirst\","
        "\"nodeSelector\":{\"has\":\"gpu\"},\"restartPolicy\":\"Always\",\"schedulerName\":"
        "\"default-scheduler\",\"securityContext\":{},\"terminationGracePeriodSeconds\":30}}}"
        "}");
}

static void going_back_raises_the_number(void **state)
{
    struct world world = world_of(UNAVAILABLE("1"), "aNA", *state);
    struct dv_api_controller_revision *raised = DV_NEW(*state, struct dv_api_controller_revision);

    add_revision(&world, "newer", DV_STR("{}"), 7);
    assert_string_equal(plan(&world), "change d-new");
    *raised = *world.revisions.v[1];
    assert_true(world.plan.actions.v[0].change(&world.plan.actions.v[0], raised, *state));
    assert_int_equal(raised->revision, 8);
}

/* What an older server left out of the data is filled in before it is compared. */
static void data_in_other_words_is_the_same_template(void **state)
{
    struct world world = world_of(UNAVAILABLE("1"), "aNA", *state);

    world.revisions.n = 1;
    add_revision(
        &world, "new",
        DV_STR("{\"spec\":{\"template\":{\"$patch\":\"replace\",\"metadata\":{\"labels\":{"
               "\"app\":\"x\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]"
               ",\"nodeSelector\":{\"has\":\"gpu\"}}}}}"),
        2);
    assert_string_equal(plan(&world), "status");
}

static void old_revisions_go_unless_pods_have_them(void **state)
{
    struct world world = world_of(UNAVAILABLE("1"), "aNA bNA", *state);

    world.revisions.n = 0;
    add_revision(&world, "r1", DV_STR("{}"), 1);
    add_revision(&world, "old", DV_STR("{}"), 2);
    add_revision(&world, "r3", DV_STR("{}"), 3);
    add_revision(&world, "new", dv_daemon_revision_data(world.set, *state), 4);
    assert_string_equal(plan(&world), "-d-r1 -d-old");
    world = world_of("{type: OnDelete}", "aNA bOA", *state);
    world.revisions.n = 0;
    add_revision(&world, "old", DV_STR("{}"), 1);
    add_revision(&world, "r2", DV_STR("{}"), 2);
    add_revision(&world, "new", dv_daemon_revision_data(world.set, *state), 4);
    assert_string_equal(plan(&world), "-d-r2");
}

static void old_revisions_go_also_while_pods_are_missing(void **state)
{
    struct world world = world_of(UNAVAILABLE("1"), "a b", *state);

    world.revisions.n = 0;
    add_revision(&world, "r1", DV_STR("{}"), 1);
    add_revision(&world, "r2", DV_STR("{}"), 2);
    add_revision(&world, "new", dv_daemon_revision_data(world.set, *state), 3);
    assert_string_equal(plan(&world), "-d-r1");
}

static void pods_are_adopted_and_released(void **state)
{
    struct world world = world_of(UNAVAILABLE("1"), "aNA bNA", *state);
    struct dv_api_pod *orphan = DV_NEW(*state, struct dv_api_pod);
    struct dv_api_pod *stranger = DV_NEW(*state, struct dv_api_pod);

    *orphan = *world.pods.v[0];
    orphan->metadata.n_owner_references = 0;
    *stranger = *world.pods.v[1];
    stranger->metadata.n_labels = 0;
    world.pods.v[0] = orphan;
    world.pods.v[1] = stranger;
    assert_string_equal(plan(&world), "change a0 change b0");
    assert_true(world.plan.actions.v[0].change(&world.plan.actions.v[0], orphan, *state));
    assert_str(dv_controller_of(&orphan->metadata)->uid, "set-uid");
    assert_false(world.plan.actions.v[0].change(&world.plan.actions.v[0], orphan, *state));
    assert_true(world.plan.actions.v[1].change(&world.plan.actions.v[1], stranger, *state));
    assert_int_equal(stranger->metadata.n_owner_references, 0);
    assert_string_equal(plan(&world), "+b");
}

static void a_pod_of_another_namespace_is_no_pod_of_the_set(void **state)
{
    struct world world = world_of(UNAVAILABLE("1"), "aNA", *state);
    struct dv_api_pod *pod = DV_NEW(*state, struct dv_api_pod);

    *pod = *world.pods.v[0]; /* with the uid of the set as its controller */
    pod->metadata.namespace = DV_STR("elsewhere");
    world.pods.v[0] = pod;
    assert_string_equal(plan(&world), "+a");
    pod->metadata.n_owner_references = 0;
    assert_string_equal(plan(&world), "+a");
}

static void nothing_is_made_that_the_selector_excludes(void **state)
{
    static const char *const added[] = {"controller-revision-hash", "pod-template-generation"};

    for (size_t i = 0; i < DV_COUNT(added); i++)
        for (size_t n_revisions = 0; n_revisions <= 2; n_revisions += 2) {
            struct world world = world_of(UNAVAILABLE("1"), "a", *state);

            if (n_revisions == 0 && i == 1)
                continue; /* revisions do not have that label */
            world.revisions.n = n_revisions;
            world.set->spec.selector = read_as(
                &dv_message_label_selector,
                dv_str_printf(*state,
                              "{matchLabels: {app: x}, matchExpressions: [{key: %s, operator: "
                              "DoesNotExist}]}",
                              added[i])
                    .p,
                *state);
            (void)plan(&world);
            for (size_t k = 0; k < world.plan.actions.n; k++)
                assert_int_not_equal(world.plan.actions.v[k].type, DV_ACTION_CREATE);
        }
}

static void the_largest_number_of_a_revision_stays_it(void **state)
{
    struct world world = world_of(UNAVAILABLE("1"), "aNA", *state);
    struct dv_api_controller_revision *largest = DV_NEW(*state, struct dv_api_controller_revision);
    struct dv_api_controller_revision *wanted = DV_NEW(*state, struct dv_api_controller_revision);

    *largest = *world.revisions.v[0]; /* the old one */
    largest->revision = INT64_MAX;
    *wanted = *world.revisions.v[1];
    world.revisions.v[0] = largest;
    world.revisions.v[1] = wanted;
    (void)plan(&world);
    assert_int_equal(world.plan.actions.n, 1);
    assert_true(world.plan.actions.v[0].change(&world.plan.actions.v[0], wanted, *state));
    assert_true(wanted->revision == INT64_MAX);
    assert_string_equal(plan(&world), "status");
    world.revisions.n = 1;
    (void)plan(&world);
    assert_true(
        ((const struct dv_api_controller_revision *)world.plan.actions.v[0].value)->revision ==
        INT64_MAX);
}

static void the_status_counts(void **state)
{
    struct world world = world_of("{type: OnDelete}", "aNA bOR cOn d !eNA ~fND", *state);
    struct dv_api_daemon_set done = {0};
    const struct dv_api_daemon_set_status *status = &done.status;

    world.has_failed = true; /* so that nothing but the status is planned */
    assert_string_equal(plan(&world), "status");
    world.has_failed = false;
    assert_true(world.plan.actions.v[0].change(&world.plan.actions.v[0], &done, *state));
    assert_int_equal(status->desired_number_scheduled, 4);
    assert_int_equal(status->current_number_scheduled, 3);
    assert_int_equal(status->number_ready, 2);
    assert_int_equal(status->number_available, 1);
    assert_int_equal(status->number_unavailable, 3);
    assert_int_equal(status->number_misscheduled, 2);
    assert_int_equal(status->observed_generation, 0);
    assert_int_equal(world.plan.again_ms, MIN_READY * 1000);
}

static void a_pod_is_bound_to_its_node(void **state)
{
    struct dv_arena *arena = *state;
    struct world world = world_of(UNAVAILABLE("1"), "a", arena);
    const struct dv_api_pod *pod;
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, 65536);
    world.set->spec.template.spec.affinity = read_as(
        &dv_message_affinity,
        "{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
        "[{matchExpressions: [{key: has, operator: Exists}]}]}, "
        "preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: "
        "{matchExpressions: [{key: z, operator: Exists}]}}]}}",
        arena);
    world.revisions.n = 0;
    add_revision(&world, "new", dv_daemon_revision_data(world.set, arena), 1);
    assert_string_equal(plan(&world), "+a");
    pod = world.plan.actions.v[0].value;
    dv_encode_json_text(&dv_message_node_affinity, pod->spec.affinity->node_affinity, NULL,
                        DV_STR_NONE, &buf);
    assert_str(
        dv_buf_str(&buf),
        "{\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":[{"
        "\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"a\"]}]"
        "}]},\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":1,"
        "\"preference\":{\"matchExpressions\":[{\"key\":\"z\",\"operator\":\"Exists\"}]}}]}");
    assert_int_equal(pod->spec.n_tolerations, 6);
    assert_str(pod->metadata.generate_name, "d-");
    assert_str(dv_entry_find(pod->metadata.labels, pod->metadata.n_labels,
                             DV_STR("pod-template-generation"))
                   ->value,
               "2");
    assert_str(
        dv_entry_find(pod->metadata.labels, pod->metadata.n_labels, DV_STR(DV_REVISION_HASH_LABEL))
            ->value,
        "new");
    world.set->spec.template.spec.host_network = true;
    assert_int_equal(dv_daemon_pod_spec(world.set, DV_STR("a"), arena)->n_tolerations, 7);
}

static void shares_are_rounded(void **state)
{
    static const struct {
        struct dv_int_or_str value;
        int64_t total;
        bool is_up;
        int64_t is;
    } rows[] = {
        {{.number = 3},                                  10, true,  3},
        {{.text = DV_STR_INIT("25%"), .is_text = true},  10, true,  3},
        {{.text = DV_STR_INIT("25%"), .is_text = true},  10, false, 2},
        {{.text = DV_STR_INIT("100%"), .is_text = true}, 7,  true,  7},
        {{.text = DV_STR_INIT("0%"), .is_text = true},   7,  true,  0},
        {{.text = DV_STR_INIT("x"), .is_text = true},    7,  true,  0},
        {{.text = DV_STR_INIT("%"), .is_text = true},    7,  true,  0},
    };

    (void)state;
    for (size_t i = 0; i < DV_COUNT(rows); i++)
        assert_int_equal(dv_scaled(&rows[i].value, rows[i].total, rows[i].is_up), rows[i].is);
    assert_int_equal(dv_scaled(NULL, 5, true), 0);
}

static void equal_templates_have_equal_hashes(void **state)
{
    const struct dv_api_daemon_set *a = set_of("{}", *state);
    const struct dv_api_daemon_set *b = set_of("{type: OnDelete}", *state);
    struct dv_api_pod_template_spec other = a->spec.template;
    const int64_t collisions = 1;
    dv_str hash = dv_template_hash(&a->spec.template, NULL, *state);

    assert_true(dv_str_eq(hash, dv_template_hash(&b->spec.template, NULL, *state)));
    assert_false(dv_str_eq(hash, dv_template_hash(&b->spec.template, &collisions, *state)));
    other.spec.host_pid = true;
    assert_false(dv_str_eq(hash, dv_template_hash(&other, NULL, *state)));
}

#define a_test(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        a_test(each_node_has_the_pod_that_it_shall_have),
        a_test(old_pods_give_way_a_few_at_a_time),
        a_test(new_pods_come_first_while_surging),
        a_test(a_failed_pod_waits_where_others_failed),
        a_test(a_template_has_a_revision),
        a_test(going_back_raises_the_number),
        a_test(data_in_other_words_is_the_same_template),
        a_test(old_revisions_go_unless_pods_have_them),
        a_test(old_revisions_go_also_while_pods_are_missing),
        a_test(pods_are_adopted_and_released),
        a_test(a_pod_of_another_namespace_is_no_pod_of_the_set),
        a_test(nothing_is_made_that_the_selector_excludes),
        a_test(the_largest_number_of_a_revision_stays_it),
        a_test(the_status_counts),
        a_test(a_pod_is_bound_to_its_node),
        a_test(shares_are_rounded),
        a_test(equal_templates_have_equal_hashes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
