/* config_mounts.c - the mounts of a container, and the sub-paths that they need. */
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/path.h"
#include "base/str.h"
#include "proto/cri_v1.pb-c.h"
#include "resource/resource.h"
#include "workload/config/config_parts.h"
#include "workload/volume.h"
#include "workload/workload.h"

#define HOSTS_PATH DV_STR("/etc/hosts")

/* ---- subPaths ---- */

/* What a subPathExpr is expanded with: there a variable that is absent or empty is an error. */
struct strict {
    const struct dv_config_environment *environment;
    struct dv_config_environment *missing; /* names, as keys; room for one for every '$' */
};

static bool look_up_strictly(const void *ctx, dv_str name, dv_str *value)
{
    const struct strict *strict = ctx;
    bool is_found = dv_config_lookup_env(strict->environment, name, value);

    if (!is_found || value->n == 0)
        strict->missing->v[strict->missing->n++] = (struct dv_str_entry){.key = name};
    return is_found;
}

static size_t count_dollars(dv_str text)
{
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == '$';
    return n;
}

static bool fail_missing(struct dv_config_environment *missing, struct dv_arena *arena,
                         struct dv_err *err)
{
    struct dv_buf buf;

    dv_config_index(missing, arena); /* sorted, each once */
    dv_buf_init(&buf, DV_ERR_MSG_BYTES);
    for (size_t i = 0; i < missing->n_by_name; i++)
        dv_buf_printf(&buf, "%s%.*s", i > 0 ? ", " : "", DV_FMT(missing->by_name[i].key));
    (void)dv_fail(err, DV_FAILED_PRECONDITION, "missing value for %s", dv_buf_c(&buf));
    dv_buf_fini(&buf);
    return false;
}

static bool find_sub_path(const struct dv_api_volume_mount *mount,
                          const struct dv_config_environment *environment, struct dv_arena *arena,
                          dv_str *path, struct dv_err *err)
{
    struct dv_config_environment missing = {0};
    struct strict strict = {environment, &missing};
    const char *fault;

    *path = mount->sub_path;
    if (mount->sub_path_expr.n > 0) {
        missing.v = DV_NEW_ARRAY(arena, struct dv_str_entry, count_dollars(mount->sub_path_expr));
        if (!dv_config_replace(mount->sub_path_expr, look_up_strictly, &strict, arena, path, err))
            return false;
        if (missing.n > 0)
            return fail_missing(&missing, arena, err);
    }
    if (path->n > 0 && path->p[0] == '/')
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "error SubPath `%.*s` must not be an absolute path", DV_FMT(*path));
    fault = path->n > 0 ? dv_volume_sub_path_fault(*path) : NULL;
    if (fault)
        return dv_fail(err, DV_INVALID_ARGUMENT, "unable to provision SubPath `%.*s`: %s",
                       DV_FMT(*path), fault);
    return true;
}

/* ---- what a mount asks of the runtime ---- */

static bool propagation_of(const struct dv_api_volume_mount *mount,
                           CriV1__MountPropagation *propagation, struct dv_err *err)
{
    dv_str text = mount->mount_propagation;

    if (!text.p || dv_str_eq(text, DV_STR("None")))
        *propagation = CRI_V1__MOUNT_PROPAGATION__PROPAGATION_PRIVATE;
    else if (dv_str_eq(text, DV_STR("HostToContainer")))
        *propagation = CRI_V1__MOUNT_PROPAGATION__PROPAGATION_HOST_TO_CONTAINER;
    else if (dv_str_eq(text, DV_STR("Bidirectional")))
        *propagation = CRI_V1__MOUNT_PROPAGATION__PROPAGATION_BIDIRECTIONAL;
    else
        return dv_fail(err, DV_INVALID_ARGUMENT, "invalid MountPropagation mode: \"%.*s\"",
                       DV_FMT(text));
    return true;
}

/* Whether what is mounted below is read-only, too. */
static bool recursion_of(const struct dv_config_input *input,
                         const struct dv_api_volume_mount *mount, bool *is_recursive,
                         struct dv_err *err)
{
    const struct dv_workload_handler *handler =
        dv_workload_handler_find(input->node, input->pod->handler);
    bool can = handler && handler->has_recursive_read_only;
    dv_str mode = mount->recursive_read_only;

    *is_recursive = false;
    if (!mode.p || dv_str_eq(mode, DV_STR("Disabled")))
        return true;
    if (!mount->read_only)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "volume \"%.*s\" requested recursive read-only mode, but it is not "
                       "read-only",
                       DV_FMT(mount->name));
    if (mount->mount_propagation.p && !dv_str_eq(mount->mount_propagation, DV_STR("None")))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "volume \"%.*s\" requested recursive read-only mode, but it is not "
                       "compatible with propagation \"%.*s\"",
                       DV_FMT(mount->name), DV_FMT(mount->mount_propagation));
    *is_recursive = can;
    if (dv_str_eq(mode, DV_STR("IfPossible")))
        return true;
    if (!dv_str_eq(mode, DV_STR("Enabled")))
        return dv_fail(err, DV_INVALID_ARGUMENT, "unknown recursive read-only mode \"%.*s\"",
                       DV_FMT(mode));
    return can || dv_fail(err, DV_FAILED_PRECONDITION,
                          "volume \"%.*s\" requested recursive read-only mode, but it is not "
                          "supported by the runtime",
                          DV_FMT(mount->name));
}

