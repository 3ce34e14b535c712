/* golden_topology.c - replays golden/topology: every decision of merge.jsonl, device_hints.jsonl
 * and manager_config.jsonl is made again and compared.
 *
 *     golden_topology DIR      DIR holds these files
 *
 * Where the reference crashed there is nothing to compare: such results are left out, and counted
 * in a line of their own. */
#include "topology/topology.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "files.h"
#include "json/json.h"

#define TEXT_BYTES_MAX (1024u * 1024u)
#define CLOSEST "prefer-closest-numa-nodes"

struct score {
    unsigned n_passed;
    unsigned n_failed;
    unsigned n_left_out;
};

/* One line of a file, while it is replayed. */
struct record {
    const char *file;
    unsigned line;
    const struct dv_json *json;
    struct dv_arena *arena;
    struct score *score;
};

/* -- Reading -------------------------------------------------------------------------------- */

/* Ends the program when the call failed: the record is not what the corpus' README says. */
static void must(const struct record *record, bool is_ok, const struct dv_err *err)
{
    if (is_ok)
        return;
    printf("%s:%u: %s\n", record->file, record->line, err->msg);
    exit(2);
}

static const struct dv_json *get(const struct record *record, const struct dv_json *object,
                                 const char *key)
{
    struct dv_err err;
    const struct dv_json *node = dv_json_require(object, dv_str_from_c(key), &err);

    must(record, node != NULL, &err);
    return node;
}

/* The first child of a member; NULL without the member too. */
static const struct dv_json *first_in(const struct dv_json *object, dv_str key)
{
    const struct dv_json *node = dv_json_get(object, key);

    return node ? dv_json_first(node) : NULL;
}

static dv_str as_str(const struct record *record, const struct dv_json *node)
{
    struct dv_err err;
    dv_str value = {0};

    must(record, dv_json_as_str(node, &value, &err), &err);
    return value;
}

static bool as_bool(const struct record *record, const struct dv_json *node)
{
    struct dv_err err;
    bool value = false;

    must(record, dv_json_as_bool(node, &value, &err), &err);
    return value;
}

static int64_t as_number(const struct record *record, const struct dv_json *node)
{
    struct dv_err err;
    int64_t value = 0;

    must(record, dv_json_as_i64(node, &value, &err), &err);
    return value;
}

static int64_t *as_numbers(const struct record *record, const struct dv_json *array)
{
    int64_t *numbers = DV_NEW_ARRAY(record->arena, int64_t, dv_json_n(array));
    size_t n = 0;

    for (const struct dv_json *node = dv_json_first(array); node; node = dv_json_next(node))
        numbers[n++] = as_number(record, node);
    return numbers;
}

/* As /sys has them: numbers with something between. */
static dv_str as_text(const struct record *record, const struct dv_json *array, char separator)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    for (const struct dv_json *node = dv_json_first(array); node; node = dv_json_next(node)) {
        if (buf.n > 0)
            dv_buf_add_char(&buf, separator);
        dv_buf_add_i64(&buf, as_number(record, node));
    }
    return dv_str_copy(dv_buf_str(&buf), record->arena);
}

static struct dv_numa_machine read_machine(const struct record *record)
{
    dv_str online = as_text(record, get(record, record->json, "nodes"), ',');
    const struct dv_json *row = first_in(record->json, DV_STR("distances"));
    struct dv_numa_machine machine;
    struct dv_err err;

    must(record, dv_topology_machine_parse(online, record->arena, &machine, &err), &err);
    for (size_t i = 0; row && i < machine.n_nodes; i++, row = dv_json_next(row))
        must(record,
             dv_topology_distances_parse(&machine.nodes[i], as_text(record, row, ' '),
                                         record->arena, &err),
             &err);
    return machine;
}

/* -- Comparing ------------------------------------------------------------------------------ */

static struct dv_json *hint_json(const struct dv_numa_hint *hint, struct dv_arena *arena)
{
    struct dv_json *object = dv_json_new_object(arena);
    struct dv_json *affinity = hint->has_mask ? dv_json_new_array(arena) : dv_json_new_null(arena);

    for (dv_numa_mask mask = hint->mask; mask; mask &= mask - 1)
        dv_json_append(affinity, dv_json_new_i64(__builtin_ctzll(mask), arena));
    dv_json_set(object, DV_STR("affinity"), affinity, arena);
    dv_json_set(object, DV_STR("preferred"), dv_json_new_bool(hint->is_preferred, arena), arena);
    return object;
}

/* The same, or one of several that the reference had in different orders of the input. */
static bool is_as_wanted(const struct dv_json *got, const struct dv_json *wanted)
{
    const struct dv_json *any = first_in(wanted, DV_STR("anyOf"));

    if (!any)
        return dv_json_eq(got, wanted);
    while (any && !dv_json_eq(got, any))
        any = dv_json_next(any);
    return any;
}

