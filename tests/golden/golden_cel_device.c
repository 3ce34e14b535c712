/* golden_cel_device.c - replays golden/cel-device: every expression of cases.jsonl is compiled, and
 * evaluated on the devices of devices.jsonl that the case names.
 *
 *     golden_cel_device DIR      DIR holds these files */
#include "cel/cel.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "files.h"
#include "number/number.h"
#include "json/json.h"

#define TYPE_BYTES_MAX 10000u

/* What is compared, each on its own. */
enum field {
    OK,
    OUTPUT_TYPE,
    MAX_COST,
    RESULT,
    COST,
    N_FIELDS,
};

static const char *const field_names[] = {"compile.ok", "outputType", "maxCost", "result", "cost"};

struct score {
    unsigned n_equal[N_FIELDS];
    unsigned n_compared[N_FIELDS];
    unsigned n_passed;
    unsigned n_failed;
};

/* One case, while it is replayed. */
struct replay {
    struct dv_map *devices; /* by id: the JSON of a line */
    struct dv_arena *lines; /* what was read */
    const struct dv_json *json;
    struct dv_arena *arena;
    struct dv_arena *scratch;
    struct score *score;
    bool has_failed;
};

static dv_str member(const struct dv_json *object, const char *key)
{
    dv_str value = DV_STR_NONE;
    struct dv_err err;
    const struct dv_json *node = dv_json_get(object, dv_str_from_c(key));

    if (node && !dv_json_as_str(node, &value, &err))
        value = dv_json_number_text(node);
    return value;
}

static bool flag(const struct dv_json *object, const char *key)
{
    bool value = false;
    struct dv_err err;
    const struct dv_json *node = dv_json_get(object, dv_str_from_c(key));

    return node && dv_json_as_bool(node, &value, &err) && value;
}

static void compare(struct replay *replay, enum field field, dv_str device, dv_str got, dv_str want)
{
    bool is_equal = dv_str_eq(got, want);

    replay->score->n_compared[field]++;
    replay->score->n_equal[field] += is_equal;
    if (is_equal)
        return;
    replay->has_failed = true;
    printf("%.*s %.*s: %s: got %.*s, want %.*s: %.*s\n", DV_FMT(member(replay->json, "id")),
           DV_FMT(device), field_names[field], DV_FMT(got), DV_FMT(want),
           DV_FMT(member(replay->json, "expression")));
}

/* -- Devices --------------------------------------------------------------------------------- */

static const dv_str *strings_of(const struct dv_json *array, struct dv_arena *arena)
{
    dv_str *list = DV_NEW_ARRAY(arena, dv_str, dv_json_n(array));
    size_t n = 0;
    struct dv_err err;

    for (const struct dv_json *item = dv_json_first(array); item; item = dv_json_next(item))
        if (!dv_json_as_str(item, &list[n++], &err))
            exit(2);
    return list;
}

static const int64_t *ints_of(const struct dv_json *array, struct dv_arena *arena)
{
    int64_t *list = DV_NEW_ARRAY(arena, int64_t, dv_json_n(array));
    size_t n = 0;
    struct dv_err err;

    for (const struct dv_json *item = dv_json_first(array); item; item = dv_json_next(item))
        if (!dv_json_as_i64(item, &list[n++], &err))
            exit(2);
    return list;
}

static const bool *bools_of(const struct dv_json *array, struct dv_arena *arena)
{
    bool *list = DV_NEW_ARRAY(arena, bool, dv_json_n(array));
    size_t n = 0;
    struct dv_err err;

    for (const struct dv_json *item = dv_json_first(array); item; item = dv_json_next(item))
        if (!dv_json_as_bool(item, &list[n++], &err))
            exit(2);
    return list;
}

static bool is_key(const struct dv_json *node, const char *key)
{
    return dv_str_eq(dv_json_key(node), dv_str_from_c(key));
}

static void read_attribute(const struct dv_json *value, struct dv_arena *arena,
                           struct dv_cel_attribute *attribute)
{
    struct dv_err err;
    bool is_ok = true;

