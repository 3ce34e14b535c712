/* oci_apply.c - all edits in their order, and those of the process. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "oci/edit.h"
#include "oci/oci.h"
#include "json/json.h"

/* -- Environment ---------------------------------------------------------------------------- */

/* The name of "NAME=value"; all of it when there is no "=". */
static dv_str name_of(dv_str variable)
{
    return dv_str_slice(variable, 0, dv_str_find_char(variable, '='));
}

/* The last value of each name, names in the order of their first. */
static void gather_env(const struct dv_cdi_edits *edits, struct dv_map *values)
{
    for (size_t i = 0; i < edits->n_parts; i++) {
        const struct dv_cdi_container_edits *part = edits->parts[i].edits;

        for (size_t k = 0; k < part->n_env; k++)
            (void)dv_map_set(values, name_of(part->env[k]),
                             &part->env[k]); /* the later one counts */
    }
}

/* Replaces variables. A config that has a name several times gets the new value as often, since
 * runtimes differ in which of them counts. */
static bool replace_env(struct dv_json *env, const struct dv_map *values, struct dv_map *rest,
                        struct dv_arena *arena, struct dv_err *err)
{
    struct dv_json *next;

    for (struct dv_json *at = dv_json_first(env); at; at = next) {
        const dv_str *value;
        dv_str text;

        next = dv_json_next(at);
        if (!dv_json_as_str(at, &text, err))
            return dv_wrap(err, "OCI config");
        value = dv_map_get(values, name_of(text));
        if (!value)
            continue;
        (void)dv_map_remove(rest, name_of(text)); /* gone before when it is here twice */
        if (!dv_str_eq(text, *value))
            dv_json_replace(at, dv_json_new_str(*value, arena));
    }
    return true;
}

static bool add_env(struct dv_oci_edit *edit, struct dv_err *err)
{
    DV_CLEANUP(dv_map_fini) struct dv_map values;
    DV_CLEANUP(dv_map_fini) struct dv_map rest; /* those that the config has not */
    const struct dv_map_entry *entry;
    struct dv_json *process;
    struct dv_json *env;
    size_t at = 0;

    dv_map_init(&values);
    dv_map_init(&rest);
    gather_env(edit->edits, &values);
    gather_env(edit->edits, &rest);
    if (values.n == 0)
        return true;
    process = dv_oci_object(edit->config, DV_STR("process"), edit->arena, err);
    env = process ? dv_oci_array(process, DV_STR("env"), edit->arena, err) : NULL;
    if (!env || !replace_env(env, &values, &rest, edit->arena, err))
        return false;
    while ((entry = dv_map_next(&rest, &at)) != NULL)
        dv_json_append(env, dv_json_new_str(*(const dv_str *)entry->value, edit->arena));
    return true;
}

/* -- Groups --------------------------------------------------------------------------------- */

static size_t count_gids(const struct dv_cdi_edits *edits)
{
    size_t n = 0;

    for (size_t i = 0; i < edits->n_parts; i++) {
        for (size_t k = 0; k < edits->parts[i].edits->n_gids; k++)
            n += edits->parts[i].edits->gids[k] != 0;
    }
    return n;
}

/* The user's array, which comes with a user of root's ids, as the runtime spec demands some. */
static struct dv_json *gids_of(struct dv_oci_edit *edit, struct dv_err *err)
{
    struct dv_json *process = dv_oci_object(edit->config, DV_STR("process"), edit->arena, err);
    struct dv_json *user =
        process ? dv_oci_object(process, DV_STR("user"), edit->arena, err) : NULL;

    if (!user)
        return NULL;
    if (dv_json_n(user) == 0) {
        dv_json_set(user, DV_STR("uid"), dv_json_new_u64(0, edit->arena), edit->arena);
        dv_json_set(user, DV_STR("gid"), dv_json_new_u64(0, edit->arena), edit->arena);
    }
    return dv_oci_array(user, DV_STR("additionalGids"), edit->arena, err);
}

static void add_gid(struct dv_json *gids, uint32_t gid, struct dv_map *seen, struct dv_arena *arena)
{
    struct dv_json *number = dv_json_new_u64(gid, arena);

    if (gid == 0 || dv_map_get(seen, dv_json_number_text(number)))
        return;
    dv_json_append(gids, number);
    (void)dv_map_set(seen, dv_json_number_text(number), number); /* was not there */
}

static bool add_gids(struct dv_oci_edit *edit, struct dv_err *err)
{
    DV_CLEANUP(dv_map_fini) struct dv_map seen; /* by their text */
    struct dv_json *gids;

    dv_map_init(&seen);
    if (count_gids(edit->edits) == 0)
        return true;
    gids = gids_of(edit, err);
    for (struct dv_json *at = dv_json_first(gids); at; at = dv_json_next(at)) {
        uint64_t gid;

        if (!dv_json_as_u64(at, &gid, err))
            return dv_wrap(err, "OCI config");
        (void)dv_map_set(&seen, dv_json_number_text(at), at); /* twice is the config's business */
    }
    for (size_t i = 0; gids && i < edit->edits->n_parts; i++) {
        const struct dv_cdi_container_edits *part = edit->edits->parts[i].edits;

        for (size_t k = 0; k < part->n_gids; k++)
            add_gid(gids, part->gids[k], &seen, edit->arena);
    }
    return gids != NULL;
}

