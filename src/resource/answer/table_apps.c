/* table_apps.c - texts of cells that what makes pods has. */
#include "resource/answer/table_apps.h"

#include <inttypes.h>
#include <stdbool.h>

#include "base/ascii.h"
#include "base/buf.h"
#include "base/defs.h"
#include "resource/resource.h"

#define CELL_BYTES_MAX (1024u * 1024u)

static dv_str taken(struct dv_buf *buf, struct dv_arena *arena)
{
    dv_str text = dv_str_copy(dv_buf_str(buf), arena);

    dv_buf_fini(buf);
    return text;
}

dv_str dv_container_names_print(const struct dv_api_pod_spec *spec, struct dv_arena *arena)
{
    struct dv_buf buf;

    dv_buf_init(&buf, CELL_BYTES_MAX);
    for (size_t i = 0; i < spec->n_containers; i++)
        dv_buf_printf(&buf, "%s%.*s", i > 0 ? "," : "", DV_FMT(spec->containers[i].name));
    return taken(&buf, arena);
}

dv_str dv_container_images_print(const struct dv_api_pod_spec *spec, struct dv_arena *arena)
{
    struct dv_buf buf;

    dv_buf_init(&buf, CELL_BYTES_MAX);
    for (size_t i = 0; i < spec->n_containers; i++)
        dv_buf_printf(&buf, "%s%.*s", i > 0 ? "," : "", DV_FMT(spec->containers[i].image));
    return taken(&buf, arena);
}

dv_str dv_labels_print(const struct dv_str_entry *labels, size_t n, struct dv_arena *arena)
{
    struct dv_buf buf;

    dv_buf_init(&buf, CELL_BYTES_MAX);
    for (size_t i = 0; i < n; i++)
        dv_buf_printf(&buf, "%s%.*s=%.*s", i > 0 ? "," : "", DV_FMT(labels[i].key),
                      DV_FMT(labels[i].value));
    return taken(&buf, arena);
}

dv_str dv_controller_print(const struct dv_api_object_meta *meta, struct dv_arena *arena)
{
    const struct dv_api_owner_reference *owner = dv_controller_of(meta);
    struct dv_buf buf;
    dv_str version;
    dv_str group;

    if (!owner)
        return DV_STR_NONE;
    dv_api_version_split(owner->api_version, &group, &version);
    dv_buf_init(&buf, CELL_BYTES_MAX);
    for (size_t i = 0; i < owner->kind.n; i++)
        dv_buf_add_char(&buf, dv_to_lower(owner->kind.p[i]));
    dv_buf_printf(&buf, "%s%.*s/%.*s", group.n > 0 ? "." : "", DV_FMT(group), DV_FMT(owner->name));
    return taken(&buf, arena);
}

/* ---- Jobs ---- */

static bool has_condition(const struct dv_api_job *job, dv_str type)
{
    for (size_t i = 0; i < job->status.n_conditions; i++)
        if (dv_str_eq(job->status.conditions[i].type, type))
            return dv_str_eq(job->status.conditions[i].status, DV_STR("True"));
    return false;
}

dv_str dv_job_status_cell(const struct dv_api_job *job)
{
    /* The first that is true is shown. */
    static const dv_str ends[] = {DV_STR_INIT("Complete"), DV_STR_INIT("Failed")};
    static const dv_str others[] = {DV_STR_INIT("Suspended"), DV_STR_INIT("FailureTarget"),
                                    DV_STR_INIT("SuccessCriteriaMet")};

    for (size_t i = 0; i < DV_COUNT(ends); i++)
        if (has_condition(job, ends[i]))
            return ends[i];
    if (job->metadata.deletion_timestamp.is_set)
        return DV_STR("Terminating");
    for (size_t i = 0; i < DV_COUNT(others); i++)
        if (has_condition(job, others[i]))
            return others[i];
    return DV_STR("Running");
}

dv_str dv_job_completions_cell(const struct dv_api_job *job, struct dv_arena *arena)
{
    const struct dv_api_job_spec *spec = &job->spec;
    int64_t n = job->status.succeeded;

    if (spec->completions)
        return dv_str_printf(arena, "%" PRId64 "/%" PRId64, n, *spec->completions);
    if (spec->parallelism && *spec->parallelism > 1)
        return dv_str_printf(arena, "%" PRId64 "/1 of %" PRId64, n, *spec->parallelism);
    return dv_str_printf(arena, "%" PRId64 "/1", n);
}