static void compare(const struct record *record, dv_str what, const struct dv_json *got,
                    const struct dv_json *wanted)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    if (dv_json_get(wanted, DV_STR("panic"))) {
        record->score->n_left_out++;
    } else if (is_as_wanted(got, wanted)) {
        record->score->n_passed++;
    } else {
        record->score->n_failed++;
        dv_json_print(got, NULL, &buf);
        dv_buf_add(&buf, DV_STR(", want "));
        dv_json_print(wanted, NULL, &buf);
        printf("%s:%u: %.*s: got %s\n", record->file, record->line, DV_FMT(what), dv_buf_c(&buf));
    }
}

/* -- merge.jsonl ---------------------------------------------------------------------------- */

static struct dv_hint_list read_hints(const struct record *record, const struct dv_json *json)
{
    struct dv_numa_hint *hints = DV_NEW_ARRAY(record->arena, struct dv_numa_hint, dv_json_n(json));
    size_t n = 0;

    for (const struct dv_json *node = dv_json_first(json); node; node = dv_json_next(node)) {
        const struct dv_json *affinity = get(record, node, "affinity");
        struct dv_numa_hint *hint = &hints[n++];

        hint->has_mask = dv_json_is(affinity, DV_JSON_ARRAY);
        hint->is_preferred = as_bool(record, get(record, node, "preferred"));
        hint->mask =
            dv_topology_place_from_ids(as_numbers(record, affinity), dv_json_n(affinity)).mask;
    }
    return (struct dv_hint_list){hints, n, dv_json_is(json, DV_JSON_NULL)};
}

/* `policy` is "restricted" or "restricted+prefer-closest-numa-nodes". */
static struct dv_json *merge_json(const struct record *record, dv_str policy,
                                  const struct dv_numa_machine *machine,
                                  const struct dv_hint_list *lists, size_t n_lists)
{
    static const struct dv_topology_option options[] = {
        {DV_STR_INIT("max-allowable-numa-nodes"), DV_STR_INIT("64")  },
        {DV_STR_INIT(CLOSEST),                    DV_STR_INIT("true")},
    };
    size_t plus = dv_str_find(policy, DV_STR("+" CLOSEST));
    struct dv_json *json = dv_json_new_object(record->arena);
    struct dv_topology_verdict verdict = {0};
    struct dv_topology_config config;
    struct dv_err err;

    must(record,
         dv_topology_config_parse(dv_str_slice(policy, 0, plus), DV_STR("pod"), options,
                                  plus < policy.n ? 2 : 1, machine, &config, &err) &&
             dv_topology_merge(&config, machine, lists, n_lists, &verdict, &err),
         &err);
    dv_json_set(json, DV_STR("hint"), hint_json(&verdict.affinity, record->arena), record->arena);
    dv_json_set(json, DV_STR("admit"), dv_json_new_bool(verdict.is_admitted, record->arena),
                record->arena);
    return json;
}

static void replay_merge(const struct record *record)
{
    struct dv_numa_machine machine = read_machine(record);
    const struct dv_json *provider = first_in(record->json, DV_STR("providers"));
    const struct dv_json *want = first_in(record->json, DV_STR("results"));
    DV_VEC(struct dv_hint_list) lists = {0};

    for (; provider; provider = dv_json_next(provider))
        for (const struct dv_json *r = dv_json_first(provider); r; r = dv_json_next(r))
            *dv_vec_add_in(&lists, record->arena) = read_hints(record, r);
    for (; want; want = dv_json_next(want))
        compare(record, dv_json_key(want),
                merge_json(record, dv_json_key(want), &machine, lists.v, lists.n), want);
}

/* -- device_hints.jsonl --------------------------------------------------------------------- */

/* One resource's devices, each a group of its own; with those that are held but no longer listed.
 */
struct inventory {
    DV_VEC(struct dv_numa_group *) groups;
    struct dv_map by_id;
};

static struct dv_numa_group *find_device(const struct record *record, struct inventory *inventory,
                                         dv_str id)
{
    struct dv_numa_group *group = dv_map_get(&inventory->by_id, id);

    if (!group) {
        group = DV_NEW(record->arena, struct dv_numa_group);
        *dv_vec_add_in(&inventory->groups, record->arena) = group;
        (void)dv_map_set(&inventory->by_id, id, group); /* was not there */
    }
    return group;
}

