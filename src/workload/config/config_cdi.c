/* config_cdi.c - applies CDI edits to a container's config, for runtimes without CDI. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "cdi/cdi.h"
#include "proto/cri_v1.pb-c.h"
#include "workload/config.h"
#include "workload/workload.h"

/* What the edits add, until it is known that all of them can be told. */
struct expansion {
    DV_VEC(CriV1__KeyValue *) envs;
    DV_VEC(CriV1__Device *) devices;
    DV_VEC(CriV1__Mount *) mounts;
    DV_VEC(int64_t) groups;
    const struct dv_workload_node *node;
    dv_config_look *look;
    void *ctx;
    struct dv_arena *arena;
};

/* Where an edit comes from: the device's name, or that of the spec's kind. */
static dv_str name_of(const struct dv_cdi_part *part)
{
    return part->device ? part->device->full_name : part->spec->kind;
}

static bool refuse(const struct expansion *expansion, const struct dv_cdi_part *part, dv_str what,
                   struct dv_err *err)
{
    return dv_fail(err, DV_FAILED_PRECONDITION,
                   "CDI device %.*s: %.*s cannot be told to %.*s %.*s: it takes containerd 2.0, "
                   "1.7.2 with enable_cdi, or CRI-O 1.28",
                   DV_FMT(name_of(part)), DV_FMT(what),
                   DV_FMT(expansion->node->runtime_name.n > 0 ? expansion->node->runtime_name
                                                              : DV_STR("this runtime")),
                   DV_FMT(expansion->node->runtime_version));
}

static void add_env(struct expansion *expansion, dv_str text)
{
    size_t equals = dv_str_find_char(text, '=');
    dv_str value = dv_str_slice(text, equals + 1, text.n);
    CriV1__KeyValue *made = DV_NEW(expansion->arena, CriV1__KeyValue);

    *made = (CriV1__KeyValue)CRI_V1__KEY_VALUE__INIT;
    made->key = dv_str_to_c(dv_str_slice(text, 0, equals), expansion->arena);
    made->value.len = value.n;
    made->value.data = dv_arena_alloc_raw(expansion->arena, value.n, 1);
    if (value.n > 0)
        memcpy(made->value.data, value.p, value.n);
    *dv_vec_add_in(&expansion->envs, expansion->arena) = made;
}

/* What of a node the runtime would make another one; NULL: nothing. It copies the host's node. */
static const char *node_fault(const struct dv_cdi_node *node, const struct dv_config_node *host)
{
    if (node->type == DV_CDI_NODE_FIFO)
        return "a FIFO, which";
    if (!host->is_device)
        return "no device of the host, and so it";
    if ((node->type == DV_CDI_NODE_BLOCK && !host->is_block) ||
        (node->type != DV_CDI_NODE_BLOCK && node->type != DV_CDI_NODE_ANY && host->is_block))
        return "of another type than the host's, which";
    if (node->major != 0 && (node->major != host->major || node->minor != host->minor))
        return "with other numbers than the host's, which";
    if (node->file_mode.is_set && (node->file_mode.value & 07777u) != host->mode)
        return "with a mode of its own, which";
    if ((node->uid.is_set && node->uid.value != host->uid) ||
        (node->gid.is_set && node->gid.value != host->gid))
        return "with an owner of its own, which";
    if (dv_str_eq(node->permissions, DV_STR("none")))
        return "without permissions, which";
    return NULL;
}

static bool add_node(struct expansion *expansion, const struct dv_cdi_part *part,
                     const struct dv_cdi_node *node, struct dv_err *err)
{
    dv_str host_path = node->host_path.n > 0 ? node->host_path : node->path;
    struct dv_config_node host = expansion->look(expansion->ctx, host_path);
    const char *fault = node_fault(node, &host);
    CriV1__Device *made;

    if (fault)
        return refuse(
            expansion, part,
            dv_str_printf(expansion->arena, "device node %.*s is %s", DV_FMT(node->path), fault),
            err);
    made = DV_NEW(expansion->arena, CriV1__Device);
    *made = (CriV1__Device)CRI_V1__DEVICE__INIT;
    made->container_path = dv_str_to_c(node->path, expansion->arena);
    made->host_path = dv_str_to_c(host_path, expansion->arena);
    made->permissions =
        node->permissions.n > 0 ? dv_str_to_c(node->permissions, expansion->arena) : "rwm";
    *dv_vec_add_in(&expansion->devices, expansion->arena) = made;
    return true;
}

/* Sets what an option says; false when the interface has nothing for it. */
static bool set_option(CriV1__Mount *mount, dv_str option)
{
    static const struct {
        dv_str option;
        CriV1__MountPropagation propagation;
    } known[] = {
        {DV_STR_INIT("private"),  CRI_V1__MOUNT_PROPAGATION__PROPAGATION_PRIVATE          },
        {DV_STR_INIT("rprivate"), CRI_V1__MOUNT_PROPAGATION__PROPAGATION_PRIVATE          },
        {DV_STR_INIT("slave"),    CRI_V1__MOUNT_PROPAGATION__PROPAGATION_HOST_TO_CONTAINER},
        {DV_STR_INIT("rslave"),   CRI_V1__MOUNT_PROPAGATION__PROPAGATION_HOST_TO_CONTAINER},
        {DV_STR_INIT("shared"),   CRI_V1__MOUNT_PROPAGATION__PROPAGATION_BIDIRECTIONAL    },
        {DV_STR_INIT("rshared"),  CRI_V1__MOUNT_PROPAGATION__PROPAGATION_BIDIRECTIONAL    },
    };

    if (dv_str_eq(option, DV_STR("ro")) || dv_str_eq(option, DV_STR("rw"))) {
        mount->readonly = option.p[1] == 'o';
        return true;
    }
    if (dv_str_eq(option, DV_STR("bind")) || dv_str_eq(option, DV_STR("rbind")))
        return true; /* every mount is */
    for (size_t i = 0; i < DV_COUNT(known); i++)
        if (dv_str_eq(option, known[i].option)) {
            mount->propagation = known[i].propagation;
            return true;
        }
    return false;
}

