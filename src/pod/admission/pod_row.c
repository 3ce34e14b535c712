#include "pod/admission/pod_row.h"

#include <inttypes.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "pod/admission/pod_parse.h"
#include "pod/pod.h"
#include "resource/resource.h"
#include "json/json.h"

/* Annotations in old rows, which are the Pod alone. Only the value of the start is read; the other
 * one counts when it is there. */
#define OLD_FROM_API "davit.node/from-api"
#define OLD_OWNER_START "davit.node/owner-start"

static const char *const origins[] = {
    [DV_POD_ORIGIN_NODE] = "node",     [DV_POD_ORIGIN_API] = "api",
    [DV_POD_ORIGIN_IMPORT] = "import", [DV_POD_ORIGIN_FILE] = "file",
    [DV_POD_ORIGIN_LEASE] = "lease",
};

bool dv_pod_origin_is_agents(enum dv_pod_origin origin)
{
    return origin == DV_POD_ORIGIN_API || origin == DV_POD_ORIGIN_FILE;
}

#define ROW_HEAD "{\"origin\":\"%s\",\"ownerStart\":\"%.*s\",\"sinceMs\":%" PRIu64 ",\"pod\":"

dv_str dv_pod_row_print(const struct dv_pod_spec *spec, dv_str json, struct dv_arena *arena)
{
    return dv_str_printf(arena, ROW_HEAD "%.*s}", origins[spec->origin], DV_FMT(spec->owner_start),
                         spec->since_ms, DV_FMT(json));
}

void dv_pod_row_print_object(const struct dv_pod_spec *spec, const struct dv_object *object,
                             struct dv_buf *row)
{
    const struct dv_api_version *version = &object->kind->versions[0];

    dv_buf_printf(row, ROW_HEAD, origins[spec->origin], DV_FMT(spec->owner_start), spec->since_ms);
    dv_encode_json_text(version->message, object->value, version, object->kind->name, row);
    dv_buf_add_char(row, '}');
}

/* Reads the origin and the owner's start from the annotations of an old row, which is the Pod
 * alone. */
static bool read_marks(const struct dv_json *pod, struct dv_pod_spec *spec, struct dv_err *err)
{
    const struct dv_json *annotations =
        dv_json_get(dv_json_get(pod, DV_STR("metadata")), DV_STR("annotations"));

    if (dv_json_get(annotations, DV_STR(DV_POD_IMPORTED)))
        spec->origin = DV_POD_ORIGIN_IMPORT;
    if (dv_json_get(annotations, DV_STR(OLD_FROM_API)))
        spec->origin = DV_POD_ORIGIN_API;
    return dv_pod_optional_str(annotations, DV_STR(OLD_OWNER_START), &spec->owner_start, err);
}

static bool read_origin(const struct dv_json *row, struct dv_pod_spec *spec, struct dv_err *err)
{
    const struct dv_json *node = dv_json_require(row, DV_STR("origin"), err);
    dv_str name;

    if (!node || !dv_json_as_str(node, &name, err))
        return false;
    for (size_t i = 0; i < DV_COUNT(origins); i++)
        if (dv_str_eq(name, dv_str_from_c(origins[i]))) {
            spec->origin = (enum dv_pod_origin)i;
            return true;
        }
    return dv_json_fail(node, err, "is none that is known");
}

/* Rows of 0.1 have none. */
static bool read_since(const struct dv_json *row, struct dv_pod_spec *spec, struct dv_err *err)
{
    const struct dv_json *since = dv_json_get(row, DV_STR("sinceMs"));

    return !since || dv_json_as_u64(since, &spec->since_ms, err);
}

bool dv_pod_row_parse(dv_str row, struct dv_arena *arena, struct dv_pod_spec *spec,
                      struct dv_err *err)
{
    /* The Pod was read with the usual depth when it came; in a row it is one object deeper. */
    struct dv_json_opts opts = {.bytes_max = DV_POD_ROW_BYTES_MAX,
                                .depth_max = DV_JSON_DEPTH_MAX + 1};
    const struct dv_json *doc = dv_json_parse(row, &opts, arena, err);
    struct dv_pod_spec made;

    if (!doc)
        return dv_wrap(err, "pod");
    if (dv_json_get(doc, DV_STR("metadata"))) { /* an old row, which is the Pod alone */
        if (!dv_pod_spec_parse_tree(doc, arena, &made, err) || !read_marks(doc, &made, err))
            return false;
    } else {
        const struct dv_json *pod = dv_json_require(doc, DV_STR("pod"), err);

        if (!pod || !dv_pod_spec_parse_tree(pod, arena, &made, err) ||
            !read_origin(doc, &made, err) ||
            !dv_pod_optional_str(doc, DV_STR("ownerStart"), &made.owner_start, err) ||
            !read_since(doc, &made, err))
            return false;
    }
    *spec = made;
    return true;
}
