#include "cri_config_case.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/vec.h"
#include "number/number.h"
#include "resource/resource.h"
#include "json/json.h"

#define NODE_BYTES_MAX (1024u * 1024u)
#define DRIVER_CLASS "test-driver.cdi.k8s.io/test"
#define SAMPLE_PREFIX DV_STR("example.com/resource=CDI-")

static void must(bool is_ok, const char *what, const struct dv_err *err)
{
    if (is_ok)
        return;
    printf("%s: %s\n", what, err->msg);
    exit(2);
}

static dv_str text_of(const struct dv_json *node)
{
    dv_str value = {0};
    struct dv_err err;

    if (node)
        must(dv_json_as_str(node, &value, &err), "text", &err);
    return value;
}

static dv_str member(const struct dv_json *object, const char *key)
{
    return text_of(dv_json_get(object, dv_str_from_c(key)));
}

static struct dv_strs texts_of(const struct dv_json *list, struct dv_arena *arena)
{
    struct dv_strs made = {.v = DV_NEW_ARRAY(arena, dv_str, dv_json_n(list))};

    for (const struct dv_json *node = dv_json_first(list); node; node = dv_json_next(node))
        made.v[made.n++] = text_of(node);
    return made;
}

static bool is_true(const struct dv_json *node)
{
    bool value = false;
    struct dv_err err;

    if (node)
        must(dv_json_as_bool(node, &value, &err), "flag", &err);
    return value;
}

static int64_t number_of(const struct dv_json *node)
{
    int64_t value = 0;
    struct dv_err err;

    if (node)
        must(dv_json_as_i64(node, &value, &err), "number", &err);
    return value;
}

const struct dv_json *cri_config_read_node(const char *dir, struct dv_arena *arena)
{
    dv_str path = dv_str_printf(arena, "%s/node.json", dir);
    struct dv_json *doc;
    struct dv_err err;
    dv_str text;

    must(dv_file_read(path, NODE_BYTES_MAX, arena, &text, &err), "node.json", &err);
    doc = dv_json_parse(text, NULL, arena, &err);
    must(doc != NULL, "node.json", &err);
    return doc;
}

/* ---- the node ---- */

static struct dv_quantity_entry *amounts_of(const struct dv_json *object, struct dv_arena *arena,
                                            size_t *n)
{
    struct dv_quantity_entry *made =
        DV_NEW_ARRAY(arena, struct dv_quantity_entry, dv_json_n(object));
    struct dv_err err;

    *n = 0;
    for (const struct dv_json *node = dv_json_first(object); node; node = dv_json_next(node)) {
        made[*n].key = dv_json_key(node);
        must(dv_quantity_parse(text_of(node), arena, &made[*n].value, &err), "amount", &err);
        (*n)++;
    }
    return made;
}

static void read_handlers(const struct dv_json *list, struct dv_arena *arena,
                          struct dv_workload_node *node)
{
    struct dv_workload_handler *handlers =
        DV_NEW_ARRAY(arena, struct dv_workload_handler, dv_json_n(list));

    node->handlers = handlers;
    for (const struct dv_json *from = dv_json_first(list); from; from = dv_json_next(from)) {
        const struct dv_json *features = dv_json_get(from, DV_STR("features"));

        handlers[node->n_handlers++] = (struct dv_workload_handler){
            .name = member(from, "name"),
            .has_recursive_read_only =
                is_true(dv_json_get(features, DV_STR("recursiveReadOnlyMounts"))),
            .has_user_namespaces = is_true(dv_json_get(features, DV_STR("userNamespaces"))),
        };
    }
}

static struct dv_workload_node read_node(const struct dv_json *json, struct dv_arena *arena)
{
    const struct dv_json *resolver = dv_json_get(json, DV_STR("resolvConf"));
    struct dv_workload_node node = {
        .name = member(json, "name"),
        .root_dir = DV_STR("/var/lib/kubelet"),
        .log_dir = DV_STR("/var/log/pods"),
        .has_pod_cgroups = true,
        .has_systemd_cgroups = dv_str_eq(member(json, "cgroupDriver"), DV_STR("systemd")),
        .cgroup_version = (unsigned)number_of(dv_json_get(json, DV_STR("cgroupVersion"))),
        .has_swap_controller = true,
        .hugepage_sizes = texts_of(dv_json_get(json, DV_STR("hugepageSizes")), arena),
        .resolver = {texts_of(dv_json_get(resolver, DV_STR("servers")), arena),
                     texts_of(dv_json_get(resolver, DV_STR("searches")), arena),
                     texts_of(dv_json_get(resolver, DV_STR("options")), arena)},
        .has_resolver = resolver != NULL,
        .cluster_dns = texts_of(dv_json_get(json, DV_STR("clusterDNS")), arena),
        .cluster_domain = member(json, "clusterDomain"),
        .hosts_file = member(json, "hostsFile"),
    };

