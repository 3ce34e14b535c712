/* volume_plan.c - each volume of a pod: what kind it is, where it lies, how large it may be. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/name.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "number/number.h"
#include "resource/resource.h"
#include "workload/volume.h"
#include "workload/volume/volume_files.h"
#include "workload/workload.h"

#define HUGE_PAGES "HugePages"
#define HUGE_PAGES_RESOURCE "hugepages-"

/* ---- which volumes are used ---- */

typedef DV_VEC(dv_str) name_list;

static void add_mounts(const struct dv_api_container *container, struct dv_arena *arena,
                       name_list *names)
{
    for (size_t i = 0; i < container->n_volume_mounts; i++)
        *dv_vec_add_in(names, arena) = container->volume_mounts[i].name;
    for (size_t i = 0; i < container->n_volume_devices; i++)
        *dv_vec_add_in(names, arena) = container->volume_devices[i].name;
}

/* Returns the names of what the containers mount, sorted: there may be tens of thousands. */
static struct dv_strs find_used(const struct dv_api_pod_spec *spec, struct dv_arena *arena)
{
    name_list names = {0};

    for (size_t i = 0; i < spec->n_init_containers; i++)
        add_mounts(&spec->init_containers[i], arena, &names);
    for (size_t i = 0; i < spec->n_containers; i++)
        add_mounts(&spec->containers[i], arena, &names);
    for (size_t i = 0; i < spec->n_ephemeral_containers; i++)
        add_mounts(&spec->ephemeral_containers[i].ephemeral_container_common, arena, &names);
    if (names.n > 0)
        qsort(names.v, names.n, sizeof(names.v[0]), dv_str_compare);
    return (struct dv_strs){.v = names.v, .n = names.n};
}

/* A volume that no container mounts is not made, and what it lacks stops nobody. */
static bool is_used(const struct dv_strs *used, dv_str name)
{
    return used->n > 0 && bsearch(&name, used->v, used->n, sizeof(used->v[0]), dv_str_compare);
}

/* ---- sizes ---- */

/* The smaller of two limits; 0 is none. */
static uint64_t smaller(uint64_t a, uint64_t b)
{
    if (a == 0 || b == 0)
        return a + b;
    return dv_u64_min(a, b);
}

static uint64_t bytes_of(const struct dv_quantity *quantity)
{
    int64_t value;

    return dv_quantity_to_i64_ceil(quantity, &value) && value > 0 ? (uint64_t)value : 0;
}

static uint64_t node_memory_bytes(const struct dv_workload_node *node)
{
    for (size_t i = 0; i < node->n_allocatable; i++)
        if (dv_str_eq(node->allocatable[i].key, DV_STR("memory")))
            return bytes_of(&node->allocatable[i].value);
    return 0;
}

static uint64_t memory_bytes(const struct dv_volume_input *input, const struct dv_quantity *limit)
{
    uint64_t bytes = smaller(node_memory_bytes(input->node), input->memory_bytes);

    return limit ? smaller(bytes, bytes_of(limit)) : bytes;
}

/* ---- huge pages ---- */

/* What "2Mi" in "hugepages-2Mi" and "HugePages-2Mi" says; 0 for what is no size. */
static uint64_t page_bytes_of(dv_str size, struct dv_arena *arena)
{
    struct dv_quantity quantity;
    struct dv_err err;

    return dv_quantity_parse(size, arena, &quantity, &err) ? bytes_of(&quantity) : 0;
}

struct pages {
    uint64_t wanted_bytes; /* 0: whatever the containers ask for */
    uint64_t found_bytes;
    bool has_several;
};

static void look_for_pages(const struct dv_api_container *container, struct dv_arena *arena,
                           struct pages *pages)
{
    const struct dv_api_resource_requirements *resources = &container->resources;

    for (size_t i = 0; i < resources->n_requests; i++) {
        dv_str name = resources->requests[i].key;
        uint64_t bytes;

        if (!dv_str_starts_with(name, DV_STR(HUGE_PAGES_RESOURCE)))
            continue;
        bytes = page_bytes_of(dv_str_slice(name, sizeof(HUGE_PAGES_RESOURCE) - 1, name.n), arena);
        if (pages->wanted_bytes && bytes != pages->wanted_bytes)
            continue;
        pages->has_several |= pages->found_bytes && pages->found_bytes != bytes;
        pages->found_bytes = bytes;
    }
}

static void plan_huge_pages(const struct dv_volume_input *input, dv_str medium,
                            struct dv_arena *arena, struct dv_volume *volume)
{
    const struct dv_api_pod_spec *spec = &input->pod->pod->spec;
    struct pages pages = {0};

