/* custom.c - compiles definitions: schemas, columns, and the order of versions. */
#include "resource/custom.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/ascii.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "resource/custom/schema.h"
#include "resource/table.h"
#include "resource/validate/checks.h"
#include "json/json.h"

/* ---- versions ---- */

/* "v12beta3" as numbers: how mature it is, and the two numbers. */
struct rank {
    int stage; /* 3: stable, 2: beta, 1: alpha, 0: a name of another form */
    uint64_t major;
    uint64_t minor;
};

static dv_str take_digits(dv_str *rest)
{
    size_t n = 0;
    dv_str digits;

    while (n < rest->n && dv_is_digit(rest->p[n]))
        n++;
    digits = dv_str_slice(*rest, 0, n);
    *rest = dv_str_slice(*rest, n, rest->n);
    return digits;
}

static struct rank rank_of(dv_str version)
{
    const struct rank none = {0};
    struct rank rank = {.stage = 3};
    dv_str rest = version;

    if (!dv_str_starts_with(rest, DV_STR("v")))
        return none;
    rest = dv_str_slice(rest, 1, rest.n);
    if (!dv_str_to_u64(take_digits(&rest), &rank.major))
        return none;
    if (rest.n == 0)
        return rank;
    if (dv_str_starts_with(rest, DV_STR("beta")))
        rank.stage = 2;
    else if (dv_str_starts_with(rest, DV_STR("alpha")))
        rank.stage = 1;
    else
        return none;
    rest = dv_str_slice(rest, rank.stage == 2 ? 4 : 5, rest.n);
    return dv_str_to_u64(take_digits(&rest), &rank.minor) && rest.n == 0 ? rank : none;
}

static int cmp_u64(uint64_t a, uint64_t b)
{
    return a == b ? 0 : a > b ? -1 : 1;
}

int dv_api_version_cmp(dv_str a, dv_str b)
{
    struct rank x = rank_of(a);
    struct rank y = rank_of(b);

    if (x.stage != y.stage)
        return y.stage - x.stage;
    if (x.stage == 0)
        return dv_str_cmp(a, b);
    if (x.major != y.major)
        return cmp_u64(x.major, y.major);
    return cmp_u64(x.minor, y.minor);
}

const struct dv_custom_version *dv_custom_version_find(const struct dv_custom *custom,
                                                       dv_str version)
{
    for (size_t i = 0; i < custom->n_versions; i++)
        if (dv_str_eq(custom->versions[i].api.version, version))
            return &custom->versions[i];
    return NULL;
}

const struct dv_kind *dv_custom_set_find(const struct dv_custom_set *set, dv_str group,
                                         dv_str version, dv_str name, bool is_plural,
                                         const struct dv_custom_version **found)
{
    for (size_t i = 0; set && i < set->n; i++) {
        const struct dv_kind *kind = set->v[i];
        const struct dv_custom_version *at;

        if (!dv_str_eq(kind->custom->group, group) ||
            !dv_str_eq(is_plural ? kind->plural : kind->name, name))
            continue;
        at = dv_custom_version_find(kind->custom, version);
        if (!at || !at->is_served)
            return NULL;
        *found = at;
        return kind;
    }
    return NULL;
}

/* ---- columns ---- */

static const struct dv_column name_column = {
    .name = DV_STR_INIT("Name"),
    .type = DV_STR_INIT("string"),
    .format = DV_STR_INIT("name"),
    .description = DV_STR_INIT("Name must be unique within a namespace. Is required when creating "
                               "resources, although some resources may allow a client to request "
                               "the generation of an appropriate name automatically."),
};
static const struct dv_column age_column = {
    .name = DV_STR_INIT("Age"),
    .type = DV_STR_INIT("date"),
    .description = DV_STR_INIT("CreationTimestamp is a timestamp representing the server time when "
                               "this object was created."),
};

static void read_columns(const struct dv_api_custom_resource_definition_version *from,
                         struct dv_arena *arena, struct dv_custom_version *version)
{
    size_t n = from->n_additional_printer_columns;
    struct dv_column *columns = DV_NEW_ARRAY(arena, struct dv_column, n + 2);
    dv_str *paths = DV_NEW_ARRAY(arena, dv_str, n + 2);

    columns[0] = name_column;
    columns[1] = age_column; /* unless the definition has others */
    for (size_t i = 0; i < n; i++) {
        const struct dv_api_custom_resource_column_definition *column =
            &from->additional_printer_columns[i];

        columns[i + 1] = (struct dv_column){.name = column->name,
                                            .type = column->type,
                                            .format = column->format,
                                            .description = column->description,
                                            .priority = (int)column->priority};
        paths[i + 1] = column->json_path;
    }
    version->columns = columns;
    version->paths = paths;
    version->n_columns = n > 0 ? n + 1 : 2;
}

/* ---- definitions ---- */

/* A definition that is being compiled. */
struct making {
    struct dv_custom *custom;
    const struct dv_api_custom_resource_definition *definition;
    struct dv_problems *problems;
    bool is_one_schema; /* problems are then told where older definitions had the only schema */
};

static bool has_one_schema(const struct dv_api_custom_resource_definition *definition)
{
    return definition->spec.n_versions == 1;
}