static void add_devices(const struct record *record, dv_str resource, struct inventory *inventory)
{
    const struct dv_json *d = first_in(get(record, record->json, "resources"), resource);

    for (; d; d = dv_json_next(d)) {
        const struct dv_json *numa = get(record, d, "numa");
        struct dv_numa_group *group =
            find_device(record, inventory, as_str(record, get(record, d, "id")));

        group->n_listed = 1;
        group->n_available = as_bool(record, get(record, d, "healthy"));
        if (dv_json_is(numa, DV_JSON_ARRAY))
            group->place = dv_topology_place_from_ids(as_numbers(record, numa), dv_json_n(numa));
    }
}

static bool is_at(const struct record *record, const struct dv_json *object, const char *key,
                  dv_str value)
{
    return dv_str_eq(as_str(record, get(record, object, key)), value);
}

/* Who asks: a container, or with an empty name the whole pod. */
static void add_allocations(const struct record *record, dv_str resource, dv_str container,
                            struct inventory *inventory)
{
    const struct dv_json *a = first_in(record->json, DV_STR("allocations"));
    dv_str pod = as_str(record, get(record, record->json, "pod"));

    for (; a; a = dv_json_next(a)) {
        bool is_ours = is_at(record, a, "pod", pod) &&
                       (container.n == 0 || is_at(record, a, "container", container));
        const struct dv_json *id = first_in(a, DV_STR("ids"));

        for (; id && is_at(record, a, "resource", resource); id = dv_json_next(id)) {
            struct dv_numa_group *group = find_device(record, inventory, as_str(record, id));

            group->n_available = 0;
            group->n_held |= is_ours;
        }
    }
}

static struct dv_json *hints_json(const struct record *record, dv_str resource, dv_str container,
                                  uint64_t requested)
{
    const struct dv_json *id = first_in(get(record, record->json, "reusable"), resource);
    struct dv_numa_machine machine = read_machine(record);
    DV_VEC(struct dv_numa_group) groups = {0};
    struct inventory inventory = {0};
    struct dv_hint_list list = {0};
    struct dv_json *json;
    struct dv_err err;

    add_devices(record, resource, &inventory);
    add_allocations(record, resource, container, &inventory);
    for (; id && container.n > 0; id = dv_json_next(id))
        find_device(record, &inventory, as_str(record, id))->n_reusable = 1;
    for (size_t i = 0; i < inventory.groups.n; i++)
        *dv_vec_add_in(&groups, record->arena) = *inventory.groups.v[i];
    must(record,
         dv_topology_device_hints(&machine, groups.v, groups.n, requested, record->arena, &list,
                                  &err),
         &err);
    json = list.is_any ? dv_json_new_null(record->arena) : dv_json_new_array(record->arena);
    for (size_t i = 0; i < list.n_hints; i++)
        dv_json_append(json, hint_json(&list.hints[i], record->arena));
    dv_map_fini(&inventory.by_id);
    return json;
}

static uint64_t pod_request(const struct record *record, dv_str resource)
{
    const struct dv_json *c = first_in(record->json, DV_STR("containers"));
    DV_VEC(struct dv_topology_need) needs = {0};

    for (; c; c = dv_json_next(c)) {
        const struct dv_json *limit = dv_json_get(get(record, c, "limits"), resource);
        struct dv_topology_need *need = dv_vec_add_in(&needs, record->arena);

        need->limit = limit ? (uint64_t)as_number(record, limit) : 0;
        if (!is_at(record, c, "kind", DV_STR("regular")))
            need->kind = is_at(record, c, "kind", DV_STR("init")) ? DV_TOPOLOGY_NEED_INIT
                                                                  : DV_TOPOLOGY_NEED_SIDECAR;
    }
    return dv_topology_pod_request(needs.v, needs.n);
}

/* Adds the answers for what this container asks; for the whole pod with an empty name. */
static void add_answers(const struct record *record, const struct dv_json *container, dv_str name,
                        struct dv_json *answers)
{
    const struct dv_json *limit = first_in(container, DV_STR("limits"));

    for (; limit; limit = dv_json_next(limit)) {
        dv_str resource = dv_json_key(limit);
        uint64_t requested =
            name.n > 0 ? (uint64_t)as_number(record, limit) : pod_request(record, resource);

        if (dv_json_get(get(record, record->json, "resources"), resource))
            dv_json_set(answers, resource, hints_json(record, resource, name, requested),
                        record->arena);
    }
}

static void replay_device_hints(const struct record *record)
{
    const struct dv_json *c = first_in(record->json, DV_STR("containers"));
    const struct dv_json *wanted = get(record, record->json, "containerHints");
    struct dv_json *of_pod = dv_json_new_object(record->arena);

    for (; c; c = dv_json_next(c)) {
        struct dv_json *of_container = dv_json_new_object(record->arena);
        dv_str name = as_str(record, get(record, c, "name"));

        add_answers(record, c, name, of_container);
        add_answers(record, c, DV_STR_NONE, of_pod);
        compare(record, name, of_container, get(record, wanted, dv_str_to_c(name, record->arena)));
    }
    compare(record, DV_STR("pod"), of_pod, get(record, record->json, "podHints"));
}