    node.host_ips = (struct dv_strs){DV_NEW_ARRAY(arena, dv_str, 1), 1};
    node.host_ips.v[0] = member(json, "internalIP");
    node.allocatable =
        amounts_of(dv_json_get(json, DV_STR("allocatable")), arena, &node.n_allocatable);
    node.capacity = amounts_of(dv_json_get(json, DV_STR("capacity")), arena, &node.n_capacity);
    read_handlers(dv_json_get(json, DV_STR("runtimeHandlers")), arena, &node);
    return node;
}

/* ---- objects ---- */

/* Decodes an object of the API into zeroed memory. */
static void *decode(const struct dv_message *message, const struct dv_json *json,
                    struct dv_arena *arena)
{
    void *value = dv_arena_alloc(arena, message->size, _Alignof(max_align_t));
    struct dv_err err;

    must(dv_decode_json(message, json, DV_UNKNOWN_DROP, arena, value, NULL, &err), "object", &err);
    return value;
}

static void read_config_maps(const struct dv_json *by_name, struct cri_config_case *made)
{
    const struct dv_api_config_map **list =
        DV_NEW_ARRAY(made->arena, const struct dv_api_config_map *, dv_json_n(by_name));

    made->objects.config_maps = list;
    for (const struct dv_json *from = dv_json_first(by_name); from; from = dv_json_next(from)) {
        struct dv_api_config_map *map = decode(&dv_message_config_map, from, made->arena);

        map->metadata.name = dv_json_key(from);
        list[made->objects.n_config_maps++] = map;
    }
}

/* Secrets are recorded as config maps are: text in data, bytes in binaryData. */
static void read_secrets(const struct dv_json *by_name, struct cri_config_case *made)
{
    const struct dv_api_secret **list =
        DV_NEW_ARRAY(made->arena, const struct dv_api_secret *, dv_json_n(by_name));

    made->objects.secrets = list;
    for (const struct dv_json *from = dv_json_first(by_name); from; from = dv_json_next(from)) {
        const struct dv_api_config_map *map = decode(&dv_message_config_map, from, made->arena);
        struct dv_api_secret *secret = DV_NEW(made->arena, struct dv_api_secret);

        secret->metadata.name = dv_json_key(from);
        secret->data =
            DV_NEW_ARRAY(made->arena, struct dv_str_entry, map->n_data + map->n_binary_data);
        for (size_t i = 0; i < map->n_data; i++)
            secret->data[secret->n_data++] = map->data[i];
        for (size_t i = 0; i < map->n_binary_data; i++)
            secret->data[secret->n_data++] = map->binary_data[i];
        qsort(secret->data, secret->n_data, sizeof(secret->data[0]), dv_str_compare);
        list[made->objects.n_secrets++] = secret;
    }
}

static struct dv_workload_service read_service(const struct dv_json *spec, dv_str namespace,
                                               dv_str name, struct dv_arena *arena)
{
    const struct dv_json *ports = dv_json_get(spec, DV_STR("ports"));
    struct dv_workload_port *list = DV_NEW_ARRAY(arena, struct dv_workload_port, dv_json_n(ports));
    struct dv_workload_service service = {.namespace = namespace,
                                          .name = name,
                                          .cluster_ip = member(spec, "clusterIP"),
                                          .ports = list};

    for (const struct dv_json *port = dv_json_first(ports); port; port = dv_json_next(port))
        list[service.n_ports++] = (struct dv_workload_port){
            .name = member(port, "name"),
            .port = (int32_t)number_of(dv_json_get(port, DV_STR("port"))),
            .protocol = member(port, "protocol"),
        };
    return service;
}

