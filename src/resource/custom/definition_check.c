/* definition_check.c - the API's defaults of CustomResourceDefinitions, and what it refuses in
 * them. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/ascii.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/custom.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"
#include "json/json.h"
#include "json/jsonpath.h"

typedef struct dv_api_custom_resource_definition definition_t;

#define APPROVED "api-approved.kubernetes.io"

static const struct dv_field_path spec_path = {.kind = PATH_NAME, .name = "spec"};

/* ---- defaults ---- */

static dv_str to_lower(dv_str text, struct dv_arena *arena)
{
    char *lower = dv_arena_alloc_raw(arena, text.n + 1, 1);

    for (size_t i = 0; i < text.n; i++)
        lower[i] = dv_to_lower(text.p[i]);
    return (dv_str){lower, text.n};
}

void dv_custom_default_definition(definition_t *definition, struct dv_arena *arena)
{
    struct dv_api_custom_resource_definition_names *names = &definition->spec.names;

    if (names->kind.n > 0 && names->singular.n == 0)
        names->singular = to_lower(names->kind, arena);
    if (names->kind.n > 0 && names->list_kind.n == 0)
        names->list_kind = dv_str_printf(arena, "%.*sList", DV_FMT(names->kind));
    if (!definition->spec.conversion)
        definition->spec.conversion = DV_NEW(arena, struct dv_api_custom_resource_conversion);
    if (definition->spec.conversion->strategy.n == 0)
        definition->spec.conversion->strategy = DV_STR("None");
}

/* ---- names ---- */

static void check_name(struct dv_problems *problems, const struct dv_field_path *path,
                       const char *name, dv_str value)
{
    dv_check_required(problems, path, name, value, dv_check_dns_label);
}

/* A kind is a label in which letters may be of both cases. */
static void check_kind(struct dv_problems *problems, const struct dv_field_path *path,
                       const char *name, dv_str value)
{
    struct dv_problems masked = {.arena = problems->arena};

    if (value.n == 0) {
        dv_required(problems, path, name);
        return;
    }
    dv_check_dns_label(&masked, path, name, to_lower(value, problems->arena));
    if (masked.n > 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, name, dv_bad_str(value),
                       "may have mixed case, but should otherwise match: a DNS-1035 label must "
                       "consist of lower case alphanumeric characters or '-', start with an "
                       "alphabetic character, and end with an alphanumeric character");
}

static void check_label_list(struct dv_problems *problems, const struct dv_field_path *up,
                             const char *name, const dv_str *labels, size_t n)
{
    struct dv_field_path path = dv_path_name(up, name);

    for (size_t i = 0; i < n; i++) {
        struct dv_field_path at = dv_path_index(&path, i);

        dv_check_dns_label(problems, &at, NULL, labels[i]);
    }
}

static void check_names(struct dv_problems *problems,
                        const struct dv_api_custom_resource_definition_names *names)
{
    struct dv_field_path path = dv_path_name(&spec_path, "names");

    check_name(problems, &path, "plural", names->plural);
    check_name(problems, &path, "singular", names->singular);
    check_kind(problems, &path, "kind", names->kind);
    check_kind(problems, &path, "listKind", names->list_kind);
    check_label_list(problems, &path, "shortNames", names->short_names, names->n_short_names);
    check_label_list(problems, &path, "categories", names->categories, names->n_categories);
    if (names->kind.n > 0 && dv_str_eq(names->kind, names->list_kind))
        dv_problem_add(problems, DV_PROBLEM_INVALID, &path, "listKind",
                       dv_bad_str(names->list_kind), "kind and listKind may not be the same");
}

static bool is_protected(dv_str group)
{
    return dv_str_eq(group, DV_STR("k8s.io")) || dv_str_eq(group, DV_STR("kubernetes.io")) ||
           dv_str_ends_with(group, DV_STR(".k8s.io")) ||
           dv_str_ends_with(group, DV_STR(".kubernetes.io"));
}