static bool check_modes(const struct dv_config_input *input,
                        const struct dv_api_volume_mount *mount,
                        CriV1__MountPropagation *propagation, bool *is_recursive,
                        struct dv_err *err)
{
    if (!propagation_of(mount, propagation, err))
        return false;
    return recursion_of(input, mount, is_recursive, err) ||
           dv_wrap(err, "failed to resolve recursive read-only mode");
}

/* Raw block devices come from volume claims, which are not served here. */
static bool check_block_devices(const struct dv_api_container *container, struct dv_err *err)
{
    const struct dv_api_volume_device *first = container->volume_devices;

    if (container->n_volume_devices == 0)
        return true;
    if (first->device_path.n == 0 || first->device_path.p[0] != '/')
        return dv_fail(err, DV_INVALID_ARGUMENT, "error DevicePath `%.*s` must be an absolute path",
                       DV_FMT(first->device_path));
    return dv_fail(err, DV_UNIMPLEMENTED,
                   "cannot find volume \"%.*s\" to pass into container \"%.*s\"",
                   DV_FMT(first->name), DV_FMT(container->name));
}

static bool check_mounts(const struct dv_config_input *input,
                         const struct dv_config_environment *environment,
                         const struct dv_map *volumes, struct dv_arena *arena, dv_str *paths,
                         struct dv_err *err)
{
    const struct dv_api_container *container = input->container;
    size_t n_bytes = 0;

    for (size_t i = 0; i < container->n_volume_mounts; i++) {
        const struct dv_api_volume_mount *mount = &container->volume_mounts[i];
        CriV1__MountPropagation propagation;
        bool is_recursive;

        if (!dv_map_get(volumes, mount->name))
            return dv_fail(err, DV_NOT_FOUND,
                           "cannot find volume \"%.*s\" to mount into container \"%.*s\"",
                           DV_FMT(mount->name), DV_FMT(container->name));
        if (!find_sub_path(mount, environment, arena, &paths[i], err) ||
            !check_modes(input, mount, &propagation, &is_recursive, err))
            return false;
        n_bytes += paths[i].n;
        if (n_bytes > DV_CONFIG_TEXTS_BYTES_MAX)
            return dv_fail(err, DV_RESOURCE_EXHAUSTED, "all subPaths have more than %u bytes",
                           DV_CONFIG_TEXTS_BYTES_MAX);
    }
    return true;
}

bool dv_config_sub_paths(const struct dv_config_input *input,
                         const struct dv_config_environment *environment, struct dv_arena *arena,
                         dv_str **paths, struct dv_err *err)
{
    const struct dv_api_pod_spec *spec = &input->pod->pod->spec;
    dv_str *made = DV_NEW_ARRAY(arena, dv_str, input->container->n_volume_mounts);
    struct dv_map volumes;
    bool is_good;

    if (!check_block_devices(input->container, err))
        return false;
    dv_map_init(&volumes);
    for (size_t i = 0; i < spec->n_volumes; i++)
        (void)dv_map_set(&volumes, spec->volumes[i].name, &spec->volumes[i]); /* the last counts */
    is_good = check_mounts(input, environment, &volumes, arena, made, err);
    dv_map_fini(&volumes);
    if (is_good)
        *paths = made;
    return is_good;
}

/* ---- messages ---- */

static CriV1__Mount *new_mount(dv_str container_path, dv_str host_path, struct dv_arena *arena)
{
    CriV1__Mount *made = DV_NEW(arena, CriV1__Mount);

    *made = (CriV1__Mount)CRI_V1__MOUNT__INIT;
    made->container_path = dv_str_to_c(container_path, arena);
    made->host_path = dv_str_to_c(host_path, arena);
    return made;
}

/* What the mounts of a container share while they are made. */
struct mounting {
    const struct dv_config_input *input;
    const struct dv_config_environment *environment;
    struct dv_arena *arena;
    /* The pod's annotations, once for all images; NULL before the first. */
    CriV1__ImageSpec__AnnotationsEntry **annotations;
    size_t n_annotations;
    size_t n_annotation_bytes;
    size_t n_bytes; /* that annotations of images have in the message */
};