/* -- manager_config.jsonl ------------------------------------------------------------------- */

static struct dv_numa_machine machine_of(const struct record *record, int64_t n_nodes)
{
    bool has_distances = as_bool(record, get(record, record->json, "distancesKnown"));
    dv_str online =
        n_nodes > 0 ? dv_str_printf(record->arena, "0-%lld", (long long)n_nodes - 1) : DV_STR("");
    struct dv_numa_machine machine;
    struct dv_err err;

    must(record, dv_topology_machine_parse(online, record->arena, &machine, &err), &err);
    for (size_t i = 0; has_distances && i < machine.n_nodes; i++)
        must(record,
             dv_topology_distances_parse(&machine.nodes[i], DV_STR("10"), record->arena, &err),
             &err);
    return machine;
}

/* Both sides as "policy, scope" or the error. */
static void replay_config(const struct record *record)
{
    static const char *const policies[] = {
        [DV_TOPOLOGY_NONE] = "none",
        [DV_TOPOLOGY_BEST_EFFORT] = "best-effort",
        [DV_TOPOLOGY_RESTRICTED] = "restricted",
        [DV_TOPOLOGY_SINGLE_NUMA_NODE] = "single-numa-node",
    };
    static const char *const scopes[] = {
        [DV_TOPOLOGY_SCOPE_NONE] = "none",
        [DV_TOPOLOGY_SCOPE_CONTAINER] = "container",
        [DV_TOPOLOGY_SCOPE_POD] = "pod",
    };
    const struct dv_json *json = record->json;
    struct dv_numa_machine machine =
        machine_of(record, as_number(record, get(record, json, "numaNodes")));
    const struct dv_json *o = first_in(json, DV_STR("options"));
    const struct dv_json *error = dv_json_get(json, DV_STR("error"));
    DV_VEC(struct dv_topology_option) options = {0};
    struct dv_topology_config config;
    struct dv_err err;
    dv_str got, want;

    for (; o; o = dv_json_next(o))
        *dv_vec_add_in(&options, record->arena) =
            (struct dv_topology_option){dv_json_key(o), as_str(record, o)};
    if (dv_topology_config_parse(as_str(record, get(record, json, "policy")),
                                 as_str(record, get(record, json, "scope")), options.v, options.n,
                                 &machine, &config, &err))
        got = dv_str_printf(record->arena, "%s, %s", policies[config.policy], scopes[config.scope]);
    else
        got = dv_str_from_c(err.msg);
    want = error ? as_str(record, error)
                 : dv_str_printf(record->arena, "%.*s, %.*s",
                                 DV_FMT(as_str(record, get(record, json, "effectivePolicy"))),
                                 DV_FMT(as_str(record, get(record, json, "effectiveScope"))));
    compare(record, DV_STR("config"), dv_json_new_str(got, record->arena),
            dv_json_new_str(want, record->arena));
}

static const struct golden_kind kinds[] = {
    {"device_hints.jsonl",   {"containerHints", "podHints"}, {NULL}},
    {"manager_config.jsonl", {"policy", "scope", "options"}, {NULL}},
    {"merge.jsonl",          {"providers", "results"},       {NULL}},
};

static void (*const replays[])(const struct record *record) = {
    replay_device_hints,
    replay_config,
    replay_merge,
};

static void replay_line(size_t kind, const char *file, unsigned line, dv_str text,
                        struct score *score)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct record record = {file, line, NULL, arena, score};
    struct dv_err err;

    record.json = dv_json_parse(text, NULL, arena, &err);
    must(&record, record.json != NULL, &err);
    replays[kind](&record);
}

static void replay_file(size_t kind, const char *name, FILE *file, void *ctx)
{
    char *text = NULL;
    size_t size = 0;
    ssize_t n;

    for (unsigned line = 1; (n = getline(&text, &size, file)) > 0; line++)
        replay_line(kind, name, line, (dv_str){text, (size_t)n}, ctx);
    free(text);
}

int main(int argc, char **argv)
{
    struct score score = {0};
    unsigned n_lost;

    if (argc != 2) {
        (void)fprintf(stderr, "usage: golden_topology DIR\n");
        return 2;
    }
    n_lost = golden_files(argv[1], kinds, DV_COUNT(kinds), replay_file, &score);
    score.n_failed += n_lost;
    if (score.n_left_out > 0)
        printf("%u left out: the reference crashed there\n", score.n_left_out);
    printf("%u passed, %u failed\n", score.n_passed, score.n_failed);
    return score.n_failed > 0;
}