/* Groups of the project itself are reserved: an approval has to be named. */
static void check_protected(struct dv_problems *problems, const definition_t *definition)
{
    static const struct dv_field_path meta = {.kind = PATH_NAME, .name = "metadata"};
    struct dv_field_path path = dv_path_name(&meta, "annotations");
    struct dv_field_path key = dv_path_key(&path, DV_STR(APPROVED));
    const dv_str *approval = NULL;

    if (!is_protected(definition->spec.group))
        return;
    for (size_t i = 0; i < definition->metadata.n_annotations; i++)
        if (dv_str_eq(definition->metadata.annotations[i].key, DV_STR(APPROVED)))
            approval = &definition->metadata.annotations[i].value;
    if (!approval || approval->n == 0)
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, &key, NULL, dv_bad_none(),
                       "protected groups must have approval annotation \"" APPROVED
                       "\", see https://github.com/kubernetes/enhancements/pull/1111");
    else if (!dv_str_starts_with(*approval, DV_STR("https://")) &&
             !dv_str_starts_with(*approval, DV_STR("http://")) &&
             !dv_str_starts_with(*approval, DV_STR("unapproved")))
        dv_problem_add(problems, DV_PROBLEM_INVALID, &key, NULL, dv_bad_str(*approval),
                       "protected groups must have approval annotation \"" APPROVED
                       "\" with either a URL or a reason starting with \"unapproved\", see "
                       "https://github.com/kubernetes/enhancements/pull/1111");
}

/* Groups that davit serves itself take no further kinds: their paths lead to the built-in ones. */
static bool is_served_already(dv_str group)
{
    for (unsigned id = 0; id < DV_N_KINDS; id++) {
        const struct dv_kind *kind = dv_kind((enum dv_kind_id)id);

        for (size_t i = 0; i < kind->n_versions; i++)
            if (dv_str_eq(kind->versions[i].group, group))
                return true;
    }
    return dv_str_eq(group, DV_STR("networking.k8s.io")) ||
           dv_str_eq(group, DV_STR("storage.k8s.io"));
}

static void check_group(struct dv_problems *problems, const definition_t *definition)
{
    dv_str group = definition->spec.group;
    const dv_str parts[] = {definition->spec.names.plural, DV_STR("."), group};
    dv_str name = dv_str_concat(parts, DV_COUNT(parts), problems->arena);

    if (!dv_str_eq(definition->metadata.name, name))
        dv_problem_add(problems, DV_PROBLEM_INVALID, NULL, "metadata.name",
                       dv_bad_str(definition->metadata.name),
                       "must be spec.names.plural+\".\"+"
                       "spec.group");
    if (group.n == 0) {
        dv_required(problems, &spec_path, "group");
        return;
    }
    dv_check_dns_subdomain(problems, &spec_path, "group", group);
    if (dv_str_find_char(group, '.') == group.n)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &spec_path, "group", dv_bad_str(group),
                       "should be a domain with at least one dot");
    if (is_served_already(group))
        dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, &spec_path, "group", dv_bad_none(),
                       "the group is davit's own, and takes no further kinds");
    check_protected(problems, definition);
}

/* ---- versions ---- */

static void check_json_path(struct dv_problems *problems, const struct dv_field_path *path,
                            const char *name, dv_str text)
{
    const struct dv_json *empty = dv_json_new_object(problems->arena);
    const struct dv_json *found;
    struct dv_err err;

    if (text.n == 0)
        dv_required(problems, path, name);
    else if (!dv_jsonpath_first(text, empty, problems->arena, &found, &err))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, name, dv_bad_str(text), "%s",
                       dv_err_text(&err));
}

