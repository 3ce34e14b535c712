#include "cri/cri_able.h"

#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/ascii.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "number/number.h"
#include "proto/cri_v1.pb-c.h"
#include "json/json.h"

/* What every runtime with CRI v1 answers: not the version of the API, but of its shape. */
#define CRI_VERSION "0.1.0"

bool dv_cri_able_version(const struct CriV1__VersionResponse *answer, struct dv_arena *arena,
                         struct dv_cri_runtime *runtime, struct dv_err *err)
{
    if (strcmp(answer->version, CRI_VERSION) != 0)
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "the container runtime %s %s speaks version \"%s\" of CRI, not %s",
                       answer->runtime_name, answer->runtime_version, answer->version, CRI_VERSION);
    runtime->name = dv_str_copy(dv_str_from_c(answer->runtime_name), arena);
    runtime->version = dv_str_copy(dv_str_from_c(answer->runtime_version), arena);
    return true;
}

/* Whether the runtime's version is at least this one. Distributions write more behind the numbers
 * ("1.6.20~ds1"), which counts for nothing here. */
static bool is_at_least(dv_str text, uint64_t major, uint64_t minor, uint64_t patch)
{
    const struct dv_version wanted = {.major = major, .minor = minor, .patch = patch};
    struct dv_version version;
    struct dv_err err;
    size_t n;

    (void)dv_str_take(&text, 'v');
    for (n = 0; n < text.n && (dv_is_digit(text.p[n]) || text.p[n] == '.'); n++)
        ;
    return dv_version_parse_tolerant(dv_str_slice(text, 0, n), &version, &err) &&
           dv_version_cmp(&version, &wanted) >= 0;
}

static bool is_true(const struct dv_json *node)
{
    struct dv_err err;
    bool value;

    return dv_json_is(node, DV_JSON_BOOL) && dv_json_as_bool(node, &value, &err) && value;
}

static void read_cdi_dirs(const struct dv_json *list, struct dv_arena *arena,
                          struct dv_cri_runtime *runtime)
{
    dv_str *dirs = DV_NEW_ARRAY(arena, dv_str, dv_json_n(list));
    struct dv_err err;
    dv_str dir;

    runtime->cdi_dirs = dirs;
    runtime->n_cdi_dirs = 0;
    for (const struct dv_json *node = dv_json_first(list); node; node = dv_json_next(node))
        if (dv_json_as_str(node, &dir, &err))
            dirs[runtime->n_cdi_dirs++] = dv_str_copy(dir, arena);
}

/* The config that containerd shows. Its member enableCDI is there from 1.7 on; the names in a
 * container's config count from 1.7.2 on. */
static void read_config(dv_str text, struct dv_arena *arena, struct dv_cri_runtime *runtime)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct dv_err err;
    const struct dv_json *config = dv_json_parse(text, NULL, scratch, &err);
    const struct dv_json *containerd = dv_json_get(config, DV_STR("containerd"));
    const struct dv_json *name = dv_json_get(containerd, DV_STR("defaultRuntimeName"));
    const struct dv_json *image = dv_json_get(config, DV_STR("sandboxImage"));
    const struct dv_json *is_systemd;
    dv_str default_name = DV_STR("runc");
    dv_str sandbox_image;

    runtime->has_cdi =
        is_true(dv_json_get(config, DV_STR("enableCDI"))) && is_at_least(runtime->version, 1, 7, 2);
    if (runtime->has_cdi)
        read_cdi_dirs(dv_json_get(config, DV_STR("cdiSpecDirs")), arena, runtime);
    if (image && dv_json_as_str(image, &sandbox_image, &err))
        runtime->sandbox_image = dv_str_copy(sandbox_image, arena);
    if (name && !dv_json_as_str(name, &default_name, &err))
        default_name = DV_STR("runc");
    is_systemd = dv_json_get(
        dv_json_get(dv_json_get(dv_json_get(containerd, DV_STR("runtimes")), default_name),
                    DV_STR("options")),
        DV_STR("SystemdCgroup"));
    if (dv_json_is(is_systemd, DV_JSON_BOOL)) {
        runtime->knows_cgroup_driver = true;
        runtime->is_systemd_cgroups = is_true(is_systemd);
    }
}

void dv_cri_able_status(const struct CriV1__StatusResponse *answer, struct dv_arena *arena,
                        struct dv_cri_runtime *runtime)
{
    struct dv_cri_handler *handlers =
        DV_NEW_ARRAY(arena, struct dv_cri_handler, answer->n_runtime_handlers);

    for (size_t i = 0; i < answer->n_info; i++)
        if (strcmp(answer->info[i]->key, "config") == 0 &&
            dv_str_eq(runtime->name, DV_STR("containerd")))
            read_config(dv_str_from_c(answer->info[i]->value), arena, runtime);
    /* CRI-O does not show whether it can; all of its versions since then do. */
    if (dv_str_eq(runtime->name, DV_STR("containerd"))) {
        runtime->has_shared_events = !is_at_least(runtime->version, 2, 0, 0);
        runtime->has_image_volumes = is_at_least(runtime->version, 2, 1, 0);
    } else if (dv_str_eq(runtime->name, DV_STR("cri-o"))) {
        runtime->has_cdi = is_at_least(runtime->version, 1, 28, 0);
        runtime->has_image_volumes = is_at_least(runtime->version, 1, 31, 0);
    }
    for (size_t i = 0; i < answer->n_runtime_handlers; i++) {
        const CriV1__RuntimeHandler *handler = answer->runtime_handlers[i];
        const CriV1__RuntimeHandlerFeatures *features = handler->features;

        handlers[i] = (struct dv_cri_handler){
            .name = dv_str_copy(dv_str_from_c(handler->name), arena),
            .has_recursive_read_only = features && features->recursive_read_only_mounts,
            .has_user_namespaces = features && features->user_namespaces,
        };
    }
    runtime->handlers = handlers;
    runtime->n_handlers = answer->n_runtime_handlers;
    runtime->has_supplemental_groups_policy =
        answer->features && answer->features->supplemental_groups_policy;
}

void dv_cri_able_config(const struct CriV1__RuntimeConfigResponse *answer,
                        struct dv_cri_runtime *runtime)
{
    if (!answer->linux)
        return;
    runtime->knows_cgroup_driver = true;
    runtime->is_systemd_cgroups = answer->linux->cgroup_driver == CRI_V1__CGROUP_DRIVER__SYSTEMD;
}

bool dv_cri_able_check(const struct CriV1__StatusResponse *answer, const char *condition,
                       const char *what, struct dv_err *err)
{
    size_t n = answer->status ? answer->status->n_conditions : 0;

    for (size_t i = 0; i < n; i++) {
        const CriV1__RuntimeCondition *told = answer->status->conditions[i];

        if (strcmp(told->type, condition) != 0)
            continue;
        return told->status ||
               dv_fail(err, DV_FAILED_PRECONDITION, "%s: %s=false reason:%s message:%s", what,
                       condition, told->reason, told->message);
    }
    return dv_fail(err, DV_FAILED_PRECONDITION, "%s: the runtime says nothing of %s", what,
                   condition);
}
