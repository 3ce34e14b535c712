#include "control/endpoints.h"

#include <stdint.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/str.h"
#include "resource/resource.h"

/* The API's limit of a slice. */
#define ENDPOINTS_MAX 1000u
/* More sets of ports than this have no slices: somebody names ports at random. */
#define SLICES_MAX 100u

/* ---- pods ---- */

static bool is_ready(const struct dv_api_pod *pod)
{
    for (size_t i = 0; i < pod->status.n_conditions; i++)
        if (dv_str_eq(pod->status.conditions[i].type, DV_STR("Ready")))
            return dv_str_eq(pod->status.conditions[i].status, DV_STR("True"));
    return false;
}

static bool is_over(const struct dv_api_pod *pod)
{
    return dv_str_eq(pod->status.phase, DV_STR("Succeeded")) ||
           dv_str_eq(pod->status.phase, DV_STR("Failed"));
}

static bool is_v6(dv_str address)
{
    return dv_str_find_char(address, ':') < address.n;
}

/* The pod's address of that family; empty: it has none. */
static dv_str address_of(const struct dv_api_pod *pod, bool wants_v6)
{
    for (size_t i = 0; i < pod->status.n_pod_i_ps; i++)
        if (pod->status.pod_i_ps[i].ip.n > 0 && is_v6(pod->status.pod_i_ps[i].ip) == wants_v6)
            return pod->status.pod_i_ps[i].ip;
    return pod->status.pod_ip.n > 0 && is_v6(pod->status.pod_ip) == wants_v6 ? pod->status.pod_ip
                                                                             : DV_STR_NONE;
}

bool dv_is_same_endpoint(const struct dv_api_pod *a, const struct dv_api_pod *b)
{
    if (!dv_str_eq(a->metadata.uid, b->metadata.uid) ||
        !dv_str_eq(a->status.pod_ip, b->status.pod_ip) || is_ready(a) != is_ready(b) ||
        is_over(a) != is_over(b) ||
        a->metadata.deletion_timestamp.is_set != b->metadata.deletion_timestamp.is_set ||
        a->metadata.n_labels != b->metadata.n_labels)
        return false;
    for (size_t i = 0; i < a->metadata.n_labels; i++)
        if (!dv_str_eq(a->metadata.labels[i].key, b->metadata.labels[i].key) ||
            !dv_str_eq(a->metadata.labels[i].value, b->metadata.labels[i].value))
            return false;
    return true;
}

/* ---- services ---- */

static bool wants_v6(const struct dv_api_service *service)
{
    return service->spec.n_ip_families > 0 &&
           dv_str_eq(service->spec.ip_families[0], DV_STR("IPv6"));
}

bool dv_service_has_slices(const struct dv_api_service *service)
{
    return service->spec.n_selector > 0 && !dv_str_eq(service->spec.type, DV_STR("ExternalName"));
}

bool dv_service_selects(const struct dv_api_service *service, const struct dv_api_pod *pod)
{
    if (!dv_service_has_slices(service) || is_over(pod) ||
        !dv_str_eq(service->metadata.namespace, pod->metadata.namespace) ||
        address_of(pod, wants_v6(service)).n == 0)
        return false;
    for (size_t i = 0; i < service->spec.n_selector; i++) {
        const struct dv_str_entry *term = &service->spec.selector[i];
        const struct dv_str_entry *label =
            dv_entry_find(pod->metadata.labels, pod->metadata.n_labels, term->key);

        if (!label || !dv_str_eq(label->value, term->value))
            return false;
    }
    return true;
}

/* ---- ports ---- */

/* The number of the container's port that is called so; 0: the pod has none. */
static int64_t named_port(const struct dv_api_pod *pod, dv_str name, dv_str protocol)
{
    for (size_t i = 0; i < pod->spec.n_containers; i++)
        for (size_t k = 0; k < pod->spec.containers[i].n_ports; k++) {
            const struct dv_api_container_port *port = &pod->spec.containers[i].ports[k];

            if (dv_str_eq(port->name, name) && dv_str_eq(port->protocol, protocol))
                return port->container_port;
        }
    return 0;
}

/* Finds the ports of the service in the pod; one whose name the pod does not have is left out. */
static size_t find_ports(const struct dv_api_service *service, const struct dv_api_pod *pod,
                         struct dv_api_endpoint_slice_port *ports, struct dv_arena *arena)
{
    size_t n = 0;

    for (size_t i = 0; i < service->spec.n_ports; i++) {
        const struct dv_api_service_port *port = &service->spec.ports[i];
        int64_t *number = DV_NEW(arena, int64_t);

        *number = port->target_port.is_text
                      ? named_port(pod, port->target_port.text, port->protocol)
                      : port->target_port.number;
        if (*number > 0)
            ports[n++] =
                (struct dv_api_endpoint_slice_port){.name = port->name.p ? port->name : DV_STR(""),
                                                    .protocol = port->protocol,
                                                    .port = number,
                                                    .app_protocol = port->app_protocol};
    }
    return n;
}

static bool has_ports(const struct dv_api_endpoint_slice *slice,
                      const struct dv_api_endpoint_slice_port *ports, size_t n)
{
    if (slice->n_ports != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!dv_message_eq(&dv_message_endpoint_slice_port, &slice->ports[i], &ports[i]))
            return false;
    return true;
}

/* ---- slices ---- */

/* Names a slice after its service and what tells it from others: its ports and its number. A name
 * that can be found again needs nothing to be remembered. */