static void check_columns(struct dv_problems *problems, const struct dv_field_path *up,
                          const struct dv_api_custom_resource_definition_version *version)
{
    static const dv_str types[] = {DV_STR_INIT("boolean"), DV_STR_INIT("date"),
                                   DV_STR_INIT("integer"), DV_STR_INIT("number"),
                                   DV_STR_INIT("string")};
    static const dv_str formats[] = {
        DV_STR_INIT("int32"),     DV_STR_INIT("int64"),    DV_STR_INIT("float"),
        DV_STR_INIT("double"),    DV_STR_INIT("byte"),     DV_STR_INIT("date"),
        DV_STR_INIT("date-time"), DV_STR_INIT("password"),
    };
    struct dv_field_path path = dv_path_name(up, "additionalPrinterColumns");

    if (version->n_additional_printer_columns > DV_CUSTOM_COLUMNS_MAX)
        dv_too_many(problems, &path, NULL, version->n_additional_printer_columns,
                    DV_CUSTOM_COLUMNS_MAX);
    for (size_t i = 0; i < version->n_additional_printer_columns; i++) {
        const struct dv_api_custom_resource_column_definition *column =
            &version->additional_printer_columns[i];
        struct dv_field_path at = dv_path_index(&path, i);

        if (column->name.n == 0)
            dv_required(problems, &at, "name");
        if (column->type.n == 0)
            dv_required(problems, &at, "type");
        else
            dv_check_one_of(problems, &at, "type", column->type, types, DV_COUNT(types));
        if (column->format.n > 0)
            dv_check_one_of(problems, &at, "format", column->format, formats, DV_COUNT(formats));
        check_json_path(problems, &at, "jsonPath", column->json_path);
    }
}

/* A path of a scale leads through objects, from the part that it has to be in. */
static void check_scale_path(struct dv_problems *problems, const struct dv_field_path *path,
                             const char *name, dv_str value, const char *under)
{
    if (value.n == 0)
        dv_required(problems, path, name);
    else if (!dv_str_starts_with(value, dv_str_from_c(under)))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, name, dv_bad_str(value),
                       "should be a json path under %.*s", (int)strlen(under) - 1, under);
    else if (dv_str_find_char(value, '[') < value.n)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, name, dv_bad_str(value),
                       "can not contain array index");
}

static void check_scale(struct dv_problems *problems, const struct dv_field_path *up,
                        const struct dv_api_custom_resource_subresource_scale *scale)
{
    struct dv_field_path path = dv_path_name(up, "scale");

    check_scale_path(problems, &path, "specReplicasPath", scale->spec_replicas_path, ".spec.");
    check_scale_path(problems, &path, "statusReplicasPath", scale->status_replicas_path,
                     ".status.");
    if (scale->label_selector_path.n > 0 &&
        !dv_str_starts_with(scale->label_selector_path, DV_STR(".spec.")))
        check_scale_path(problems, &path, "labelSelectorPath", scale->label_selector_path,
                         ".status.");
}

static void check_version(struct dv_problems *problems, const struct dv_field_path *path,
                          const struct dv_api_custom_resource_definition_version *version)
{
    struct dv_field_path subresources = dv_path_name(path, "subresources");

    check_name(problems, path, "name", version->name);
    if (version->deprecation_warning.n > 0 && !version->deprecated)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "deprecationWarning",
                       dv_bad_str(version->deprecation_warning),
                       "can only be set for deprecated versions");
    check_columns(problems, path, version);
    if (version->subresources && version->subresources->scale)
        check_scale(problems, &subresources, version->subresources->scale);
    if (version->n_selectable_fields > DV_CUSTOM_SELECTABLE_MAX)
        dv_too_many(problems, path, "selectableFields", version->n_selectable_fields,
                    DV_CUSTOM_SELECTABLE_MAX);
}

static void check_versions(struct dv_problems *problems, const definition_t *definition)
{
    const struct dv_api_custom_resource_definition_spec *spec = &definition->spec;
    struct dv_field_path path = dv_path_name(&spec_path, "versions");
    size_t n_stored = 0;

    if (spec->n_versions > DV_CUSTOM_VERSIONS_MAX)
        dv_too_many(problems, &path, NULL, spec->n_versions, DV_CUSTOM_VERSIONS_MAX);
    for (size_t i = 0; i < spec->n_versions && i < DV_CUSTOM_VERSIONS_MAX; i++) {
        struct dv_field_path at = dv_path_index(&path, i);

        check_version(problems, &at, &spec->versions[i]);
        n_stored += spec->versions[i].storage;
    }
    dv_check_unique(problems, &path, "name", &spec->versions[0].name, spec->n_versions,
                    sizeof(spec->versions[0]));
    if (n_stored != 1)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &path, NULL,
                       dv_bad_messages(&dv_message_custom_resource_definition_version,
                                       spec->versions, spec->n_versions, problems->arena),
                       "must have exactly one version marked as storage version");
}

