/* What PodResources answers of pods and devices; claims are in test_podres_claims.c.
 *
 * Answers are compared as text: "default/p: main[gpu=d1@0 nic=n2] other[]; ...". */
#include "support/dvtest.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/num.h"
#include "base/vec.h"
#include "device/device.h"
#include "device/kubelet_checkpoint.h"
#include "pb/pb.h"
#include "pod/pod.h"
#include "proto/podresources_v1.pb-c.h"
#include "proto/podresources_v1alpha1.pb-c.h"
#include "serve/podresources/podres_answer.h"

#define TEXT_BYTES_MAX (1u << 20)
#define GPU "a.io/gpu"
#define NIC "b.io/nic"

struct fixture {
    struct dv_arena *arena;
    struct dv_device_state *devices;
    DV_VEC(struct dv_podres_pod) pods;
};

static int setup(void **state)
{
    struct fixture *fixture = DV_ALLOC(struct fixture);

    fixture->arena = dv_arena_new();
    fixture->devices = dv_device_state_new(NULL);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    dv_device_state_free(fixture->devices);
    dv_arena_free(fixture->arena);
    free(fixture);
    return 0;
}

/* -- A node --------------------------------------------------------------------------------- */

static void add_nodes(struct dv_buf *buf, dv_str nodes)
{
    size_t topology = dv_pb_begin(buf, 3);
    dv_str node;

    while (nodes.n > 0 && dv_str_split(&nodes, ',', &node)) {
        size_t mark = dv_pb_begin(buf, 1);
        uint64_t id = 0;

        assert_true(dv_str_to_u64(node, &id));
        dv_pb_add_number(buf, 1, id);
        dv_pb_end(buf, mark);
    }
    dv_pb_end(buf, topology);
}

/* A plugin with devices "d1 d2! d3@0 d4@0,1 d5@": d2 is unhealthy, d3 is on node 0, d4 on two, and
 * d5 has a topology without nodes. */
static void serve(struct fixture *fixture, const char *resource, const char *devices)
{
    const struct dv_device_plugin_options options = {0};
    dv_str rest = dv_str_from_c(devices);
    struct dv_device_diff diff;
    struct dv_err err;
    struct dv_buf buf;
    dv_str text;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    while (rest.n > 0 && dv_str_split(&rest, ' ', &text)) {
        size_t at = dv_str_find_char(text, '@');
        dv_str id = dv_str_slice(text, 0, at);
        bool is_healthy = !dv_str_ends_with(id, DV_STR("!"));
        size_t mark = dv_pb_begin(&buf, 1);

        dv_pb_add_bytes(&buf, 1, dv_str_slice(id, 0, is_healthy ? id.n : id.n - 1));
        dv_pb_add_bytes(&buf, 2, is_healthy ? DV_STR("Healthy") : DV_STR("Unhealthy"));
        if (at < text.n)
            add_nodes(&buf, dv_str_slice(text, at + 1, text.n));
        dv_pb_end(&buf, mark);
    }
    assert_ok(dv_device_connect(fixture->devices, dv_str_from_c(resource), DV_STR("a.sock"),
                                &options, &err),
              &err);
    assert_ok(dv_device_apply_list(fixture->devices, dv_str_from_c(resource), dv_buf_str(&buf),
                                   fixture->arena, &diff, &err),
              &err);
    dv_buf_fini(&buf);
}

/* The container holds devices, by node: "-1:d3 0:d1,d2". A pod's uid is its name. */
static void hold(struct fixture *fixture, const char *pod, const char *container,
                 const char *resource, const char *placed)
{
    DV_VEC(struct dv_device_placed) nodes = {0};
    dv_str rest = dv_str_from_c(placed);
    struct dv_device_record record;
    struct dv_device_checkpoint checkpoint = {.records = &record, .n_records = 1};
    size_t n_left_out;
    dv_str one;

    while (rest.n > 0 && dv_str_split(&rest, ' ', &one)) {
        struct dv_device_placed *node = dv_vec_add_in(&nodes, fixture->arena);
        DV_VEC(dv_str) ids = {0};
        dv_str number;
        dv_str id;

        assert_true(dv_str_split(&one, ':', &number) && dv_str_to_i64(number, &node->node));
        while (one.n > 0 && dv_str_split(&one, ',', &id))
            *dv_vec_add_in(&ids, fixture->arena) = id;
        node->ids = ids.v;
        node->n_ids = ids.n;
    }
    record = (struct dv_device_record){
        .pod_uid = dv_str_from_c(pod),
        .container = dv_str_from_c(container),
        .resource = dv_str_from_c(resource),
        .placed = nodes.v,
        .n_placed = nodes.n,
        .response = DV_STR(""),
    };
    dv_device_checkpoint_load(fixture->devices, &checkpoint, 0, &n_left_out);
    assert_int_equal(n_left_out, 0);
}

