/* kube_own_service.c - the service default/kubernetes, with what is behind it: where pods reach
 * this API. As in the reference it is the API that makes it, and puts it right now and then. Its
 * address and port are those of the API itself, because nothing forwards to services. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/log.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "serve/kube/kube_call.h"
#include "serve/kube_api.h"

/* How often it is looked at, as in the reference, and soon after something could not be written. */
#define LOOK_MS 10000u
#define AGAIN_MS 500u
#define NAME DV_STR("kubernetes")
#define NAMESPACE DV_STR("default")
#define TCP DV_STR("TCP")
#define HTTPS DV_STR("https")
#define N_OBJECTS 3u

/* One look: what is written is in the arena until all of it has ended. */
struct dv_kube_own_service {
    struct dv_kube *kube;
    struct dv_arena *arena;
    struct dv_request requests[N_OBJECTS];
    size_t n_requests;
    size_t n_open;
    bool is_again;
};

static void on_timer(struct dv_timer *timer);

static void look_later(struct dv_kube *kube, uint64_t delay_ms)
{
    if (!kube->is_closing)
        dv_timer_start(&kube->own_again, kube->options.loop,
                       dv_loop_now_ms(kube->options.loop) + delay_ms, on_timer);
}

static void end_request(struct dv_kube_own_service *look)
{
    struct dv_kube *kube = look->kube;

    if (--look->n_open > 0)
        return;
    kube->own_service = NULL;
    look_later(kube, look->is_again ? AGAIN_MS : LOOK_MS);
    dv_arena_free(look->arena); /* `look` is in it */
    dv_kube_release(kube);
}

static void on_written(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_kube_own_service *look = request->ctx;

    look->is_again = look->is_again || failure;
    /* A conflict, or the namespace is not there yet, is cured by the next look. */
    if (failure && failure->code >= 500)
        dv_log(DV_LOG_WARN, "kube: cannot write the service of the API",
               DV_F_STR("error", failure->message));
    end_request(look);
}

static void start(struct dv_kube_own_service *look, enum dv_verb verb, enum dv_kind_id kind,
                  void *value)
{
    struct dv_request *request = &look->requests[look->n_requests++];

    *request = (struct dv_request){.verb = verb,
                                   .kind = dv_kind(kind),
                                   .namespace = NAMESPACE,
                                   .name = verb == DV_VERB_CREATE ? DV_STR_NONE : NAME,
                                   .value = verb == DV_VERB_DELETE ? NULL : value,
                                   .field_manager = DV_STR("kube-apiserver"),
                                   .is_untracked = true,
                                   .done = on_written,
                                   .ctx = look};
    look->n_open++;
    dv_request_start(dv_embedded_cluster(look->kube->options.embedded), request);
}

static const struct dv_object *stored(const struct dv_kube_own_service *look, enum dv_kind_id kind)
{
    return dv_embedded_get(look->kube->options.embedded, dv_kind(kind), NAMESPACE, NAME);
}

static struct dv_api_object_meta make_meta(const struct dv_kube_own_service *look,
                                           const struct dv_str_entry *labels, size_t n_labels)
{
    struct dv_api_object_meta meta = {.name = NAME, .namespace = NAMESPACE};

    meta.labels = DV_NEW_ARRAY(look->arena, struct dv_str_entry, n_labels);
    meta.n_labels = n_labels;
    for (size_t i = 0; i < n_labels; i++)
        meta.labels[i] = labels[i];
    return meta;
}

static bool is_v6(const struct dv_kube *kube)
{
    return dv_str_find_char(kube->own_address, ':') < kube->own_address.n;
}

/* ---- the service ---- */

static void look_at_service(struct dv_kube_own_service *look)
{
    static const struct dv_str_entry labels[] = {
        {DV_STR_INIT("component"), DV_STR_INIT("apiserver") },
        {DV_STR_INIT("provider"),  DV_STR_INIT("kubernetes")},
    };
    const struct dv_kube *kube = look->kube;
    const struct dv_object *old = stored(look, DV_KIND_SERVICE);
    const struct dv_api_service *found = old ? old->value : NULL;
    struct dv_api_service *service = DV_NEW(look->arena, struct dv_api_service);
    struct dv_api_service_port *port = DV_NEW(look->arena, struct dv_api_service_port);

    if (found && found->spec.n_ports == 1 && found->spec.ports[0].port == kube->own_port &&
        dv_str_eq(found->spec.cluster_ip, kube->own_address))
        return;
    if (found) { /* an address cannot be changed */
        look->is_again = true;
        start(look, DV_VERB_DELETE, DV_KIND_SERVICE, NULL);
        return;
    }
    *port = (struct dv_api_service_port){.name = HTTPS,
                                         .protocol = TCP,
                                         .port = kube->own_port,
                                         .target_port = {.number = kube->own_port}};
    service->metadata = make_meta(look, labels, DV_COUNT(labels));
    service->spec.cluster_ip = kube->own_address;
    service->spec.ports = port;
    service->spec.n_ports = 1;
    start(look, DV_VERB_CREATE, DV_KIND_SERVICE, service);
}

/* ---- what is behind it ---- */

