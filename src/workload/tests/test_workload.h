/* test_workload.h - a node, pods and objects for the tests of this module. */
#ifndef DV_WORKLOAD_TESTS_TEST_WORKLOAD_H
#define DV_WORKLOAD_TESTS_TEST_WORKLOAD_H

#include "base/arena.h"        /* IWYU pragma: export */
#include "base/defs.h"         /* IWYU pragma: export */
#include "number/number.h"     /* IWYU pragma: export */
#include "resource/resource.h" /* IWYU pragma: export */
#include "support/docs.h"      /* IWYU pragma: export */
#include "support/dvtest.h"    /* IWYU pragma: export */
#include "workload/workload.h" /* IWYU pragma: export */

#define TEST_UID "01234567-89ab-cdef-0123-456789abcdef"

/* Reads an object from YAML, with the API's defaults. */
static inline void *test_object(enum dv_kind_id id, const char *yaml)
{
    const struct dv_kind *kind = dv_kind(id);
    const struct dv_message *message = kind->versions[0].message;
    void *value = dv_arena_alloc(arena, message->size, _Alignof(max_align_t));
    struct dv_err err;

    assert_ok(dv_decode_json(message, parse_yaml(yaml), DV_UNKNOWN_DROP, arena, value, NULL, &err),
              &err);
    dv_default(kind, &kind->versions[0], value, (struct dv_time){0}, arena);
    return value;
}

/* A pod of the API called p in namespace ns, with this spec in YAML's flow style. */
static inline struct dv_workload_pod test_pod(const char *spec)
{
    static dv_str ips[] = {DV_STR_INIT("10.1.0.5")};
    dv_str yaml = dv_str_printf(arena,
                                "{metadata: {name: p, namespace: ns, labels: {app: web}, "
                                "annotations: {note: hello}}, spec: {nodeName: node-1, %s}}",
                                spec);

    return (struct dv_workload_pod){
        .pod = test_object(DV_KIND_POD, dv_str_to_c(yaml, arena)),
        .uid = DV_STR(TEST_UID),
        .source = DV_STR("api"),
        .seen = DV_STR("2026-01-02T03:04:05Z"),
        .ips = {ips, 1},
    };
}

static inline struct dv_quantity_entry test_amount(const char *resource, const char *amount)
{
    struct dv_quantity_entry entry = {.key = dv_str_from_c(resource)};
    struct dv_err err;

    assert_ok(dv_quantity_parse(dv_str_from_c(amount), arena, &entry.value, &err), &err);
    return entry;
}

/* A node with 4 CPUs and 8 GiB. */
static inline struct dv_workload_node test_node(void)
{
    static dv_str host_ips[] = {DV_STR_INIT("192.168.7.1"), DV_STR_INIT("fd00::7")};
    static dv_str servers[] = {DV_STR_INIT("192.0.2.53")};
    static dv_str searches[] = {DV_STR_INIT("corp.example")};
    static dv_str options[] = {DV_STR_INIT("timeout:2")};
    static dv_str cluster_dns[] = {DV_STR_INIT("10.0.0.10")};
    static dv_str sizes[] = {DV_STR_INIT("2MB"), DV_STR_INIT("1GB")};
    struct dv_quantity_entry *amounts = DV_NEW_ARRAY(arena, struct dv_quantity_entry, 3);

    amounts[0] = test_amount("cpu", "4");
    amounts[1] = test_amount("ephemeral-storage", "100Gi");
    amounts[2] = test_amount("memory", "8Gi");
    return (struct dv_workload_node){
        .name = DV_STR("node-1"),
        .root_dir = DV_STR("/var/lib/kubelet"),
        .log_dir = DV_STR("/var/log/pods"),
        .host_ips = {host_ips,     2            },
        .allocatable = amounts,
        .n_allocatable = 3,
        .capacity = amounts,
        .n_capacity = 3,
        .has_pod_cgroups = true,
        .cgroup_version = 2,
        .hugepage_sizes = {sizes,        2            },
        .resolver = {{servers, 1}, {searches, 1}, {options, 1}},
        .has_resolver = true,
        .cluster_dns = {cluster_dns,            1              },
        .cluster_domain = DV_STR("cluster.local"),
        .hosts_file = DV_STR("127.0.0.1 localhost\n"),
        .has_supplemental_groups_policy = true,
    };
}

#endif