/* A pod "space/name" with containers "i:setup s:proxy main": plain init, sidecar, regular. */
static struct dv_podres_pod *add_pod(struct fixture *fixture, const char *name,
                                     const char *containers)
{
    DV_VEC(struct dv_pod_container) v = {0};
    struct dv_pod_spec *spec = DV_NEW(fixture->arena, struct dv_pod_spec);
    struct dv_podres_pod *pod = dv_vec_add_in(&fixture->pods, fixture->arena);
    dv_str rest = dv_str_from_c(containers);
    dv_str text;

    while (rest.n > 0 && dv_str_split(&rest, ' ', &text)) {
        struct dv_pod_container *container = dv_vec_add_in(&v, fixture->arena);

        container->kind = dv_str_starts_with(text, DV_STR("i:"))   ? DV_DEVICE_INIT
                          : dv_str_starts_with(text, DV_STR("s:")) ? DV_DEVICE_SIDECAR
                                                                   : DV_DEVICE_REGULAR;
        container->name = dv_str_slice(text, container->kind == DV_DEVICE_REGULAR ? 0 : 2, text.n);
    }
    rest = dv_str_from_c(name);
    assert_true(dv_str_split(&rest, '/', &spec->ref.namespace));
    spec->ref.name = spec->ref.uid = rest;
    spec->containers = v.v;
    spec->n_containers = v.n;
    *pod = (struct dv_podres_pod){.spec = spec, .is_active = true};
    return pod;
}

static struct dv_podres_node node_of(const struct fixture *fixture)
{
    return (struct dv_podres_node){
        .devices = fixture->devices, .pods = fixture->pods.v, .n_pods = fixture->pods.n};
}

/* -- Answers as text ------------------------------------------------------------------------ */

static void print_entry(struct dv_buf *buf, const PodresV1__ContainerDevices *entry)
{
    assert_int_equal(entry->n_device_ids, 1);
    dv_buf_printf(buf, "%s=%s", entry->resource_name + strlen("a.io/"), entry->device_ids[0]);
    if (!entry->topology)
        return;
    assert_int_equal(entry->topology->n_nodes, 1);
    dv_buf_printf(buf, "@%lld", (long long)entry->topology->nodes[0]->id);
}

static void print_pod(struct dv_buf *buf, const PodresV1__PodResources *pod)
{
    dv_buf_printf(buf, "%s/%s:", pod->namespace_, pod->name);
    for (size_t i = 0; i < pod->n_containers; i++) {
        const PodresV1__ContainerResources *container = pod->containers[i];

        dv_buf_printf(buf, " %s[", container->name);
        for (size_t k = 0; k < container->n_devices; k++) {
            if (k > 0)
                dv_buf_add_char(buf, ' ');
            print_entry(buf, container->devices[k]);
        }
        dv_buf_add_char(buf, ']');
        assert_int_equal(container->n_cpu_ids + container->n_memory, 0);
        assert_int_equal(container->n_dynamic_resources, 0);
    }
}

static const char *text_of(struct fixture *fixture, struct dv_buf *buf)
{
    const char *text = dv_str_to_c(dv_buf_str(buf), fixture->arena);

    dv_buf_fini(buf);
    return text;
}

static const char *list_as(struct fixture *fixture, const struct dv_podres_node *node)
{
    const PodresV1__ListPodResourcesResponse *response = dv_podres_list(node, fixture->arena);
    struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    for (size_t i = 0; i < response->n_pod_resources; i++) {
        dv_buf_add(&buf, i > 0 ? DV_STR("; ") : DV_STR(""));
        print_pod(&buf, response->pod_resources[i]);
    }
    return text_of(fixture, &buf);
}

static const char *list(struct fixture *fixture)
{
    struct dv_podres_node node = node_of(fixture);

    return list_as(fixture, &node);
}

static const char *get_as(struct fixture *fixture, const struct dv_podres_node *node,
                          const char *namespace, const char *name)
{
    struct dv_err err;
    const PodresV1__GetPodResourcesResponse *response =
        dv_podres_get(node, dv_str_from_c(namespace), dv_str_from_c(name), fixture->arena, &err);
    struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    if (response)
        print_pod(&buf, response->pod_resources);
    else
        dv_buf_printf(&buf, "%s: %s", dv_code_name(err.code), err.msg);
    return text_of(fixture, &buf);
}

static const char *get(struct fixture *fixture, const char *namespace, const char *name)
{
    struct dv_podres_node node = node_of(fixture);

    return get_as(fixture, &node, namespace, name);
}

