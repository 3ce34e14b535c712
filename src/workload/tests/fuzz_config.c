/* fuzz_config.c - any pod that can be decoded becomes messages, or there is a reason why not; what
 * is made twice is the same, and it can be sent. */
#include "workload/config.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "pb/pb.h"
#include "proto/cri_v1.pb-c.h"
#include "resource/resource.h"
#include "workload/workload.h"
#include "json/json.h"

/* What a runtime takes: far above what the limits on expanded texts allow for such inputs. */
#define MESSAGE_BYTES_MAX (64u * 1024u * 1024u)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct dv_workload_node make_node(unsigned flags)
{
    static dv_str ips[] = {DV_STR_INIT("192.168.7.1"), DV_STR_INIT("fd00::7")};
    static dv_str sizes[] = {DV_STR_INIT("2MB"), DV_STR_INIT("1GB")};
    static const struct dv_workload_handler handlers[] = {
        {.name = DV_STR_INIT(""), .has_recursive_read_only = true, .has_user_namespaces = true},
    };

    return (struct dv_workload_node){
        .name = DV_STR("node-1"),
        .root_dir = DV_STR("/var/lib/kubelet"),
        .log_dir = DV_STR("/var/log/pods"),
        .host_ips = {ips,   2                        },
        .has_pod_cgroups = true,
        .has_systemd_cgroups = (flags & 1) != 0,
        .cgroup_version = (flags & 2) != 0 ? 1 : 2,
        .has_swap_controller = true,
        .has_selinux = (flags & 4) != 0,
        .hugepage_sizes = {sizes, 2                        },
        .has_resolver = (flags & 8) != 0,
        .cluster_dns = {ips,   (flags & 16) != 0 ? 1 : 0},
        .cluster_domain = (flags & 32) != 0 ? DV_STR("cluster.local") : DV_STR(""),
        .hosts_file = DV_STR("127.0.0.1 localhost\n"),
        .handlers = handlers,
        .n_handlers = (flags & 64) != 0 ? 1 : 0,
    };
}

static dv_str encode(const ProtobufCMessage *message, struct dv_arena *arena)
{
    size_t size = dv_pb_size(message);
    char *bytes = dv_arena_alloc_raw(arena, size, 1);

    assert(size <= MESSAGE_BYTES_MAX);
    dv_pb_encode(message, bytes, size);
    return (dv_str){bytes, size};
}

/* The container's message; empty when there is none, and then there is a reason. */
static dv_str make(const struct dv_config_input *input, struct dv_arena *arena)
{
    struct dv_workload_mount *mounts =
        DV_NEW_ARRAY(arena, struct dv_workload_mount, input->container->n_volume_mounts);
    struct dv_config_environment environment;
    struct dv_err err = {0};
    CriV1__ContainerConfig *config = NULL;
    dv_str *sub_paths;

    if (dv_config_environment(input, arena, &environment, &err) &&
        dv_config_sub_paths(input, &environment, arena, &sub_paths, &err))
        config = dv_config_container(input, &environment, mounts, DV_STR("/log"), arena, &err);
    if (config)
        return encode(&config->base, arena);
    assert(err.code != DV_OK && err.msg[0] != '\0');
    return DV_STR("");
}

static void check_container(struct dv_config_input *input, const struct dv_api_container *container,
                            enum dv_workload_kind kind, struct dv_arena *arena)
{
    struct dv_err err;
    dv_str image;

    input->container = container;
    input->kind = kind;
    assert(dv_str_eq(make(input, arena), make(input, arena)));
    if (dv_config_image(container->image, arena, &image, &err))
        assert(image.n >= container->image.n);
}

static void check_pod(const struct dv_workload_node *node, const struct dv_workload_pod *pod,
                      struct dv_arena *arena)
{
    const struct dv_api_pod_spec *spec = &pod->pod->spec;
    const struct dv_workload_objects objects = {0};
    struct dv_config_input input = {.node = node, .pod = pod, .objects = &objects};
    struct dv_config_notes notes = {0};
    struct dv_config_cgroup cgroup;
    struct dv_err err = {0};
    CriV1__PodSandboxConfig *sandbox = dv_config_sandbox(node, pod, 0, arena, &notes, &err);
    dv_str text;

    assert(sandbox ? encode(&sandbox->base, arena).n > 0 : err.code != DV_OK);
    (void)dv_config_hosts(node, pod, arena, &text); /* whether there is one shows elsewhere */
    dv_config_cgroup(pod, arena, &cgroup);
    assert(cgroup.cpu_shares >= 2);
    for (size_t i = 0; i < spec->n_init_containers; i++)
        check_container(&input, &spec->init_containers[i],
                        i % 2 == 0 ? DV_WORKLOAD_SIDECAR : DV_WORKLOAD_INIT, arena);
    for (size_t i = 0; i < spec->n_containers; i++)
        check_container(&input, &spec->containers[i], DV_WORKLOAD_REGULAR, arena);
    for (size_t i = 0; i < spec->n_ephemeral_containers; i++)
        check_container(&input, &spec->ephemeral_containers[i].ephemeral_container_common,
                        DV_WORKLOAD_EPHEMERAL, arena);
}

/* The first byte chooses what the node is like; the rest is a pod in JSON. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct dv_json_opts opts = {.depth_max = 100, .nodes_max = 20000};
    const struct dv_kind *kind = dv_kind(DV_KIND_POD);
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_api_pod *api = DV_NEW(arena, struct dv_api_pod);
    struct dv_workload_pod pod = {.pod = api, .uid = DV_STR("u-1"), .source = DV_STR("api")};
    dv_str ip = DV_STR("10.1.0.5");
    struct dv_workload_node node;
    const struct dv_json *json;
    struct dv_err err;

    if (size < 1)
        return 0;
    json = dv_json_parse((dv_str){(const char *)data + 1, size - 1}, &opts, arena, &err);
    if (!json || !dv_decode_json(&dv_message_pod, json, DV_UNKNOWN_DROP, arena, api, NULL, &err))
        return 0;
    node = make_node(data[0]);
    if ((data[0] & 128) != 0)
        dv_default(kind, &kind->versions[0], api, (struct dv_time){0}, arena);
    else
        pod.ips = (struct dv_strs){&ip, 1};
    check_pod(&node, &pod, arena);
    return 0;
}