    if (!value)
        return;
    attribute->n = dv_json_n(value);
    if (is_key(value, "int")) {
        attribute->kind = DV_CEL_ATTRIBUTE_INT;
        is_ok = dv_json_as_i64(value, &attribute->i, &err);
    } else if (is_key(value, "bool")) {
        attribute->kind = DV_CEL_ATTRIBUTE_BOOL;
        is_ok = dv_json_as_bool(value, &attribute->b, &err);
    } else if (is_key(value, "string") || is_key(value, "version")) {
        attribute->kind =
            is_key(value, "string") ? DV_CEL_ATTRIBUTE_STRING : DV_CEL_ATTRIBUTE_VERSION;
        is_ok = dv_json_as_str(value, &attribute->s, &err);
    } else if (is_key(value, "ints")) {
        attribute->kind = DV_CEL_ATTRIBUTE_INTS;
        attribute->ints = ints_of(value, arena);
    } else if (is_key(value, "bools")) {
        attribute->kind = DV_CEL_ATTRIBUTE_BOOLS;
        attribute->bools = bools_of(value, arena);
    } else if (is_key(value, "strings") || is_key(value, "versions")) {
        attribute->kind =
            is_key(value, "strings") ? DV_CEL_ATTRIBUTE_STRINGS : DV_CEL_ATTRIBUTE_VERSIONS;
        attribute->strings = strings_of(value, arena);
    }
    if (!is_ok)
        exit(2);
}

static struct dv_cel_device *make_device(const struct dv_json *line, bool has_lists,
                                         struct dv_arena *arena)
{
    const struct dv_json *json = dv_json_get(line, DV_STR("device"));
    const struct dv_json *attributes = dv_json_get(json, DV_STR("attributes"));
    const struct dv_json *capacities = dv_json_get(json, DV_STR("capacity"));
    struct dv_cel_attribute *a =
        DV_NEW_ARRAY(arena, struct dv_cel_attribute, dv_json_n(attributes));
    struct dv_cel_capacity *c = DV_NEW_ARRAY(arena, struct dv_cel_capacity, dv_json_n(capacities));
    struct dv_cel_device_input *input = DV_NEW(arena, struct dv_cel_device_input);
    struct dv_err err;

    input->driver = member(line, "driver");
    input->attributes = a;
    input->capacities = c;
    input->allow_multiple_allocations = flag(json, "allowMultipleAllocations");
    input->list_type_attributes = has_lists;
    for (const struct dv_json *node = dv_json_first(attributes); node; node = dv_json_next(node)) {
        a[input->n_attributes].name = dv_json_key(node);
        read_attribute(dv_json_first(node), arena, &a[input->n_attributes++]);
    }
    for (const struct dv_json *node = dv_json_first(capacities); node; node = dv_json_next(node)) {
        struct dv_cel_capacity *capacity = &c[input->n_capacities++];

        capacity->name = dv_json_key(node);
        if (!dv_quantity_parse_json(member(node, "value"), arena, &capacity->value, &err)) {
            printf("%s\n", err.msg);
            exit(2);
        }
    }
    return dv_cel_device_new(input, arena);
}

/* -- Cases ----------------------------------------------------------------------------------- */

static void replay_result(struct replay *replay, const struct dv_cel_expr *expr, bool has_lists,
                          const struct dv_json *result)
{
    dv_str id = member(result, "device");
    const struct dv_json *line = dv_map_get(replay->devices, id);
    struct dv_cel_budget budget = {.cost_max = DV_CEL_COST_MAX};
    struct dv_err err;
    bool is_match = false;
    bool is_ok;

    if (!line) {
        printf("no device %.*s\n", DV_FMT(id));
        exit(2);
    }
    is_ok = dv_cel_eval(expr, make_device(line, has_lists, replay->arena), &budget, replay->scratch,
                        &is_match, &err);
    compare(replay, RESULT, id,
            is_ok ? (is_match ? DV_STR("true") : DV_STR("false")) : DV_STR("error"),
            member(result, "result"));
    if (dv_json_get(result, DV_STR("cost")))
        compare(replay, COST, id,
                dv_str_printf(replay->arena, "%llu", (unsigned long long)budget.cost),
                member(result, "cost"));
    dv_arena_reset(replay->scratch);
}