/* Objects may be stored in a version as long as status.storedVersions says so. */
static void check_stored(struct dv_problems *problems, const definition_t *definition)
{
    static const struct dv_field_path status = {.kind = PATH_NAME, .name = "status"};
    struct dv_field_path path = dv_path_name(&status, "storedVersions");

    for (size_t i = 0; i < definition->status.n_stored_versions; i++) {
        struct dv_field_path at = dv_path_index(&path, i);
        bool is_there = false;

        for (size_t k = 0; k < definition->spec.n_versions; k++)
            is_there |=
                dv_str_eq(definition->spec.versions[k].name, definition->status.stored_versions[i]);
        if (!is_there)
            dv_problem_add(problems, DV_PROBLEM_INVALID, &at, NULL,
                           dv_bad_str(definition->status.stored_versions[i]),
                           "missing from spec.versions; %.*s was previously a storage version, and "
                           "must remain in spec.versions until a storage migration ensures no data "
                           "remains persisted in %.*s and removes %.*s from status.storedVersions",
                           DV_FMT(definition->status.stored_versions[i]),
                           DV_FMT(definition->status.stored_versions[i]),
                           DV_FMT(definition->status.stored_versions[i]));
    }
}

/* ---- the whole ---- */

static void check_conversion(struct dv_problems *problems, const definition_t *definition)
{
    static const dv_str supported[] = {DV_STR_INIT("None")};
    struct dv_field_path path = dv_path_name(&spec_path, "conversion");

    if (definition->spec.conversion)
        dv_check_one_of(problems, &path, "strategy", definition->spec.conversion->strategy,
                        supported, DV_COUNT(supported));
}

static void check_same(struct dv_problems *problems, const struct dv_field_path *path,
                       const char *name, dv_str value, dv_str old)
{
    if (!dv_str_eq(value, old))
        dv_immutable(problems, path, name, dv_bad_str(value));
}

static void check_update(struct dv_problems *problems, const definition_t *definition,
                         const definition_t *old)
{
    struct dv_field_path names = dv_path_name(&spec_path, "names");

    check_same(problems, &spec_path, "group", definition->spec.group, old->spec.group);
    check_same(problems, &names, "plural", definition->spec.names.plural, old->spec.names.plural);
    if (!dv_custom_is_true(old, DV_STR("Established")))
        return;
    check_same(problems, &spec_path, "scope", definition->spec.scope, old->spec.scope);
    check_same(problems, &names, "kind", definition->spec.names.kind, old->spec.names.kind);
}

void dv_custom_check_definition(const definition_t *definition, const definition_t *old,
                                struct dv_problems *problems)
{
    static const dv_str scopes[] = {DV_STR_INIT("Cluster"), DV_STR_INIT("Namespaced")};

    check_group(problems, definition);
    if (definition->spec.scope.n == 0)
        dv_required(problems, &spec_path, "scope");
    else
        dv_check_one_of(problems, &spec_path, "scope", definition->spec.scope, scopes,
                        DV_COUNT(scopes));
    if (definition->spec.n_versions == 0)
        dv_required(problems, &spec_path, "versions");
    else
        check_versions(problems, definition);
    check_names(problems, &definition->spec.names);
    check_conversion(problems, definition);
    if (definition->spec.preserve_unknown_fields)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &spec_path, "preserveUnknownFields",
                       dv_bad_bool(true),
                       "cannot set to true, set "
                       "x-kubernetes-preserve-unknown-fields to true in "
                       "spec.versions[*].schema instead");
    check_stored(problems, definition);
    if (old)
        check_update(problems, definition, old);
}