static bool add_mount(struct expansion *expansion, const struct dv_cdi_part *part,
                      const struct dv_cdi_mount *mount, struct dv_err *err)
{
    CriV1__Mount *made = DV_NEW(expansion->arena, CriV1__Mount);

    *made = (CriV1__Mount)CRI_V1__MOUNT__INIT;
    if (mount->type.n > 0 && !dv_str_eq(mount->type, DV_STR("bind")) &&
        !dv_str_eq(mount->type, DV_STR("rbind")) && !dv_str_eq(mount->type, DV_STR("none")))
        return refuse(expansion, part,
                      dv_str_printf(expansion->arena, "mount %.*s of type %.*s",
                                    DV_FMT(mount->container_path), DV_FMT(mount->type)),
                      err);
    for (size_t i = 0; i < mount->n_options; i++)
        if (!set_option(made, mount->options[i]))
            return refuse(expansion, part,
                          dv_str_printf(expansion->arena, "mount %.*s with option %.*s",
                                        DV_FMT(mount->container_path), DV_FMT(mount->options[i])),
                          err);
    made->container_path = dv_str_to_c(mount->container_path, expansion->arena);
    made->host_path = dv_str_to_c(mount->host_path, expansion->arena);
    *dv_vec_add_in(&expansion->mounts, expansion->arena) = made;
    return true;
}

static bool add_part(struct expansion *expansion, const struct dv_cdi_part *part,
                     struct dv_err *err)
{
    const struct dv_cdi_container_edits *edits = part->edits;

    if (edits->n_hooks > 0)
        return refuse(expansion, part,
                      dv_str_printf(expansion->arena, "hook %s %.*s",
                                    dv_cdi_hook_name_text(edits->hooks[0].name),
                                    DV_FMT(edits->hooks[0].path)),
                      err);
    if (edits->rdt)
        return refuse(expansion, part, DV_STR("intelRdt"), err);
    if (edits->n_net_devices > 0)
        return refuse(expansion, part,
                      dv_str_printf(expansion->arena, "network device %.*s",
                                    DV_FMT(edits->net_devices[0].host_name)),
                      err);
    for (size_t i = 0; i < edits->n_env; i++)
        add_env(expansion, edits->env[i]);
    for (size_t i = 0; i < edits->n_nodes; i++)
        if (!add_node(expansion, part, &edits->nodes[i], err))
            return false;
    for (size_t i = 0; i < edits->n_mounts; i++)
        if (!add_mount(expansion, part, &edits->mounts[i], err))
            return false;
    for (size_t i = 0; i < edits->n_gids; i++)
        if (edits->gids[i] != 0) /* root's group is the one that counts for nothing */
            *dv_vec_add_in(&expansion->groups, expansion->arena) = edits->gids[i];
    return true;
}

/* Makes one list of two; both are arrays of elements of `size` bytes. */
static void *join(const void *a, size_t n_a, const void *b, size_t n_b, size_t size,
                  struct dv_arena *arena)
{
    char *made = dv_arena_alloc_array(arena, n_a + n_b, size, _Alignof(max_align_t));

    if (n_a > 0)
        memcpy(made, a, n_a * size);
    if (n_b > 0)
        memcpy(made + n_a * size, b, n_b * size);
    return made;
}

static void apply(const struct expansion *expansion, CriV1__ContainerConfig *config)
{
    CriV1__LinuxContainerSecurityContext *security = config->linux->security_context;
    struct dv_arena *arena = expansion->arena;

    config->envs = join(config->envs, config->n_envs, expansion->envs.v, expansion->envs.n,
                        sizeof(CriV1__KeyValue *), arena);
    config->n_envs += expansion->envs.n;
    config->devices = join(config->devices, config->n_devices, expansion->devices.v,
                           expansion->devices.n, sizeof(CriV1__Device *), arena);
    config->n_devices += expansion->devices.n;
    config->mounts = join(config->mounts, config->n_mounts, expansion->mounts.v,
                          expansion->mounts.n, sizeof(CriV1__Mount *), arena);
    config->n_mounts += expansion->mounts.n;
    security->supplemental_groups =
        join(security->supplemental_groups, security->n_supplemental_groups, expansion->groups.v,
             expansion->groups.n, sizeof(int64_t), arena);
    security->n_supplemental_groups += expansion->groups.n;
    config->n_cdi_devices = 0;
    config->cdi_devices = NULL;
}

bool dv_config_expand_cdi(CriV1__ContainerConfig *config, const struct dv_cdi_edits *edits,
                          const struct dv_workload_node *node, dv_config_look *look, void *ctx,
                          struct dv_arena *arena, struct dv_err *err)
{
    struct expansion expansion = {.node = node, .look = look, .ctx = ctx, .arena = arena};

    for (size_t i = 0; i < edits->n_parts; i++)
        if (!add_part(&expansion, &edits->parts[i], err))
            return false;
    apply(&expansion, config);
    return true;
}