static void compare_compiled(struct replay *replay, const struct dv_cel_expr *expr,
                             const struct dv_json *want)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf type;

    dv_buf_init(&type, TYPE_BYTES_MAX);
    dv_cel_print_type(expr, &type);
    compare(replay, OUTPUT_TYPE, DV_STR_NONE, dv_buf_str(&type), member(want, "outputType"));
    compare(replay, MAX_COST, DV_STR_NONE,
            dv_str_printf(replay->arena, "%llu", (unsigned long long)dv_cel_max_cost(expr)),
            member(want, "maxCost"));
}

static void replay_case(struct replay *replay)
{
    const struct dv_json *features = dv_json_get(replay->json, DV_STR("features"));
    const struct dv_json *want = dv_json_get(replay->json, DV_STR("compile"));
    const struct dv_json *results = dv_json_get(replay->json, DV_STR("results"));
    struct dv_cel_options options = {0};
    struct dv_cel_expr *expr;
    struct dv_err err;

    options.env =
        dv_str_eq(member(replay->json, "env"), DV_STR("new")) ? DV_CEL_ENV_NEW : DV_CEL_ENV_STORED;
    options.features.consumable_capacity = flag(features, "consumableCapacity");
    options.features.list_type_attributes = flag(features, "listTypeAttributes");
    expr = dv_cel_compile(member(replay->json, "expression"), &options, replay->arena, &err);
    compare(replay, OK, DV_STR_NONE, expr ? DV_STR("true") : DV_STR("false"),
            flag(want, "ok") ? DV_STR("true") : DV_STR("false"));
    if (!expr && flag(want, "ok"))
        printf("    %s\n", err.msg);
    if (!expr || !flag(want, "ok"))
        return;
    compare_compiled(replay, expr, want);
    for (const struct dv_json *result = dv_json_first(results); result;
         result = dv_json_next(result))
        replay_result(replay, expr, options.features.list_type_attributes, result);
}

static void add_device(struct replay *replay, const struct dv_json *json)
{
    /* The map hands it back as it came. */
    (void)dv_map_set(replay->devices, member(json, "id"), (void *)(uintptr_t)json);
}

static void add_case(struct replay *replay, const struct dv_json *json)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    replay->json = json;
    replay->arena = arena;
    replay->has_failed = false;
    replay_case(replay);
    if (replay->has_failed)
        replay->score->n_failed++;
    else
        replay->score->n_passed++;
}

static const struct golden_kind kinds[] = {
    {"devices.jsonl", {"device", "driver"},      {NULL}},
    {"cases.jsonl",   {"expression", "compile"}, {NULL}},
};

static void (*const uses[])(struct replay *replay, const struct dv_json *json) = {
    add_device,
    add_case,
};

static void replay_file(size_t kind, const char *name, FILE *file, void *ctx)
{
    struct replay *replay = ctx;
    char *text = NULL;
    size_t size = 0;
    ssize_t n;

    while ((n = getline(&text, &size, file)) > 0) {
        dv_str line = dv_str_copy((dv_str){text, (size_t)n}, replay->lines);
        struct dv_err err;
        const struct dv_json *json = dv_json_parse(line, NULL, replay->lines, &err);

        if (!json) {
            printf("%s: %s\n", name, err.msg);
            exit(2);
        }
        uses[kind](replay, json);
    }
    free(text);
}

int main(int argc, char **argv)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    DV_CLEANUP(dv_map_fini) struct dv_map devices;
    struct score score = {0};
    struct replay replay = {
        .devices = &devices, .lines = arena, .scratch = scratch, .score = &score};
    unsigned n_lost;

    dv_map_init(&devices);
    if (argc != 2) {
        (void)fprintf(stderr, "usage: %s DIR\n", argv[0]);
        return 2;
    }
    n_lost = golden_files(argv[1], kinds, DV_COUNT(kinds), replay_file, &replay);
    score.n_failed += n_lost;
    for (size_t i = 0; i < N_FIELDS; i++)
        printf("%-12s%6u of %6u equal, %.2f%%\n", field_names[i], score.n_equal[i],
               score.n_compared[i], 100.0 * score.n_equal[i] / (score.n_compared[i] + 1e-9));
    printf("%u passed, %u failed\n", score.n_passed, score.n_failed);
    return score.n_failed > 0;
}