static bool add_annotations(struct mounting *mounting, CriV1__ImageSpec *image, struct dv_err *err)
{
    if (!mounting->annotations) {
        const struct dv_str_entry *entries = dv_workload_annotations(
            mounting->input->pod, mounting->arena, &mounting->n_annotations);

        for (size_t i = 0; i < mounting->n_annotations; i++)
            mounting->n_annotation_bytes += entries[i].key.n + entries[i].value.n;
        mounting->annotations = dv_config_map(&cri_v1__image_spec__annotations_entry__descriptor,
                                              entries, mounting->n_annotations, mounting->arena);
    }
    mounting->n_bytes += mounting->n_annotation_bytes;
    if (mounting->n_bytes > DV_CONFIG_TEXTS_BYTES_MAX)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED,
                       "annotations of all image volumes have more than %u bytes",
                       DV_CONFIG_TEXTS_BYTES_MAX);
    image->n_annotations = mounting->n_annotations;
    image->annotations = mounting->annotations;
    return true;
}

static CriV1__ImageSpec *image_of(struct mounting *mounting, const struct dv_workload_mount *from,
                                  struct dv_err *err)
{
    struct dv_arena *arena = mounting->arena;
    CriV1__ImageSpec *made = DV_NEW(arena, CriV1__ImageSpec);

    *made = (CriV1__ImageSpec)CRI_V1__IMAGE_SPEC__INIT;
    made->image = dv_str_to_c(from->image, arena);
    made->user_specified_image = dv_str_to_c(from->image_reference, arena);
    made->runtime_handler = dv_str_to_c(mounting->input->pod->handler, arena);
    return add_annotations(mounting, made, err) ? made : NULL;
}

static CriV1__Mount *make_volume_mount(struct mounting *mounting,
                                       const struct dv_api_volume_mount *mount,
                                       const struct dv_workload_mount *from, struct dv_err *err)
{
    const struct dv_config_input *input = mounting->input;
    struct dv_arena *arena = mounting->arena;
    dv_str path = mount->mount_path;
    CriV1__Mount *made;
    bool is_recursive;
    dv_str sub_path;

    if (path.n == 0 || path.p[0] != '/')
        path = dv_path_clean_absolute(path, arena);
    made = new_mount(path, from->image.n > 0 ? DV_STR("") : from->host_path, arena);
    if (!check_modes(input, mount, &made->propagation, &is_recursive, err))
        return NULL;
    made->readonly = mount->read_only || from->is_read_only;
    made->recursive_read_only = is_recursive;
    made->selinux_relabel = from->is_relabeled && input->node->has_selinux;
    if (from->image.n == 0)
        return made;
    if (!find_sub_path(mount, mounting->environment, arena, &sub_path, err))
        return NULL;
    made->image_sub_path = dv_str_to_c(sub_path, arena);
    made->image = image_of(mounting, from, err);
    return made->image ? made : NULL;
}

/* Who has users of its own sees the files of its mounts as if they were theirs. */
static void map_owners(CriV1__Mount **mounts, size_t n, const CriV1__NamespaceOption *namespaces)
{
    const CriV1__UserNamespace *users = namespaces->userns_options;

    for (size_t i = 0; i < n && users; i++) {
        mounts[i]->n_uidmappings = users->n_uids;
        mounts[i]->uidmappings = users->uids;
        mounts[i]->n_gidmappings = users->n_gids;
        mounts[i]->gidmappings = users->gids;
    }
}

CriV1__Mount **dv_config_mounts(const struct dv_config_input *input,
                                const struct dv_config_environment *environment,
                                const struct dv_workload_mount *mounts, dv_str termination_log,
                                const CriV1__NamespaceOption *namespaces, struct dv_arena *arena,
                                size_t *n_made, struct dv_err *err)
{
    const struct dv_api_container *container = input->container;
    const struct dv_workload_given *given = input->given;
    size_t n_given = given ? given->n_mounts : 0;
    CriV1__Mount **made =
        DV_NEW_ARRAY(arena, CriV1__Mount *, n_given + container->n_volume_mounts + 2);
    struct mounting mounting = {.input = input, .environment = environment, .arena = arena};
    bool has_hosts = input->pod->ips.n > 0 || input->pod->pod->spec.host_network;
    size_t n = 0;

    for (size_t i = 0; i < n_given; i++) {
        made[n] = new_mount(given->mounts[i].container_path, given->mounts[i].host_path, arena);
        made[n++]->readonly = given->mounts[i].is_read_only;
    }
    for (size_t i = 0; i < container->n_volume_mounts; i++) {
        made[n] = make_volume_mount(&mounting, &container->volume_mounts[i], &mounts[i], err);
        if (!made[n++])
            return NULL;
        if (dv_str_eq(container->volume_mounts[i].mount_path, HOSTS_PATH))
            has_hosts = false;
    }
    if (has_hosts) {
        made[n] =
            new_mount(HOSTS_PATH, dv_config_hosts_path(input->node, input->pod, arena), arena);
        made[n++]->selinux_relabel = input->node->has_selinux;
    }
    if (termination_log.n > 0 && container->termination_message_path.n > 0) {
        made[n] = new_mount(dv_path_clean_absolute(container->termination_message_path, arena),
                            termination_log, arena);
        made[n++]->selinux_relabel = input->node->has_selinux;
    }
    map_owners(made, n, namespaces);
    *n_made = n;
    return made;
}