static const struct dv_structural *read_schema(struct making *making, size_t i)
{
    const struct dv_api_custom_resource_definition_version *from =
        &making->definition->spec.versions[i];
    struct dv_field_path spec = dv_path_name(NULL, "spec");
    struct dv_field_path versions = dv_path_name(&spec, "versions");
    struct dv_field_path version = dv_path_index(&versions, i);
    struct dv_field_path schema = making->is_one_schema ? dv_path_name(&spec, "validation")
                                                        : dv_path_name(&version, "schema");
    struct dv_field_path path = dv_path_name(&schema, "openAPIV3Schema");
    const struct dv_json *doc;
    struct dv_err err;

    if (!from->schema || from->schema->open_api_v3_schema.n == 0) {
        dv_problem_add(making->problems, DV_PROBLEM_REQUIRED, &path, NULL, dv_bad_none(),
                       "schemas are required");
        return NULL;
    }
    doc = dv_json_parse(from->schema->open_api_v3_schema, NULL, making->custom->arena, &err);
    if (doc)
        return dv_schema_new(doc, &path, making->custom->arena, making->problems);
    dv_problem_add(making->problems, DV_PROBLEM_INVALID, &path, NULL, dv_bad_none(), "%s",
                   dv_err_text(&err));
    return NULL;
}

static dv_str warning_of(const struct making *making,
                         const struct dv_api_custom_resource_definition_version *from)
{
    const struct dv_api_custom_resource_definition_spec *spec = &making->definition->spec;

    if (!from->deprecated)
        return DV_STR_NONE;
    if (from->deprecation_warning.n > 0)
        return from->deprecation_warning;
    return dv_str_printf(making->custom->arena, "%.*s/%.*s %.*s is deprecated", DV_FMT(spec->group),
                         DV_FMT(from->name), DV_FMT(spec->names.kind));
}

static void read_version(struct making *making, size_t i, struct dv_custom_version *version)
{
    const struct dv_api_custom_resource_definition_version *from =
        &making->definition->spec.versions[i];

    *version = (struct dv_custom_version){
        .api = {making->custom->group, from->name, &dv_message_custom_object},
        .custom = making->custom,
        .schema = read_schema(making, i),
        .schema_text = from->schema ? from->schema->open_api_v3_schema : DV_STR_NONE,
        .is_served = from->served,
        .is_storage = from->storage,
        .has_status = from->subresources && from->subresources->status,
        .scale = from->subresources ? from->subresources->scale : NULL,
        .warning = warning_of(making, from),
    };
    read_columns(from, making->custom->arena, version);
}

static int by_preference(const void *a, const void *b)
{
    const struct dv_custom_version *x = a;
    const struct dv_custom_version *y = b;

    return dv_api_version_cmp(x->api.version, y->api.version);
}

struct dv_custom *dv_custom_new(const struct dv_api_custom_resource_definition *definition,
                                struct dv_problems *problems)
{
    struct dv_arena *arena = dv_arena_new();
    struct dv_custom *custom = DV_NEW(arena, struct dv_custom);
    struct dv_api_custom_resource_definition *copy =
        DV_NEW(arena, struct dv_api_custom_resource_definition);
    struct making making = {.custom = custom, .definition = copy, .problems = problems};
    struct dv_custom_version *versions;
    size_t n_problems = problems->n;

    dv_message_copy(&dv_message_custom_resource_definition, definition, arena, copy);
    *custom = (struct dv_custom){
        .arena = arena,
        .n_refs = 1,
        .uid = copy->metadata.uid,
        .generation = copy->metadata.generation,
        .group = copy->spec.group,
        .accepted = &copy->status.accepted_names,
        .names = copy->status.accepted_names.plural.n > 0 ? &copy->status.accepted_names
                                                          : &copy->spec.names,
        .is_namespaced = dv_str_eq(copy->spec.scope, DV_STR("Namespaced")),
        .is_terminating = copy->metadata.deletion_timestamp.is_set,
        .n_versions = copy->spec.n_versions,
    };
    (void)!dv_str_to_u64(copy->metadata.resource_version, &custom->since); /* 0: it has none yet */
    making.is_one_schema = has_one_schema(copy);
    versions = DV_NEW_ARRAY(arena, struct dv_custom_version, custom->n_versions);
    for (size_t i = 0; i < custom->n_versions; i++)
        read_version(&making, i, &versions[i]);
    if (problems->n > n_problems || custom->n_versions == 0) {
        dv_arena_free(arena);
        return NULL;
    }
    qsort(versions, custom->n_versions, sizeof(versions[0]), by_preference);
    custom->versions = versions;
    for (size_t i = 0; i < custom->n_versions; i++)
        if (versions[i].is_storage)
            custom->storage = &versions[i];
    return custom;
}

struct dv_custom *dv_custom_ref(struct dv_custom *custom)
{
    custom->n_refs++;
    return custom;
}

void dv_custom_unref(struct dv_custom *custom)
{
    if (!custom)
        return;
    assert(custom->n_refs > 0);
    if (--custom->n_refs == 0)
        dv_arena_free(custom->arena);
}