static dv_str slice_name(const struct dv_api_service *service,
                         const struct dv_api_endpoint_slice_port *ports, size_t n_ports,
                         size_t number, struct dv_arena *arena)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    dv_str text = service->metadata.uid;
    char suffix[5];
    uint32_t hash;

    for (size_t i = 0; i < n_ports; i++)
        text = dv_str_printf(arena, "%.*s/%.*s/%.*s/%lld", DV_FMT(text), DV_FMT(ports[i].name),
                             DV_FMT(ports[i].protocol), (long long)*ports[i].port);
    hash = dv_fnv1a(dv_str_printf(arena, "%.*s/%zu", DV_FMT(text), number));
    for (size_t i = 0; i < sizeof(suffix); i++) {
        suffix[i] = letters[hash % (sizeof(letters) - 1)];
        hash /= sizeof(letters) - 1;
    }
    return dv_str_printf(arena, "%.*s-%.*s", DV_FMT(service->metadata.name), (int)sizeof(suffix),
                         suffix);
}

static void set_meta(const struct dv_api_service *service, dv_str name,
                     struct dv_api_object_meta *meta, struct dv_arena *arena)
{
    static const bool yes = true;
    struct dv_api_owner_reference *owner = DV_NEW(arena, struct dv_api_owner_reference);

    *owner = (struct dv_api_owner_reference){.api_version = DV_STR("v1"),
                                             .kind = DV_STR("Service"),
                                             .name = service->metadata.name,
                                             .uid = service->metadata.uid,
                                             .controller = &yes,
                                             .block_owner_deletion = &yes};
    *meta = (struct dv_api_object_meta){.name = name, .namespace = service->metadata.namespace};
    meta->owner_references = owner;
    meta->n_owner_references = 1;
    meta->labels = DV_NEW_ARRAY(arena, struct dv_str_entry, 2);
    meta->labels[0] =
        (struct dv_str_entry){DV_STR(DV_SLICES_MANAGER_LABEL), DV_STR(DV_SLICES_MANAGER)};
    meta->labels[1] =
        (struct dv_str_entry){DV_STR(DV_SLICES_SERVICE_LABEL), service->metadata.name};
    meta->n_labels = 2;
}

static const bool *flag(bool is_true)
{
    static const bool values[] = {false, true};

    return &values[is_true];
}

static void add_endpoint(const struct dv_api_service *service, const struct dv_api_pod *pod,
                         struct dv_api_endpoint_slice *slice, struct dv_arena *arena)
{
    struct dv_api_endpoint *endpoint = &slice->endpoints[slice->n_endpoints++];
    struct dv_api_object_reference *ref = DV_NEW(arena, struct dv_api_object_reference);
    bool is_ending = pod->metadata.deletion_timestamp.is_set;

    *ref = (struct dv_api_object_reference){.kind = DV_STR("Pod"),
                                            .namespace = pod->metadata.namespace,
                                            .name = pod->metadata.name,
                                            .uid = pod->metadata.uid};
    endpoint->addresses = DV_NEW(arena, dv_str);
    endpoint->addresses[0] = address_of(pod, wants_v6(service));
    endpoint->n_addresses = 1;
    endpoint->conditions.ready =
        flag(service->spec.publish_not_ready_addresses || (is_ready(pod) && !is_ending));
    endpoint->conditions.serving = flag(service->spec.publish_not_ready_addresses || is_ready(pod));
    endpoint->conditions.terminating = flag(is_ending);
    endpoint->target_ref = ref;
    endpoint->node_name = pod->spec.node_name;
}

/* Finds the slice with those ports that has room, or makes one; NULL: there are too many. */
static struct dv_api_endpoint_slice *slice_for(const struct dv_api_service *service,
                                               struct dv_api_endpoint_slice_port *ports,
                                               size_t n_ports, size_t n_pods,
                                               struct dv_api_endpoint_slice *slices,
                                               size_t *n_slices, struct dv_arena *arena)
{
    struct dv_api_endpoint_slice *slice;
    size_t number = 0;

    for (size_t i = 0; i < *n_slices; i++) {
        if (!has_ports(&slices[i], ports, n_ports))
            continue;
        if (slices[i].n_endpoints < ENDPOINTS_MAX)
            return &slices[i];
        number++;
    }
    if (*n_slices == SLICES_MAX)
        return NULL;
    slice = &slices[(*n_slices)++];
    set_meta(service, slice_name(service, ports, n_ports, number, arena), &slice->metadata, arena);
    slice->address_type = wants_v6(service) ? DV_STR("IPv6") : DV_STR("IPv4");
    slice->endpoints =
        DV_NEW_ARRAY(arena, struct dv_api_endpoint, dv_size_min(n_pods, ENDPOINTS_MAX));
    slice->ports = ports;
    slice->n_ports = n_ports;
    return slice;
}

struct dv_api_endpoint_slice *dv_service_slices(const struct dv_api_service *service,
                                                const struct dv_api_pod *const *pods, size_t n_pods,
                                                struct dv_arena *arena, size_t *n_slices)
{
    struct dv_api_endpoint_slice *slices =
        DV_NEW_ARRAY(arena, struct dv_api_endpoint_slice, SLICES_MAX);

    *n_slices = 0;
    for (size_t i = 0; i < n_pods; i++) {
        struct dv_api_endpoint_slice_port *ports =
            DV_NEW_ARRAY(arena, struct dv_api_endpoint_slice_port, service->spec.n_ports);
        size_t n_ports = find_ports(service, pods[i], ports, arena);
        struct dv_api_endpoint_slice *slice;

        if (n_ports == 0 && service->spec.n_ports > 0)
            continue; /* none of the names is one of the pod's */
        slice = slice_for(service, ports, n_ports, n_pods, slices, n_slices, arena);
        if (slice)
            add_endpoint(service, pods[i], slice, arena);
    }
    return slices;
}