static void read_services(struct cri_config_case *made)
{
    const struct dv_json *list = dv_json_get(made->json, DV_STR("services"));
    struct dv_workload_service *services =
        DV_NEW_ARRAY(made->arena, struct dv_workload_service, dv_json_n(list) + 1);
    size_t n = 0;

    services[n++] = read_service(dv_json_get(made->node_json, DV_STR("kubernetesService")),
                                 DV_STR("default"), DV_STR("kubernetes"), made->arena);
    for (const struct dv_json *from = dv_json_first(list); from; from = dv_json_next(from))
        services[n++] =
            read_service(dv_json_get(from, DV_STR("spec")), made->api->metadata.namespace,
                         member(dv_json_get(from, DV_STR("metadata")), "name"), made->arena);
    made->objects.services = services;
    made->objects.n_services = n;
}

void cri_config_read(const struct dv_json *json, const struct dv_json *node_json,
                     struct dv_arena *arena, struct cri_config_case *made)
{
    static dv_str pod_ip[] = {DV_STR_INIT("<podIP>")};

    *made = (struct cri_config_case){.json = json, .node_json = node_json, .arena = arena};
    made->node = read_node(node_json, arena);
    made->api = decode(&dv_message_pod, dv_json_get(json, DV_STR("pod")), arena);
    made->pod = (struct dv_workload_pod){
        .pod = made->api,
        .uid = made->api->metadata.uid,
        .source = DV_STR("api"),
        .seen = DV_STR("<time>"),
        .ips = {pod_ip, 1},
    };
    if (made->api->spec.host_network)
        made->pod.ips = made->node.host_ips;
    read_config_maps(dv_json_get(json, DV_STR("configMaps")), made);
    read_secrets(dv_json_get(json, DV_STR("secrets")), made);
    read_services(made);
}

/* ---- what containers were given ---- */

struct names {
    dv_str *v;
    size_t n;
    size_t size;
};

static void add_claim(const struct cri_config_case *of, const struct dv_json *claim, dv_str request,
                      struct names *names)
{
    const struct dv_json *allocation =
        dv_json_get(dv_json_get(claim, DV_STR("status")), DV_STR("allocation"));
    const struct dv_json *results =
        dv_json_get(dv_json_get(allocation, DV_STR("devices")), DV_STR("results"));
    dv_str uid = member(dv_json_get(claim, DV_STR("metadata")), "uid");

    for (const struct dv_json *result = dv_json_first(results); result;
         result = dv_json_next(result)) {
        dv_str of_request = member(result, "request");

        if (request.n == 0 || dv_str_eq(request, of_request))
            *dv_vec_add_in(names, of->arena) = dv_str_printf(
                of->arena, DRIVER_CLASS "=claim-%.*s-%.*s", DV_FMT(uid), DV_FMT(of_request));
    }
}

static void add_claims(const struct cri_config_case *of, const struct dv_api_container *container,
                       struct names *names)
{
    const struct dv_json *claims = dv_json_get(of->json, DV_STR("claims"));

    for (size_t i = 0; i < container->resources.n_claims; i++) {
        const struct dv_api_container_claim *wanted = &container->resources.claims[i];
        dv_str object = {0};

        for (size_t j = 0; j < of->api->spec.n_resource_claims; j++)
            if (dv_str_eq(of->api->spec.resource_claims[j].name, wanted->name))
                object = of->api->spec.resource_claims[j].resource_claim_name;
        for (const struct dv_json *claim = dv_json_first(claims); claim;
             claim = dv_json_next(claim))
            if (dv_str_eq(member(dv_json_get(claim, DV_STR("metadata")), "name"), object))
                add_claim(of, claim, wanted->request, names);
    }
}

static void add_full(struct cri_config_case const *of, int64_t n, struct dv_workload_given *given,
                     struct names *names)
{
    static const struct dv_workload_given_mount mounts[] = {
        {DV_STR_INIT("/opt/full/ro"), DV_STR_INIT("/run"),      true },
        {DV_STR_INIT("/opt/full/rw"), DV_STR_INIT("/run/lock"), false},
    };
    static const struct dv_str_entry annotations[] = {
        {DV_STR_INIT("full.example/a"),                       DV_STR_INIT("x") },
        {DV_STR_INIT("io.kubernetes.container.restartCount"), DV_STR_INIT("77")},
    };
    static const char *const permissions[] = {"rw", "mrw", "r"};
    struct dv_str_entry *envs = DV_NEW_ARRAY(of->arena, struct dv_str_entry, 3);
    struct dv_workload_device *devices =
        DV_NEW_ARRAY(of->arena, struct dv_workload_device, (size_t)n);