/* -- RDT ------------------------------------------------------------------------------------ */

static void put_flag(struct dv_json *object, dv_str key, bool flag, struct dv_arena *arena)
{
    if (flag)
        dv_json_set(object, key, dv_json_new_bool(true, arena), arena);
}

static struct dv_json *make_rdt(const struct dv_cdi_rdt *rdt, struct dv_arena *arena)
{
    struct dv_json *object = dv_json_new_object(arena);

    dv_oci_put(object, DV_STR("closID"), rdt->clos_id, arena);
    if (rdt->n_schemata > 0)
        dv_json_set(object, DV_STR("schemata"),
                    dv_json_new_strs(rdt->schemata, rdt->n_schemata, arena), arena);
    dv_oci_put(object, DV_STR("l3CacheSchema"), rdt->l3_schema, arena);
    dv_oci_put(object, DV_STR("memBwSchema"), rdt->mem_bw_schema, arena);
    put_flag(object, DV_STR("enableCMT"), rdt->has_cmt, arena);
    put_flag(object, DV_STR("enableMBM"), rdt->has_mbm, arena);
    put_flag(object, DV_STR("enableMonitoring"), rdt->has_monitoring, arena);
    return object;
}

/* Sets the class of resctrl. A container is in one: the last one named. */
static bool set_rdt(struct dv_oci_edit *edit, struct dv_err *err)
{
    const struct dv_cdi_rdt *rdt = NULL;
    struct dv_json *linux_node;

    for (size_t i = 0; i < edit->edits->n_parts; i++) {
        if (edit->edits->parts[i].edits->rdt)
            rdt = edit->edits->parts[i].edits->rdt;
    }
    if (!rdt)
        return true;
    linux_node = dv_oci_object(edit->config, DV_STR("linux"), edit->arena, err);
    if (!linux_node)
        return false;
    dv_json_set(linux_node, DV_STR("intelRdt"), make_rdt(rdt, edit->arena), edit->arena);
    return true;
}

/* -- All ------------------------------------------------------------------------------------ */

static struct dv_json *copy_config(const struct dv_json *config, struct dv_arena *arena,
                                   struct dv_err *err)
{
    if (!dv_json_expect(config, DV_JSON_OBJECT, err)) {
        (void)dv_wrap(err, "OCI config"); /* tells by NULL */
        return NULL;
    }
    return dv_json_copy(config, arena);
}

struct dv_json *dv_oci_apply(const struct dv_json *config, const struct dv_cdi_edits *edits,
                             const struct dv_oci_host *host, struct dv_arena *arena,
                             struct dv_err *err)
{
    struct dv_oci_edit edit = {.edits = edits, .host = host, .arena = arena};

    edit.config = copy_config(config, arena, err);
    if (!edit.config || !add_env(&edit, err) || !dv_oci_add_nodes(&edit, err) ||
        !dv_oci_add_net_devices(&edit, err) || !dv_oci_add_mounts(&edit, err) ||
        !dv_oci_add_hooks(&edit, err) || !set_rdt(&edit, err) || !add_gids(&edit, err))
        return NULL;
    return edit.config;
}

/* The request in one annotation, added to those before. */
static bool add_request(const struct dv_json *annotation, struct dv_arena *arena, dv_str *names,
                        size_t *n_names, struct dv_err *err)
{
    dv_str *some;
    size_t n_some;
    dv_str text;

    if (!dv_json_as_str(annotation, &text, err) ||
        !dv_cdi_annotation_parse(text, arena, &some, &n_some, err))
        return false;
    if (*n_names + n_some > DV_CDI_NAMES_MAX)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED, "its annotations name more than %u CDI devices",
                       DV_CDI_NAMES_MAX);
    for (size_t i = 0; i < n_some; i++)
        names[(*n_names)++] = some[i];
    return true;
}

bool dv_oci_requested(const struct dv_json *config, struct dv_arena *arena, dv_str **names,
                      size_t *n_names, struct dv_err *err)
{
    const struct dv_json *all = dv_json_get(config, DV_STR("annotations"));
    dv_str *found = DV_NEW_ARRAY(arena, dv_str, DV_CDI_NAMES_MAX);
    size_t n = 0;

    for (const struct dv_json *at = dv_json_first(all); at; at = dv_json_next(at)) {
        if (dv_cdi_annotation_is_request(dv_json_key(at)) &&
            !add_request(at, arena, found, &n, err))
            return dv_wrap(err, "OCI config");
    }
    *names = found;
    *n_names = n;
    return true;
}
