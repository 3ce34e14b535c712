/* engine_bundle.c - the config of an OCI bundle for another folder, with what was granted. */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "engines/engines.h"
#include "oci/oci.h"
#include "json/json.h"

/* The path as seen from the bundle's folder. */
static dv_str from_bundle(dv_str path, dv_str bundle, struct dv_arena *arena)
{
    if (dv_str_starts_with(path, DV_STR("/")))
        return path;
    return dv_str_printf(arena, "%.*s/%.*s", DV_FMT(bundle), DV_FMT(path));
}

static bool text_of(const struct dv_json *object, dv_str key, dv_str *text)
{
    const struct dv_json *member = dv_json_get(object, key);
    struct dv_err err;

    return dv_json_is(member, DV_JSON_STRING) && dv_json_as_str(member, text, &err);
}

static void make_absolute(struct dv_json *object, dv_str key, dv_str bundle, struct dv_arena *arena)
{
    dv_str path;

    if (text_of(object, key, &path) && !dv_str_starts_with(path, DV_STR("/")))
        dv_json_set(object, key, dv_json_new_str(from_bundle(path, bundle, arena), arena), arena);
}

/* Only the source of a bind mount is a path; that of others is a word for the kernel. */
static bool is_bind(const struct dv_json *mount)
{
    const struct dv_json *options = dv_json_get(mount, DV_STR("options"));
    dv_str text;

    if (text_of(mount, DV_STR("type"), &text) && dv_str_eq(text, DV_STR("bind")))
        return true;
    for (const struct dv_json *at = dv_json_first(options); at; at = dv_json_next(at)) {
        struct dv_err err;

        if (dv_json_is(at, DV_JSON_STRING) && dv_json_as_str(at, &text, &err) &&
            (dv_str_eq(text, DV_STR("bind")) || dv_str_eq(text, DV_STR("rbind"))))
            return true;
    }
    return false;
}

struct dv_json *dv_engine_bundle_config(const struct dv_json *config, dv_str bundle,
                                        const struct dv_engine_grant *grant,
                                        const struct dv_oci_host *host, struct dv_arena *arena,
                                        struct dv_err *err)
{
    const struct dv_cdi_edits none = {0};
    struct dv_json *edited = dv_oci_apply_options(
        config, grant->options, grant->n_names > 0 ? grant->edits : &none, host, arena, err);
    struct dv_json *mounts;

    if (!edited)
        return NULL;
    make_absolute(dv_json_get(edited, DV_STR("root")), DV_STR("path"), bundle, arena);
    mounts = dv_json_get(edited, DV_STR("mounts"));
    for (struct dv_json *at = dv_json_first(mounts); at; at = dv_json_next(at))
        if (is_bind(at))
            make_absolute(at, DV_STR("source"), bundle, arena);
    return edited;
}
