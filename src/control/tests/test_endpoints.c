/* test_endpoints.c - which addresses are behind a service, as tables. */
#include "support/dvtest.h"

#include <stdbool.h>

#include "base/arena.h"
#include "base/defs.h"
#include "control/endpoints.h"
#include "resource/resource.h"
#include "support/arena.h"
#include "json/json.h"

#define SERVICE                                                                                    \
    "metadata: {name: s, namespace: ns, uid: u}, spec: {type: ClusterIP, selector: {app: web}, "   \
    "ports: [{name: http, protocol: TCP, port: 80, targetPort: web}]"
#define POD                                                                                        \
    "namespace: ns, labels: {app: web, more: x}}, spec: {nodeName: n1, containers: [{ports: "      \
    "[{name: web, containerPort: 8080, protocol: TCP}]}]}"

static void *read_as(const struct dv_message *message, const char *yaml, struct dv_arena *arena)
{
    void *value = dv_arena_alloc(arena, message->size, message->align);
    struct dv_err err;
    const struct dv_json *doc = dv_yaml_parse(dv_str_from_c(yaml), NULL, arena, &err);

    assert_ok(doc, &err);
    assert_ok(dv_decode_json(message, doc, DV_UNKNOWN_DROP, arena, value, NULL, &err), &err);
    return value;
}

static void pods_are_selected(void **state)
{
    static const char ready[] = "{metadata: {name: p, " POD ", status: {podIP: 10.0.0.1}}";
    static const struct {
        const char *service;
        const char *pod;
        bool is_selected;
    } rows[] = {
        {"{" SERVICE "}}",                                               ready,                           true },
        {"{" SERVICE ", selector: {}}}",                                 ready,                           false},
        {"{" SERVICE ", selector: {app: web, other: y1}}}",              ready,                           false},
        {"{" SERVICE ", selector: {app: other}}}",                       ready,                           false},
        {"{" SERVICE ", type: ExternalName}}",                           ready,                           false},
        {"{" SERVICE ", ipFamilies: [IPv6]}}",                           ready,                           false},
        {"{metadata: {namespace: other}, spec: {selector: {app: web}}}", ready,                           false},
        {"{" SERVICE "}}",                                               "{metadata: {name: p, " POD "}", false},
        {"{" SERVICE "}}",
         "{metadata: {name: p, " POD ", status: {podIP: 10.0.0.1, phase: Succeeded}}",                    false},
    };

    for (size_t i = 0; i < DV_COUNT(rows); i++)
        assert_int_equal(dv_service_selects(read_as(&dv_message_service, rows[i].service, *state),
                                            read_as(&dv_message_pod, rows[i].pod, *state)),
                         rows[i].is_selected);
}

static void an_endpoint_says_whether_it_serves(void **state)
{
    static const struct {
        const char *pod;
        bool publishes;
        bool is_ready, is_serving, is_terminating;
    } rows[] = {
        {"",                                               false, false, false, false},
        {", conditions: [{type: Ready, status: 'True'}]",  false, true,  true,  false},
        {", conditions: [{type: Ready, status: 'False'}]", false, false, false, false},
        {"",                                               true,  true,  true,  false},
    };

    for (size_t i = 0; i < DV_COUNT(rows); i++) {
        struct dv_api_service *service = read_as(&dv_message_service, "{" SERVICE "}}", *state);
        dv_str text = dv_str_printf(
            *state, "{metadata: {name: p, uid: pu, " POD ", status: {podIP: 10.0.0.1%s}}",
            rows[i].pod);
        const struct dv_api_pod *pod = read_as(&dv_message_pod, dv_str_to_c(text, *state), *state);
        const struct dv_api_endpoint_slice *slices;
        size_t n;

        service->spec.publish_not_ready_addresses = rows[i].publishes;
        slices = dv_service_slices(service, &pod, 1, *state, &n);
        assert_int_equal(n, 1);
        assert_int_equal(slices->n_endpoints, 1);
        assert_str(slices->endpoints[0].addresses[0], "10.0.0.1");
        assert_str(slices->endpoints[0].node_name, "n1");
        assert_str(slices->endpoints[0].target_ref->uid, "pu");
        assert_int_equal(*slices->endpoints[0].conditions.ready, rows[i].is_ready);
        assert_int_equal(*slices->endpoints[0].conditions.serving, rows[i].is_serving);
        assert_int_equal(*slices->endpoints[0].conditions.terminating, rows[i].is_terminating);
        assert_int_equal(*slices->ports[0].port, 8080);
        assert_str(slices->metadata.owner_references[0].uid, "u");
    }
}

/* Pods that give a name to different ports cannot be in one slice. */
static void each_set_of_ports_has_its_slice(void **state)
{
    const struct dv_api_service *service = read_as(&dv_message_service, "{" SERVICE "}}", *state);
    const struct dv_api_pod *pods[4];
    struct dv_api_endpoint_slice *slices, *again;
    size_t n, n_again;

    pods[0] = read_as(&dv_message_pod, "{metadata: {name: a, " POD ", status: {podIP: 10.0.0.1}}",
                      *state);
    pods[1] = read_as(&dv_message_pod,
                      "{spec: {containers: [{ports: [{name: web, containerPort: 9, protocol: "
                      "TCP}]}]}, status: {podIP: 10.0.0.2}}",
                      *state);
    pods[2] = read_as(&dv_message_pod, "{metadata: {name: c, " POD ", status: {podIP: 10.0.0.3}}",
                      *state);
    pods[3] =
        read_as(&dv_message_pod, "{status: {podIP: 10.0.0.4}}", *state); /* has no such port */
    slices = dv_service_slices(service, pods, 4, *state, &n);
    assert_int_equal(n, 2);
    assert_int_equal(slices[0].n_endpoints, 2);
    assert_int_equal(slices[1].n_endpoints, 1);
    assert_int_equal(*slices[1].ports[0].port, 9);
    assert_false(dv_str_eq(slices[0].metadata.name, slices[1].metadata.name));
    assert_true(dv_str_starts_with(slices[0].metadata.name, DV_STR("s-")));
    again = dv_service_slices(service, pods, 2, *state, &n_again);
    assert_true(dv_str_eq(again[0].metadata.name, slices[0].metadata.name));
}

static void a_slice_has_up_to_a_thousand_addresses(void **state)
{
    const struct dv_api_service *service = read_as(&dv_message_service, "{" SERVICE "}}", *state);
    const struct dv_api_pod *pods[1001];
    const struct dv_api_endpoint_slice *slices;
    size_t n;

    pods[0] = read_as(&dv_message_pod, "{metadata: {name: a, " POD ", status: {podIP: 10.0.0.1}}",
                      *state);
    for (size_t i = 1; i < DV_COUNT(pods); i++)
        pods[i] = pods[0];
    slices = dv_service_slices(service, pods, DV_COUNT(pods), *state, &n);
    assert_int_equal(n, 2);
    assert_int_equal(slices[0].n_endpoints, 1000);
    assert_int_equal(slices[1].n_endpoints, 1);
    assert_false(dv_str_eq(slices[0].metadata.name, slices[1].metadata.name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        arena_test(pods_are_selected),
        arena_test(an_endpoint_says_whether_it_serves),
        arena_test(each_set_of_ports_has_its_slice),
        arena_test(a_slice_has_up_to_a_thousand_addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