static bool is_endpoints_right(const struct dv_kube *kube, const struct dv_api_endpoints *endpoints)
{
    const struct dv_api_endpoint_subset *subset = endpoints->subsets;

    return endpoints->n_subsets == 1 && subset->n_addresses == 1 && subset->n_ports == 1 &&
           dv_str_eq(subset->addresses[0].ip, kube->own_address) &&
           subset->ports[0].port == kube->own_port;
}

static void look_at_endpoints(struct dv_kube_own_service *look)
{
    static const struct dv_str_entry labels[] = {
        {DV_STR_INIT("endpointslice.kubernetes.io/skip-mirror"), DV_STR_INIT("true")},
    };
    const struct dv_kube *kube = look->kube;
    const struct dv_object *old = stored(look, DV_KIND_ENDPOINTS);
    struct dv_api_endpoints *endpoints = DV_NEW(look->arena, struct dv_api_endpoints);
    struct dv_api_endpoint_subset *subset = DV_NEW(look->arena, struct dv_api_endpoint_subset);
    struct dv_api_endpoint_address *address = DV_NEW(look->arena, struct dv_api_endpoint_address);
    struct dv_api_endpoint_port *port = DV_NEW(look->arena, struct dv_api_endpoint_port);

    if (old && is_endpoints_right(kube, old->value))
        return;
    address->ip = kube->own_address;
    *port = (struct dv_api_endpoint_port){.name = HTTPS, .port = kube->own_port, .protocol = TCP};
    *subset = (struct dv_api_endpoint_subset){
        .addresses = address, .n_addresses = 1, .ports = port, .n_ports = 1};
    endpoints->metadata = make_meta(look, labels, DV_COUNT(labels));
    endpoints->subsets = subset;
    endpoints->n_subsets = 1;
    start(look, old ? DV_VERB_UPDATE : DV_VERB_CREATE, DV_KIND_ENDPOINTS, endpoints);
}

static bool is_slice_right(const struct dv_kube *kube, const struct dv_api_endpoint_slice *slice)
{
    return slice->n_endpoints == 1 && slice->endpoints[0].n_addresses == 1 && slice->n_ports == 1 &&
           slice->ports[0].port && *slice->ports[0].port == kube->own_port &&
           dv_str_eq(slice->endpoints[0].addresses[0], kube->own_address);
}

static void look_at_slice(struct dv_kube_own_service *look)
{
    static const struct dv_str_entry labels[] = {
        {DV_STR_INIT("kubernetes.io/service-name"), DV_STR_INIT("kubernetes")},
    };
    static const bool is_ready = true;
    const struct dv_kube *kube = look->kube;
    const struct dv_object *old = stored(look, DV_KIND_ENDPOINT_SLICE);
    struct dv_api_endpoint_slice *slice = DV_NEW(look->arena, struct dv_api_endpoint_slice);
    struct dv_api_endpoint *endpoint = DV_NEW(look->arena, struct dv_api_endpoint);
    struct dv_api_endpoint_slice_port *port =
        DV_NEW(look->arena, struct dv_api_endpoint_slice_port);
    dv_str *address = DV_NEW(look->arena, dv_str);
    int64_t *number = DV_NEW(look->arena, int64_t);

    if (old && is_slice_right(kube, old->value))
        return;
    *address = kube->own_address;
    *number = kube->own_port;
    *endpoint = (struct dv_api_endpoint){
        .addresses = address, .n_addresses = 1, .conditions = {.ready = &is_ready}};
    *port = (struct dv_api_endpoint_slice_port){.name = HTTPS, .protocol = TCP, .port = number};
    slice->metadata = make_meta(look, labels, DV_COUNT(labels));
    slice->address_type = is_v6(kube) ? DV_STR("IPv6") : DV_STR("IPv4");
    slice->endpoints = endpoint;
    slice->n_endpoints = 1;
    slice->ports = port;
    slice->n_ports = 1;
    if (old && !dv_str_eq(((const struct dv_api_endpoint_slice *)old->value)->address_type,
                          slice->address_type)) { /* that cannot be changed, either */
        look->is_again = true;
        start(look, DV_VERB_DELETE, DV_KIND_ENDPOINT_SLICE, NULL);
        return;
    }
    start(look, old ? DV_VERB_UPDATE : DV_VERB_CREATE, DV_KIND_ENDPOINT_SLICE, slice);
}

/* ---- looking ---- */

static void look(struct dv_kube *kube)
{
    struct dv_arena *arena = dv_arena_new();
    struct dv_kube_own_service *look = DV_NEW(arena, struct dv_kube_own_service);

    look->kube = kube;
    look->arena = arena;
    look->n_open = 1;
    kube->own_service = look;
    kube->n_calls++; /* the API is not freed meanwhile */
    look_at_service(look);
    look_at_endpoints(look);
    look_at_slice(look);
    end_request(look);
}

static void on_timer(struct dv_timer *timer)
{
    look(DV_CONTAINER(timer, struct dv_kube, own_again));
}

void dv_kube_set_address(struct dv_kube *kube, dv_str address, uint16_t port)
{
    kube->own_address = address;
    kube->own_port = port;
    if (!kube->own_service)
        look(kube);
}