static const char *alpha_list(struct fixture *fixture)
{
    struct dv_podres_node node = node_of(fixture);
    const PodresV1alpha1__ListPodResourcesResponse *response =
        dv_podres_alpha_list(&node, fixture->arena);
    struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    for (size_t i = 0; i < response->n_pod_resources; i++) {
        const PodresV1alpha1__PodResources *pod = response->pod_resources[i];

        dv_buf_printf(&buf, "%s%s/%s:", i > 0 ? "; " : "", pod->namespace_, pod->name);
        for (size_t k = 0; k < pod->n_containers; k++) {
            dv_buf_printf(&buf, " %s[", pod->containers[k]->name);
            for (size_t m = 0; m < pod->containers[k]->n_devices; m++)
                dv_buf_printf(&buf, "%s%s=%s", m > 0 ? " " : "",
                              pod->containers[k]->devices[m]->resource_name,
                              pod->containers[k]->devices[m]->device_ids[0]);
            dv_buf_add_char(&buf, ']');
        }
    }
    return text_of(fixture, &buf);
}

static const char *allocatable_as(struct fixture *fixture, const struct dv_podres_node *node)
{
    const PodresV1__AllocatableResourcesResponse *response =
        dv_podres_allocatable(node, fixture->arena);
    struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    for (size_t i = 0; i < response->n_devices; i++) {
        dv_buf_add(&buf, i > 0 ? DV_STR(" ") : DV_STR(""));
        print_entry(&buf, response->devices[i]);
    }
    assert_int_equal(response->n_cpu_ids + response->n_memory, 0);
    return text_of(fixture, &buf);
}

static const char *allocatable(struct fixture *fixture)
{
    struct dv_podres_node node = node_of(fixture);

    return allocatable_as(fixture, &node);
}

/* -- Pods and devices ----------------------------------------------------------------------- */

static void without_pods_answers_are_empty(void **state)
{
    assert_string_equal(list(*state), "");
    assert_string_equal(alpha_list(*state), "");
    assert_string_equal(get(*state, "default", "p"),
                        "UNKNOWN: pod p in namespace default not found");
}

static void a_pod_without_devices_is_listed_with_its_containers(void **state)
{
    (void)add_pod(*state, "default/p", "main other");
    assert_string_equal(list(*state), "default/p: main[] other[]");
    assert_string_equal(alpha_list(*state), "default/p: main[] other[]");
}

static void a_device_has_an_entry_for_each_of_its_nodes(void **state)
{
    (void)add_pod(*state, "default/p", "main other");
    hold(*state, "p", "main", NIC, "-1:n0");
    hold(*state, "p", "main", GPU, "0:d9,d2 1:d9");
    hold(*state, "p", "other", GPU, "0:d1");
    assert_string_equal(list(*state),
                        "default/p: main[gpu=d2@0 gpu=d9@0 gpu=d9@1 nic=n0] other[gpu=d1@0]");
    assert_string_equal(get(*state, "default", "p"), list(*state));
}

static void devices_are_those_of_the_pod_with_this_uid(void **state)
{
    (void)add_pod(*state, "default/p", "main");
    hold(*state, "q", "main", GPU, "0:d1");
    assert_string_equal(list(*state), "default/p: main[]");
}

static void only_active_pods_are_listed(void **state)
{
    (void)add_pod(*state, "zoo/a", "main");
    add_pod(*state, "default/done", "main")->is_active = false;
    (void)add_pod(*state, "default/q", "main");
    (void)add_pod(*state, "default/p", "main");
    assert_string_equal(list(*state), "default/p: main[]; default/q: main[]; zoo/a: main[]");
}

static void sidecars_come_first_and_init_containers_not_at_all(void **state)
{
    (void)add_pod(*state, "default/p", "i:setup s:proxy main");
    hold(*state, "p", "setup", GPU, "0:d1");
    hold(*state, "p", "proxy", GPU, "0:d2");
    hold(*state, "p", "main", GPU, "0:d1");
    assert_string_equal(list(*state), "default/p: proxy[gpu=d2@0] main[gpu=d1@0]");
    assert_string_equal(get(*state, "default", "p"), list(*state));
}

static void get_finds_active_pods_only(void **state)
{
    static const struct {
        const char *namespace;
        const char *name;
        const char *answer;
    } cases[] = {
        {"default", "p",    "default/p: main[gpu=d1@0] side[]"                },
        {"default", "q",    "default/q: main[]"                               },
        {"other",   "p",    "UNKNOWN: pod p in namespace other not found"     },
        {"default", "x",    "UNKNOWN: pod x in namespace default not found"   },
        {"default", "done", "UNKNOWN: pod done in namespace default not found"},
        {"",        "p",    "UNKNOWN: pod p in namespace  not found"          },
        {"",        "",     "UNKNOWN: pod  in namespace  not found"           },
    };

    (void)add_pod(*state, "default/p", "i:setup main side");
    (void)add_pod(*state, "default/q", "main");
    add_pod(*state, "default/done", "main")->is_active = false;
    hold(*state, "p", "main", GPU, "0:d1");
    for (size_t i = 0; i < DV_COUNT(cases); i++)
        assert_string_equal(get(*state, cases[i].namespace, cases[i].name), cases[i].answer);
}