    envs[0] = (struct dv_str_entry){DV_STR("PLUG_A"),
                                    dv_str_printf(of->arena, "count-%lld", (long long)n)};
    envs[1] = (struct dv_str_entry){DV_STR("PLUG_SHARED"), DV_STR("plugin")};
    envs[2] = (struct dv_str_entry){DV_STR("PLUG_REF"), DV_STR("$(PLUG_A)")};
    for (int64_t i = 0; i < n; i++)
        devices[i] = (struct dv_workload_device){
            .container_path = dv_str_printf(of->arena, "/dev/full%lld", (long long)i),
            .host_path = DV_STR("/dev/null"),
            .permissions = dv_str_from_c(permissions[i % 3]),
        };
    given->envs = envs;
    given->n_envs = 3;
    given->mounts = mounts;
    given->n_mounts = DV_COUNT(mounts);
    given->annotations = annotations;
    given->n_annotations = DV_COUNT(annotations);
    given->devices = devices;
    given->n_devices = (size_t)n;
    *dv_vec_add_in(names, of->arena) = DV_STR("full.example/class=zz");
}

/* The sample plugin: a mount and a CDI name for each device. */
static void add_sample(const struct cri_config_case *of, const struct dv_json *recorded,
                       struct dv_workload_given *given, struct names *names)
{
    const struct dv_json *list = dv_json_get(recorded, DV_STR("CDI_devices"));
    struct dv_workload_given_mount *mounts =
        DV_NEW_ARRAY(of->arena, struct dv_workload_given_mount, dv_json_n(list));

    given->mounts = mounts;
    for (const struct dv_json *node = dv_json_first(list); node; node = dv_json_next(node)) {
        dv_str name = member(node, "name");
        dv_str path;

        if (!dv_str_starts_with(name, SAMPLE_PREFIX))
            continue;
        path = dv_str_printf(of->arena, "/tmp/%.*s",
                             DV_FMT(dv_str_slice(name, SAMPLE_PREFIX.n, name.n)));
        mounts[given->n_mounts++] =
            (struct dv_workload_given_mount){.container_path = path, .host_path = path};
        *dv_vec_add_in(names, of->arena) = name;
    }
}

struct dv_workload_given *cri_config_given(const struct cri_config_case *of,
                                           const struct dv_api_container *container,
                                           const struct dv_json *recorded)
{
    struct dv_workload_given *given = DV_NEW(of->arena, struct dv_workload_given);
    const struct dv_api_resource_requirements *resources = &container->resources;
    const struct dv_quantity *full =
        dv_workload_amount(resources->limits, resources->n_limits, DV_STR("full.example/dev"));
    const struct dv_quantity *sample =
        dv_workload_amount(resources->limits, resources->n_limits, DV_STR("example.com/resource"));
    struct names names = {0};

    add_claims(of, container, &names);
    if (full)
        add_full(of, dv_workload_whole(full), given, &names);
    if (sample)
        add_sample(of, recorded, given, &names);
    given->cdi_names = names.v;
    given->n_cdi_names = names.n;
    return given;
}

struct dv_config_image cri_config_image(dv_str reference, struct dv_arena *arena)
{
    bool has_registry = dv_str_starts_with(reference, DV_STR("docker.io/"));
    struct dv_config_image image = {
        .id = dv_str_printf(arena, "<image:%s%.*s>", has_registry ? "" : "docker.io/",
                            DV_FMT(reference)),
    };

    if (dv_str_ends_with(reference, DV_STR("/uid:1")) ||
        dv_str_ends_with(reference, DV_STR("/usergrp:1"))) {
        image.uid = 1234;
        image.has_uid = true;
    } else if (dv_str_ends_with(reference, DV_STR("/named:1"))) {
        image.username = DV_STR("app");
    }
    return image;
}
