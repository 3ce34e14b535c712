/* mount.c - mounts, and the order of them all.
 *
 * One difference from the reference: a mount without a type and without "bind" or "rbind" among its
 * options is made a bind mount. There is a path of the host to mount, and a runtime can do nothing
 * else with it; CDI's own examples have such mounts. */
#include <stdbool.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/map.h"
#include "base/path.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "oci/edit.h"
#include "json/json.h"

struct place {
    size_t depth; /* slashes in the cleaned destination */
    size_t number;
    struct dv_json *mount;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a;
    const struct place *y = b;

    if (x->depth != y->depth)
        return x->depth < y->depth ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static size_t depth_of(dv_str clean)
{
    size_t n = 0;

    for (size_t i = 0; i < clean.n; i++)
        n += clean.p[i] == '/';
    return n;
}

static bool has_option(const struct dv_cdi_mount *mount, dv_str option)
{
    for (size_t i = 0; i < mount->n_options; i++) {
        if (dv_str_eq(mount->options[i], option))
            return true;
    }
    return false;
}

/* The option by which bound files have their owners mapped in a user namespace; none when the spec
 * says how. */
static dv_str mapping_option(const struct dv_cdi_mount *mount, bool is_recursive)
{
    if (has_option(mount, DV_STR("idmap")) || has_option(mount, DV_STR("ridmap")))
        return DV_STR_NONE;
    return is_recursive ? DV_STR("ridmap") : DV_STR("idmap");
}

static struct dv_json *make_options(const struct dv_cdi_mount *mount, bool has_user_namespace,
                                    struct dv_arena *arena)
{
    bool is_plain = has_option(mount, DV_STR("bind"));
    bool is_recursive = has_option(mount, DV_STR("rbind"));
    bool is_untyped = mount->type.n == 0 && !is_plain && !is_recursive;
    struct dv_json *options = dv_json_new_strs(mount->options, mount->n_options, arena);
    dv_str mapping = DV_STR_NONE;

    if (is_untyped)
        dv_json_append(options, dv_json_new_str(DV_STR("rbind"), arena));
    if (has_user_namespace && (is_plain || is_recursive || is_untyped))
        mapping = mapping_option(mount, is_recursive || is_untyped);
    if (mapping.n > 0)
        dv_json_append(options, dv_json_new_str(mapping, arena));
    return options;
}

static struct dv_json *make_mount(const struct dv_cdi_mount *mount, bool has_user_namespace,
                                  struct dv_arena *arena)
{
    struct dv_json *object = dv_json_new_object(arena);
    struct dv_json *options = make_options(mount, has_user_namespace, arena);

    dv_oci_put(object, DV_STR("destination"), mount->container_path, arena);
    dv_oci_put(object, DV_STR("type"), mount->type, arena);
    dv_oci_put(object, DV_STR("source"), mount->host_path, arena);
    if (dv_json_n(options) > 0)
        dv_json_set(object, DV_STR("options"), options, arena);
    return object;
}

static bool has_user_namespace(const struct dv_json *config)
{
    const struct dv_json *all =
        dv_json_get(dv_json_get(config, DV_STR("linux")), DV_STR("namespaces"));

    for (const struct dv_json *at = dv_json_first(all); at; at = dv_json_next(at)) {
        const struct dv_json *type = dv_json_get(at, DV_STR("type"));
        struct dv_err err;
        dv_str text;

        if (dv_json_is(type, DV_JSON_STRING) && dv_json_as_str(type, &text, &err) &&
            dv_str_eq(text, DV_STR("user")))
            return true;
    }
    return false;
}

/* Collects the mounts by their destination; the later one of two counts. */
static void gather_mounts(struct dv_oci_edit *edit, struct dv_map *mounts)
{
    for (size_t i = 0; i < edit->edits->n_parts; i++) {
        const struct dv_cdi_container_edits *part = edit->edits->parts[i].edits;

        for (size_t k = 0; k < part->n_mounts; k++) {
            dv_str clean = dv_path_clean(part->mounts[k].container_path, edit->arena);

            (void)dv_map_remove(mounts, clean);
            (void)dv_map_set(mounts, clean, &part->mounts[k]);
        }
    }
}

/* The config's mounts that stay, then the new ones. */
static bool place_mounts(struct dv_oci_edit *edit, const struct dv_json *old,
                         const struct dv_map *mounts, struct place *places, size_t *n_places,
                         struct dv_err *err)
{
    bool is_mapped = has_user_namespace(edit->config);
    const struct dv_map_entry *entry;
    size_t at_entry = 0;
    size_t n = 0;

    for (const struct dv_json *at = dv_json_first(old); at; at = dv_json_next(at)) {
        dv_str clean;

        if (!dv_oci_member(at, DV_STR("destination"), &clean, err))
            return false;
        clean = dv_path_clean(clean, edit->arena);
        if (dv_map_get(mounts, clean))
            continue;
        places[n] = (struct place){depth_of(clean), n, dv_json_copy(at, edit->arena)};
        n++;
    }
    while ((entry = dv_map_next(mounts, &at_entry)) != NULL) {
        places[n] = (struct place){depth_of(entry->key), n,
                                   make_mount(entry->value, is_mapped, edit->arena)};
        n++;
    }
    *n_places = n;
    return true;
}

bool dv_oci_add_mounts(struct dv_oci_edit *edit, struct dv_err *err)
{
    DV_CLEANUP(dv_map_fini) struct dv_map mounts;
    struct dv_json *sorted = dv_json_new_array(edit->arena);
    struct place *places;
    struct dv_json *old;
    size_t n;

    dv_map_init(&mounts);
    gather_mounts(edit, &mounts);
    if (mounts.n == 0)
        return true;
    old = dv_oci_array(edit->config, DV_STR("mounts"), edit->arena, err);
    if (!old)
        return false;
    places = DV_NEW_ARRAY(edit->arena, struct place, dv_json_n(old) + mounts.n);
    if (!place_mounts(edit, old, &mounts, places, &n, err))
        return false;
    qsort(places, n, sizeof(places[0]), compare_places);
    for (size_t i = 0; i < n; i++)
        dv_json_append(sorted, places[i].mount);
    dv_json_replace(old, sorted);
    return true;
}