    volume->kind = DV_VOLUME_HUGE_PAGES;
    if (medium.n > sizeof(HUGE_PAGES)) /* "HugePages-2Mi" */
        pages.wanted_bytes =
            page_bytes_of(dv_str_slice(medium, sizeof(HUGE_PAGES), medium.n), arena);
    for (size_t i = 0; i < spec->n_init_containers; i++)
        look_for_pages(&spec->init_containers[i], arena, &pages);
    for (size_t i = 0; i < spec->n_containers; i++)
        look_for_pages(&spec->containers[i], arena, &pages);
    if (pages.has_several)
        volume->problem = dv_str_printf(arena,
                                        "medium: %.*s can't be used if container requests multiple "
                                        "huge page sizes",
                                        DV_FMT(medium));
    else if (pages.found_bytes == 0)
        volume->problem = dv_str_printf(arena,
                                        "medium %.*s: hugePages storage requested, but there is no "
                                        "resource request for huge pages.",
                                        DV_FMT(medium));
    volume->page_bytes = pages.found_bytes;
}

/* ---- the kinds ---- */

static void plan_empty_dir(const struct dv_volume_input *input,
                           const struct dv_api_empty_dir_volume_source *source,
                           struct dv_arena *arena, struct dv_volume *volume)
{
    if (source->medium.n == 0) {
        volume->kind = DV_VOLUME_DIRECTORY;
    } else if (dv_str_eq(source->medium, DV_STR("Memory"))) {
        volume->kind = DV_VOLUME_MEMORY;
        volume->size_bytes = memory_bytes(input, source->size_limit);
    } else if (dv_str_eq(source->medium, DV_STR(HUGE_PAGES)) ||
               dv_str_starts_with(source->medium, DV_STR(HUGE_PAGES "-"))) {
        plan_huge_pages(input, source->medium, arena, volume);
    } else {
        volume->problem =
            dv_str_printf(arena, "unknown storage medium \"%.*s\"", DV_FMT(source->medium));
    }
}

static bool has_back_step(dv_str path)
{
    dv_str part;

    while (dv_str_split(&path, '/', &part))
        if (dv_str_eq(part, DV_STR("..")))
            return true;
    return false;
}

static void plan_host_path(const struct dv_api_host_path_volume_source *source,
                           struct dv_arena *arena, struct dv_volume *volume)
{
    static const struct {
        dv_str name;
        enum dv_host_path_type type;
    } types[] = {
        {DV_STR_INIT(""),                  DV_HOST_PATH_ANY                },
        {DV_STR_INIT("DirectoryOrCreate"), DV_HOST_PATH_DIRECTORY_OR_CREATE},
        {DV_STR_INIT("Directory"),         DV_HOST_PATH_DIRECTORY          },
        {DV_STR_INIT("FileOrCreate"),      DV_HOST_PATH_FILE_OR_CREATE     },
        {DV_STR_INIT("File"),              DV_HOST_PATH_FILE               },
        {DV_STR_INIT("Socket"),            DV_HOST_PATH_SOCKET             },
        {DV_STR_INIT("CharDevice"),        DV_HOST_PATH_CHAR_DEVICE        },
        {DV_STR_INIT("BlockDevice"),       DV_HOST_PATH_BLOCK_DEVICE       },
    };

    volume->kind = DV_VOLUME_HOST_PATH;
    volume->path = source->path;
    volume->problem = dv_str_printf(arena, "%.*s is an invalid volume type", DV_FMT(source->type));
    for (size_t i = 0; i < DV_COUNT(types); i++) {
        if (!dv_str_eq(types[i].name, source->type))
            continue;
        volume->host_type = types[i].type;
        volume->problem = DV_STR_NONE;
    }
    if (has_back_step(source->path))
        volume->problem = dv_str_printf(arena, "invalid HostPath `%.*s`: must not contain '..'",
                                        DV_FMT(source->path));
    else if (!dv_str_starts_with(source->path, DV_STR("/")) ||
             memchr(source->path.p, '\0', source->path.n))
        volume->problem = dv_str_printf(arena, "invalid HostPath `%.*s`: must be an absolute path",
                                        DV_FMT(source->path));
}

/* Files are in memory unless they are a config map's: whoever reads the disk finds no secret. */
static void plan_files(struct dv_volume_filling *filling, const struct dv_api_volume *source,
                       struct dv_volume *volume)
{
    volume->is_read_only = true;
    volume->kind = DV_VOLUME_FILES;
    if (!source->volume_source.config_map) {
        volume->kind = DV_VOLUME_MEMORY_FILES;
        volume->size_bytes = memory_bytes(filling->input, NULL);
    }
    dv_volume_fill(filling, source, volume);
}