static void strictly_get_answers_for_inactive_pods(void **state)
{
    struct dv_podres_node node;

    add_pod(*state, "default/done", "main")->is_active = false;
    node = node_of(*state);
    node.is_strict = true;
    assert_string_equal(get_as(*state, &node, "default", "done"), "default/done: main[]");
    assert_string_equal(list_as(*state, &node), "");
}

static void v1alpha1_has_all_pods_with_names_and_ids_only(void **state)
{
    (void)add_pod(*state, "default/p", "i:setup s:proxy main");
    add_pod(*state, "default/done", "main")->is_active = false;
    hold(*state, "p", "proxy", GPU, "0:d2");
    hold(*state, "p", "main", GPU, "0:d1 1:d1");
    assert_string_equal(alpha_list(*state),
                        "default/done: main[]; default/p: main[" GPU "=d1 " GPU "=d1]");
}

static void answers_are_the_same_after_a_restart(void **state)
{
    struct fixture *fixture = *state;
    struct dv_device_state *old = fixture->devices;
    struct dv_device_checkpoint checkpoint;
    const char *before;
    size_t n_left_out;

    (void)add_pod(fixture, "default/p", "main");
    serve(fixture, GPU, "d1 d2");
    hold(fixture, "p", "main", GPU, "-1:d1");
    before = list(fixture);
    assert_string_equal(before, "default/p: main[gpu=d1]");
    assert_string_equal(allocatable(fixture), "gpu=d1 gpu=d2");
    dv_device_checkpoint_take(old, fixture->arena, &checkpoint);
    fixture->devices = dv_device_state_new(NULL);
    dv_device_checkpoint_load(fixture->devices, &checkpoint, 0, &n_left_out);
    dv_device_state_free(old);
    assert_string_equal(list(fixture), before);
    assert_string_equal(allocatable(fixture), ""); /* until the plugin is back */
    serve(fixture, GPU, "d1 d2");
    assert_string_equal(list(fixture), before);
    assert_string_equal(allocatable(fixture), "gpu=d1 gpu=d2");
}

/* -- Allocatable ---------------------------------------------------------------------------- */

static void healthy_devices_are_allocatable_taken_or_not(void **state)
{
    assert_string_equal(allocatable(*state), "");
    serve(*state, NIC, "n1@3 n0");
    serve(*state, GPU, "d10@0 d9@1,0 d8! d7!@0");
    hold(*state, "p", "main", GPU, "0:d10");
    assert_string_equal(allocatable(*state), "gpu=d10@0 gpu=d9@0 gpu=d9@1 nic=n0 nic=n1@3");
}

static void devices_of_a_plugin_that_has_gone_are_not_allocatable(void **state)
{
    struct fixture *fixture = *state;

    serve(fixture, NIC, "n0");
    serve(fixture, GPU, "d1");
    assert_true(dv_device_disconnect(fixture->devices, DV_STR(GPU), DV_STR("a.sock"), 1));
    assert_string_equal(allocatable(fixture), "nic=n0");
}

static void a_topology_without_nodes_is_none(void **state)
{
    struct dv_podres_node node = node_of(*state);

    serve(*state, GPU, "d1@ d2 d3@0");
    assert_string_equal(allocatable(*state), "gpu=d1 gpu=d2 gpu=d3@0");
    node.is_strict = true;
    assert_string_equal(allocatable_as(*state, &node), "gpu=d2 gpu=d3@0");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(without_pods_answers_are_empty),
        TEST(a_pod_without_devices_is_listed_with_its_containers),
        TEST(a_device_has_an_entry_for_each_of_its_nodes),
        TEST(devices_are_those_of_the_pod_with_this_uid),
        TEST(only_active_pods_are_listed),
        TEST(sidecars_come_first_and_init_containers_not_at_all),
        TEST(get_finds_active_pods_only),
        TEST(strictly_get_answers_for_inactive_pods),
        TEST(v1alpha1_has_all_pods_with_names_and_ids_only),
        TEST(answers_are_the_same_after_a_restart),
        TEST(healthy_devices_are_allocatable_taken_or_not),
        TEST(devices_of_a_plugin_that_has_gone_are_not_allocatable),
        TEST(a_topology_without_nodes_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
