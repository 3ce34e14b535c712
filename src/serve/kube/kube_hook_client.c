/* kube_hook_client.c - where webhooks are, and the connections to them. Nothing forwards what is
 * sent to the address of a service, so a service is one of the endpoints that are ready. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/num.h"
#include "base/str.h"
#include "cluster/embedded.h"
#include "resource/resource.h"
#include "serve/kube/kube_call.h"
#include "serve/kube/kube_hook_call.h"

/* More clients than this are not kept when nobody uses them. */
#define CLIENTS_MAX 64u
/* Calls of one webhook beyond this wait for each other, within their time. */
#define CONNECTIONS_MAX 64u
/* How long a connection and its handshake may take; the call's own time counts as well. */
#define CONNECT_MS 30000u
#define SERVICE_LABEL "kubernetes.io/service-name"

/* ---- clients ---- */

struct dv_hook_client {
    struct dv_link link;
    struct dv_hook_clients *clients;
    struct dv_arena *arena; /* with this struct */
    dv_str base;
    dv_str ca;
    struct dv_rest_client *rest;
    size_t n_users;
};

void dv_hook_clients_init(struct dv_hook_clients *clients)
{
    dv_list_init(&clients->all);
    clients->n = 0;
}

static void close_client(struct dv_hook_client *client)
{
    dv_link_remove(&client->link);
    client->clients->n--;
    dv_rest_client_close(client->rest, NULL, NULL);
    dv_arena_free(client->arena);
}

/* Closes those that nobody uses, the one used longest ago first, until there are `n_max`. */
static void close_beyond(struct dv_hook_clients *clients, size_t n_max)
{
    struct dv_link *next;

    for (struct dv_link *link = clients->all.head.next; link != &clients->all.head; link = next) {
        struct dv_hook_client *client = DV_CONTAINER(link, struct dv_hook_client, link);

        next = link->next;
        if (clients->n > n_max && client->n_users == 0)
            close_client(client);
    }
}

void dv_hook_clients_close_idle(struct dv_hook_clients *clients)
{
    close_beyond(clients, 0);
}

static struct dv_hook_client *open_client(struct dv_kube *kube, dv_str base, dv_str ca,
                                          struct dv_err *err)
{
    const struct dv_rest_client_options options = {.base_url = base,
                                                   .ca = ca,
                                                   .user_agent = DV_STR("kube-apiserver-admission"),
                                                   .connections_max = CONNECTIONS_MAX,
                                                   .connect_timeout_ms = CONNECT_MS};
    struct dv_rest_client *rest = dv_rest_client_open(kube->options.loop, &options, err);
    struct dv_arena *arena;
    struct dv_hook_client *client;

    if (!rest)
        return NULL;
    arena = dv_arena_new();
    client = DV_NEW(arena, struct dv_hook_client);
    client->arena = arena;
    client->clients = &kube->hook_clients;
    client->base = dv_str_copy(base, arena);
    client->ca = dv_str_copy(ca, arena);
    client->rest = rest;
    client->clients->n++;
    return client;
}

struct dv_hook_client *dv_hook_client_take(struct dv_kube *kube, dv_str base, dv_str ca,
                                           struct dv_err *err)
{
    struct dv_hook_clients *clients = &kube->hook_clients;
    struct dv_hook_client *found = NULL;
    struct dv_link *link;

    DV_LIST_EACH (&clients->all, link) {
        struct dv_hook_client *client = DV_CONTAINER(link, struct dv_hook_client, link);

        if (dv_str_eq(client->base, base) && dv_str_eq(client->ca, ca))
            found = client;
    }
    if (found)
        dv_link_remove(&found->link);
    else
        found = open_client(kube, base, ca, err);
    if (!found)
        return NULL;
    found->n_users++;
    dv_list_push(&clients->all, &found->link);
    close_beyond(clients, CLIENTS_MAX);
    return found;
}

void dv_hook_client_give_back(struct dv_hook_client *client)
{
    client->n_users--;
    close_beyond(client->clients, CLIENTS_MAX);
}

struct dv_rest_client *dv_hook_client_rest(const struct dv_hook_client *client)
{
    return client->rest;
}

/* ---- services ---- */

/* Counts the endpoints that are ready and have the port; of these it finds number `wanted`. */
struct search {
    dv_str port_name;
    size_t n;
    size_t wanted;
    dv_str address;
    int64_t port;
};

static const struct dv_api_endpoint_slice_port *port_of(const struct dv_api_endpoint_slice *slice,
                                                        dv_str name)
{
    for (size_t i = 0; i < slice->n_ports; i++)
        if (slice->ports[i].port && dv_str_eq(slice->ports[i].name, name))
            return &slice->ports[i];
    return NULL;
}