static dv_str plugin_of(const struct dv_api_volume_source *source)
{
    if (source->empty_dir)
        return DV_STR("kubernetes.io~empty-dir");
    if (source->config_map)
        return DV_STR("kubernetes.io~configmap");
    if (source->secret)
        return DV_STR("kubernetes.io~secret");
    if (source->downward_api)
        return DV_STR("kubernetes.io~downward-api");
    if (source->projected)
        return DV_STR("kubernetes.io~projected");
    return DV_STR_NONE;
}

/* A runtime that does not know such mounts would be told of one without a source. */
static void plan_image(const struct dv_workload_node *node, struct dv_arena *arena,
                       struct dv_volume *volume)
{
    volume->kind = DV_VOLUME_IMAGE;
    if (node->lacks_image_volumes)
        volume->problem = dv_str_printf(
            arena, "image volumes need containerd 2.1 or CRI-O 1.31; this is %.*s %.*s",
            DV_FMT(node->runtime_name), DV_FMT(node->runtime_version));
}

static void plan_volume(struct dv_volume_filling *filling, const struct dv_volume_plan *plan,
                        const struct dv_api_volume *source, struct dv_volume *volume)
{
    const struct dv_volume_input *input = filling->input;
    struct dv_arena *arena = filling->arena;
    const struct dv_api_volume_source *from = &source->volume_source;

    volume->name = source->name;
    volume->plugin = plugin_of(from);
    if (volume->plugin.n > 0)
        volume->path = dv_str_printf(arena, "%.*s/volumes/%.*s/%.*s", DV_FMT(plan->pod_dir),
                                     DV_FMT(volume->plugin), DV_FMT(volume->name));
    if (!dv_is_dns_label(source->name)) /* it is going to be the name of a directory */
        volume->problem = DV_STR("the volume's name is not a label of DNS");
    else if (from->empty_dir)
        plan_empty_dir(input, from->empty_dir, arena, volume);
    else if (from->host_path)
        plan_host_path(from->host_path, arena, volume);
    else if (from->image)
        plan_image(input->node, arena, volume);
    else if (volume->plugin.n > 0)
        plan_files(filling, source, volume);
    else
        volume->problem = DV_STR("no volume plugin matched: this node has emptyDir, hostPath, "
                                 "configMap, secret, downwardAPI, projected and image volumes");
    if (from->image)
        volume->is_read_only = true;
}

/* ---- the plan ---- */

struct dv_volume_plan *dv_volume_plan(const struct dv_volume_input *input, struct dv_arena *arena)
{
    const struct dv_api_pod_spec *spec = &input->pod->pod->spec;
    struct dv_volume_plan *plan = DV_NEW(arena, struct dv_volume_plan);
    struct dv_volume_filling filling = {.input = input, .arena = arena};
    struct dv_strs used = find_used(spec, arena);

    plan->uid = input->pod->uid;
    plan->pod_dir = dv_workload_pod_dir(input->node, input->pod, arena);
    plan->log_dir = dv_workload_log_dir(input->node, input->pod, arena);
    if (spec->security_context)
        /* fsGroupChangePolicy has no effect: it is for volumes that were there before the pod. */
        plan->fs_group = spec->security_context->fs_group;
    plan->volumes = DV_NEW_ARRAY(arena, struct dv_volume, spec->n_volumes);
    for (size_t i = 0; i < spec->n_volumes; i++) {
        struct dv_volume *volume = &plan->volumes[plan->n_volumes];

        if (!is_used(&used, spec->volumes[i].name))
            continue;
        plan_volume(&filling, plan, &spec->volumes[i], volume);
        plan->n_volumes++;
        plan->n_problems += volume->problem.n > 0;
    }
    return plan;
}

const struct dv_volume *dv_volume_find(const struct dv_volume_plan *plan, dv_str name)
{
    for (size_t i = 0; i < plan->n_volumes; i++)
        if (dv_str_eq(plan->volumes[i].name, name))
            return &plan->volumes[i];
    return NULL;
}

dv_str dv_volume_sub_path_place(const struct dv_volume_plan *plan, dv_str volume, dv_str container,
                                size_t index, struct dv_arena *arena)
{
    return dv_str_printf(arena, "%.*s/volume-subpaths/%.*s/%.*s/%zu", DV_FMT(plan->pod_dir),
                         DV_FMT(volume), DV_FMT(container), index);
}

const char *dv_volume_sub_path_fault(dv_str sub_path)
{
    if (sub_path.n > 0 && sub_path.p[0] == '/')
        return "must not be an absolute path";
    if (has_back_step(sub_path))
        return "must not contain '..'";
    if (sub_path.n > 0 && memchr(sub_path.p, '\0', sub_path.n))
        return "must not contain a zero byte";
    return NULL;
}

dv_str dv_volume_event(dv_str volume, dv_str problem, struct dv_arena *arena)
{
    return dv_str_printf(arena, "MountVolume.SetUp failed for volume \"%.*s\" : %.*s",
                         DV_FMT(volume), DV_FMT(problem));
}