static void search_slice(struct search *search, const struct dv_api_endpoint_slice *slice)
{
    const struct dv_api_endpoint_slice_port *port = port_of(slice, search->port_name);

    for (size_t i = 0; port && i < slice->n_endpoints; i++) {
        const struct dv_api_endpoint *endpoint = &slice->endpoints[i];

        if (endpoint->n_addresses == 0 ||
            (endpoint->conditions.ready && !*endpoint->conditions.ready))
            continue;
        if (search->n++ != search->wanted)
            continue;
        search->address = endpoint->addresses[0];
        search->port = *port->port;
    }
}

static bool search_slices(struct dv_kube *kube, const struct dv_api_service_reference *service,
                          struct dv_arena *arena, struct search *search)
{
    const struct dv_kind *kind = dv_kind(DV_KIND_ENDPOINT_SLICE);
    const struct dv_list_query query = {
        .kind = kind,
        .version = kind->versions,
        .namespace = service->namespace,
        .label_selector = dv_str_printf(arena, SERVICE_LABEL "=%.*s", DV_FMT(service->name))};
    struct dv_api_status *failure;
    struct dv_list_page page;

    search->n = 0;
    if (!dv_embedded_list(kube->options.embedded, &query, arena, &page, &failure))
        return false; /* what is no name of a service has no endpoints */
    for (size_t i = 0; i < page.n_objects; i++) {
        struct dv_object *object = dv_object_ref(page.objects[i]);

        search_slice(search, object->value);
        search->address = dv_str_copy(search->address, arena);
        dv_object_unref(object);
    }
    return search->n > 0;
}

static dv_str print_address(dv_str address, int64_t port, struct dv_arena *arena)
{
    bool is_v6 = dv_str_find_char(address, ':') < address.n;

    return dv_str_printf(arena, is_v6 ? "[%.*s]:%lld" : "%.*s:%lld", DV_FMT(address),
                         (long long)port);
}

static bool find_service(struct dv_kube *kube, const struct dv_api_service_reference *ref,
                         struct dv_arena *arena, dv_str *address, struct dv_err *err)
{
    const struct dv_object *object = dv_embedded_get(
        kube->options.embedded, dv_kind(DV_KIND_SERVICE), ref->namespace, ref->name);
    const struct dv_api_service *service = object ? object->value : NULL;
    long long port = ref->port ? (long long)*ref->port : 443;
    struct search search = {0};
    size_t i = 0;

    if (!service)
        return dv_fail(err, DV_NOT_FOUND, "service \"%.*s\" not found", DV_FMT(ref->name));
    if (dv_str_eq(service->spec.type, DV_STR("ExternalName"))) {
        *address = print_address(dv_str_copy(service->spec.external_name, arena), port, arena);
        return true;
    }
    while (i < service->spec.n_ports && service->spec.ports[i].port != port)
        i++;
    if (i == service->spec.n_ports)
        return dv_fail(err, DV_NOT_FOUND, "no service port %lld found for service \"%.*s\"", port,
                       DV_FMT(ref->name));
    search.port_name = dv_str_copy(service->spec.ports[i].name, arena);
    search.wanted = SIZE_MAX;
    if (!search_slices(kube, ref, arena, &search))
        return dv_fail(err, DV_UNAVAILABLE, "no endpoints available for service \"%.*s\"",
                       DV_FMT(ref->name));
    search.wanted = (size_t)(dv_random_u64() % search.n);
    (void)search_slices(kube, ref, arena, &search);
    *address = print_address(search.address, search.port, arena);
    return true;
}

/* ---- places ---- */

/* Parts "https://host:port/path"; the path may be missing. */
static void split(dv_str url, struct dv_hook_place *place)
{
    size_t host = dv_str_find(url, DV_STR("://")) + 3;
    dv_str rest = dv_str_slice(url, host, url.n);
    size_t n_host = dv_str_find_char(rest, '/');

    place->base = dv_str_slice(url, 0, host + n_host);
    place->target = dv_str_slice(rest, n_host, rest.n);
}

bool dv_hook_find(struct dv_kube *kube, const struct dv_api_webhook_client_config *config,
                  struct dv_arena *arena, struct dv_hook_place *place, struct dv_err *err)
{
    const struct dv_api_service_reference *service = config->service;

    *place = (struct dv_hook_place){0};
    if (!service) {
        split(config->url, place);
    } else {
        place->base = dv_str_printf(arena, "https://%.*s.%.*s.svc:%lld", DV_FMT(service->name),
                                    DV_FMT(service->namespace),
                                    service->port ? (long long)*service->port : 443);
        place->target = service->path;
        if (!find_service(kube, service, arena, &place->connect_to, err))
            return dv_wrap(err, "Post \"%.*s%.*s\"", DV_FMT(place->base), DV_FMT(place->target));
    }
    if (place->target.n == 0)
        place->target = DV_STR("/");
    return true;
}
