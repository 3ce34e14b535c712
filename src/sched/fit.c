/* fit.c - what a pod asks of a node and whether the node has it, devices aside: amounts of
 * resources, room on nodes, and the filters in the reference's order and words. Pure. */
#include "sched/fit.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "number/number.h"
#include "resource/resource.h"
#include "resource/select.h"

/* What a container that requests no cpu or memory counts for in scores, as in the reference:
 * otherwise a node full of such pods would look empty. */
#define SCORED_MILLI_CPU 100
#define SCORED_MEMORY (INT64_C(200) * 1024 * 1024)

#define TAINT_UNSCHEDULABLE "node.kubernetes.io/unschedulable"

/* ---- resources ---- */

static uint32_t resource_number(struct dv_sched_resources *resources, dv_str name)
{
    struct dv_sched_resource_name *known = dv_map_get(&resources->by_name, name);
    char *text;

    if (known)
        return known->number;
    known = dv_alloc(sizeof(*known) + name.n);
    text = (char *)(known + 1);
    if (name.n > 0)
        memcpy(text, name.p, name.n);
    known->name = (dv_str){text, name.n};
    known->number = (uint32_t)resources->names.n;
    *dv_vec_add(&resources->names) = known;
    dv_map_set(&resources->by_name, known->name, known);
    return known->number;
}

void dv_sched_resources_init(struct dv_sched_resources *resources)
{
    static const dv_str fixed[DV_SCHED_N_FIXED_RESOURCES] = {
        [DV_SCHED_RESOURCE_CPU] = DV_STR_INIT("cpu"),
        [DV_SCHED_RESOURCE_MEMORY] = DV_STR_INIT("memory"),
        [DV_SCHED_RESOURCE_STORAGE] = DV_STR_INIT("ephemeral-storage"),
        [DV_SCHED_RESOURCE_PODS] = DV_STR_INIT("pods"),
    };

    *resources = (struct dv_sched_resources){0};
    dv_map_init(&resources->by_name);
    for (size_t i = 0; i < DV_COUNT(fixed); i++)
        /* Made in this order, so that their numbers are those of the enum. */
        (void)resource_number(resources, fixed[i]);
}

void dv_sched_resources_fini(struct dv_sched_resources *resources)
{
    for (size_t i = 0; i < resources->names.n; i++)
        free(resources->names.v[i]);
    dv_vec_fini(&resources->names);
    dv_map_fini(&resources->by_name);
}

/* ---- amounts ---- */

static int64_t sum(int64_t a, int64_t b)
{
    int64_t c;

    if (__builtin_add_overflow(a, b, &c))
        return a > 0 ? INT64_MAX : INT64_MIN;
    return c;
}

static int64_t to_number(uint32_t resource, const struct dv_quantity *quantity)
{
    int64_t n;
    bool is_ok = resource == DV_SCHED_RESOURCE_CPU ? dv_quantity_to_milli_ceil(quantity, &n)
                                                   : dv_quantity_to_i64_ceil(quantity, &n);

    if (!is_ok) /* the number is too large for 64 bits, and more than any node has */
        return dv_quantity_sign(quantity) < 0 ? 0 : INT64_MAX;
    return n < 0 ? 0 : n;
}

static void clear(struct dv_sched_amounts *amounts)
{
    for (size_t i = 0; i < amounts->all.n; i++)
        amounts->places.v[amounts->all.v[i].resource] = 0;
    dv_vec_clear(&amounts->all);
    dv_vec_clear(&amounts->ports.all);
}

static struct dv_sched_amount *amount_of(struct dv_sched_amounts *amounts, uint32_t resource)
{
    struct dv_sched_amount *amount;

    while (amounts->places.n <= resource)
        *dv_vec_add(&amounts->places) = 0;
    if (amounts->places.v[resource] > 0)
        return &amounts->all.v[amounts->places.v[resource] - 1];
    amount = dv_vec_add(&amounts->all);
    *amount = (struct dv_sched_amount){.resource = resource};
    amounts->places.v[resource] = (uint32_t)amounts->all.n;
    return amount;
}

static void add_entries(struct dv_sched_amounts *amounts, struct dv_sched_resources *resources,
                        const struct dv_quantity_entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t resource = resource_number(resources, entries[i].key);
        struct dv_sched_amount *amount = amount_of(amounts, resource);

        amount->n = sum(amount->n, to_number(resource, &entries[i].value));
    }
}

static void add_container(struct dv_sched_amounts *amounts, struct dv_sched_resources *resources,
                          const struct dv_api_container *container)
{
    add_entries(amounts, resources, container->resources.requests, container->resources.n_requests);
}

static void raise(struct dv_sched_amounts *amounts, uint32_t resource, int64_t n)
{
    struct dv_sched_amount *amount = amount_of(amounts, resource);

    if (n > amount->n)
        amount->n = n;
}

/* Init containers run one after the other, beside those before them that stay (restartPolicy
 * Always). The pod needs the largest amount of any moment: what each init container asks for itself
 * plus what stays by then, or all regular containers plus all that stay. A resource that an init
 * container does not ask for needs no look at that moment: what stays only grows, so its peak is at
 * the end. */
static void add_init_containers(struct dv_sched_amounts *amounts,
                                struct dv_sched_resources *resources,
                                const struct dv_api_pod_spec *pod)
{
    struct dv_sched_amounts staying = {0};
    struct dv_sched_amounts peak = {0};
    struct dv_sched_amounts own = {0};

    for (size_t i = 0; i < pod->n_init_containers; i++) {
        const struct dv_api_container *container = &pod->init_containers[i];
        bool stays = dv_str_eq(container->restart_policy, DV_STR("Always"));

        clear(&own);
        add_container(&own, resources, container);
        for (size_t j = 0; j < own.all.n; j++) {
            uint32_t resource = own.all.v[j].resource;
            int64_t now = sum(own.all.v[j].n, amount_of(&staying, resource)->n);

            if (stays)
                amount_of(&staying, resource)->n = now;
            raise(&peak, resource, now);
        }
        if (stays)
            add_container(amounts, resources, container);
    }
    for (size_t i = 0; i < peak.all.n; i++)
        raise(amounts, peak.all.v[i].resource, peak.all.v[i].n);
    dv_sched_amounts_fini(&staying);
    dv_sched_amounts_fini(&peak);
    dv_sched_amounts_fini(&own);
}

/* A request of the pod as a whole (spec.resources) replaces the sum of what its containers ask
 * for. */
static void set_pod_level(struct dv_sched_amounts *amounts, struct dv_sched_resources *resources,
                          const struct dv_api_resource_requirements *asked)
{
    for (size_t i = 0; asked && i < asked->n_requests; i++) {
        uint32_t resource = resource_number(resources, asked->requests[i].key);

        amount_of(amounts, resource)->n = to_number(resource, &asked->requests[i].value);
    }
}

static bool asks_for(const struct dv_api_container *container, dv_str resource)
{
    for (size_t i = 0; i < container->resources.n_requests; i++)
        if (dv_str_eq(container->resources.requests[i].key, resource))
            return true;
    return false;
}

static void set_scored(struct dv_sched_amounts *amounts, const struct dv_api_pod_spec *pod)
{
    amounts->scored[0] = amount_of(amounts, DV_SCHED_RESOURCE_CPU)->n;
    amounts->scored[1] = amount_of(amounts, DV_SCHED_RESOURCE_MEMORY)->n;
    for (size_t i = 0; i < pod->n_containers; i++) {
        if (!asks_for(&pod->containers[i], DV_STR("cpu")))
            amounts->scored[0] = sum(amounts->scored[0], SCORED_MILLI_CPU);
        if (!asks_for(&pod->containers[i], DV_STR("memory")))
            amounts->scored[1] = sum(amounts->scored[1], SCORED_MEMORY);
    }
}

void dv_sched_amounts_fini(struct dv_sched_amounts *amounts)
{
    dv_vec_fini(&amounts->all);
    dv_vec_fini(&amounts->ports.all);
    dv_vec_fini(&amounts->places);
}

void dv_sched_amounts_read(struct dv_sched_amounts *amounts, struct dv_sched_resources *resources,
                           const struct dv_api_pod_spec *pod)
{
    clear(amounts);
    amount_of(amounts, DV_SCHED_RESOURCE_PODS)->n = 1;
    for (size_t i = 0; i < pod->n_containers; i++)
        add_container(amounts, resources, &pod->containers[i]);
    if (pod->n_init_containers > 0)
        add_init_containers(amounts, resources, pod);
    set_pod_level(amounts, resources, pod->resources);
    add_entries(amounts, resources, pod->overhead, pod->n_overhead);
    set_scored(amounts, pod);
    dv_sched_ports_read(&amounts->ports, pod);
}

/* ---- room ---- */

void dv_sched_room_fini(struct dv_sched_room *room)
{
    dv_vec_fini(&room->more_has);
    dv_vec_fini(&room->more_taken);
    dv_vec_fini(&room->ports.all);
}

static int64_t *has_of(struct dv_sched_room *room, uint32_t resource)
{
    if (resource < DV_SCHED_N_FIXED_RESOURCES)
        return &room->has[resource];
    while (room->more_has.n <= resource - DV_SCHED_N_FIXED_RESOURCES)
        *dv_vec_add(&room->more_has) = 0;
    return &room->more_has.v[resource - DV_SCHED_N_FIXED_RESOURCES];
}

static int64_t *taken_of(struct dv_sched_room *room, uint32_t resource)
{
    if (resource < DV_SCHED_N_FIXED_RESOURCES)
        return &room->taken[resource];
    while (room->more_taken.n <= resource - DV_SCHED_N_FIXED_RESOURCES)
        *dv_vec_add(&room->more_taken) = 0;
    return &room->more_taken.v[resource - DV_SCHED_N_FIXED_RESOURCES];
}

int64_t dv_sched_room_has(const struct dv_sched_room *room, uint32_t resource)
{
    if (resource < DV_SCHED_N_FIXED_RESOURCES)
        return room->has[resource];
    resource -= DV_SCHED_N_FIXED_RESOURCES;
    return resource < room->more_has.n ? room->more_has.v[resource] : 0;
}

int64_t dv_sched_room_taken(const struct dv_sched_room *room, uint32_t resource)
{
    if (resource < DV_SCHED_N_FIXED_RESOURCES)
        return room->taken[resource];
    resource -= DV_SCHED_N_FIXED_RESOURCES;
    return resource < room->more_taken.n ? room->more_taken.v[resource] : 0;
}

void dv_sched_room_read(struct dv_sched_room *room, struct dv_sched_resources *resources,
                        const struct dv_api_node *node)
{
    memset(room->has, 0, sizeof(room->has));
    dv_vec_clear(&room->more_has);
    room->is_closed = node->spec.unschedulable;
    room->has_taints = node->spec.n_taints > 0;
    for (size_t i = 0; i < node->status.n_allocatable; i++) {
        const struct dv_quantity_entry *entry = &node->status.allocatable[i];
        uint32_t resource = resource_number(resources, entry->key);

        *has_of(room, resource) = to_number(resource, &entry->value);
    }
}

void dv_sched_room_copy(struct dv_sched_room *copy, const struct dv_sched_room *room)
{
    *copy = *room;
    memset(&copy->more_has, 0, sizeof(copy->more_has));
    memset(&copy->more_taken, 0, sizeof(copy->more_taken));
    memset(&copy->ports, 0, sizeof(copy->ports));
    for (size_t i = 0; i < room->more_has.n; i++)
        *dv_vec_add(&copy->more_has) = room->more_has.v[i];
    for (size_t i = 0; i < room->more_taken.n; i++)
        *dv_vec_add(&copy->more_taken) = room->more_taken.v[i];
    for (size_t i = 0; i < room->ports.all.n; i++)
        *dv_vec_add(&copy->ports.all) = room->ports.all.v[i];
}

void dv_sched_room_take(struct dv_sched_room *room, const struct dv_sched_amounts *amounts)
{
    for (size_t i = 0; i < amounts->all.n; i++) {
        int64_t *taken = taken_of(room, amounts->all.v[i].resource);

        *taken = sum(*taken, amounts->all.v[i].n);
    }
    for (size_t i = 0; i < DV_COUNT(room->scored); i++)
        room->scored[i] = sum(room->scored[i], amounts->scored[i]);
    dv_sched_ports_take(&room->ports, &amounts->ports);
}

void dv_sched_room_give_back(struct dv_sched_room *room, const struct dv_sched_amounts *amounts)
{
    for (size_t i = 0; i < amounts->all.n; i++) {
        int64_t *taken = taken_of(room, amounts->all.v[i].resource);

        *taken = sum(*taken, -amounts->all.v[i].n);
    }
    for (size_t i = 0; i < DV_COUNT(room->scored); i++)
        room->scored[i] = sum(room->scored[i], -amounts->scored[i]);
    dv_sched_ports_give_back(&room->ports, &amounts->ports);
}

/* ---- filters ---- */

static void line(struct dv_buf *why, dv_str text)
{
    if (why->n > 0)
        dv_buf_add_char(why, '\n');
    dv_buf_add(why, text);
}

bool dv_sched_is_open(const struct dv_api_pod_spec *pod, const struct dv_sched_room *room)
{
    const struct dv_api_taint taint = {.key = DV_STR(TAINT_UNSCHEDULABLE),
                                       .effect = DV_STR("NoSchedule")};

    return !room->is_closed || dv_sched_tolerates(pod, &taint);
}

static bool are_taints_tolerated(const struct dv_api_pod_spec *pod, const struct dv_api_node *node,
                                 struct dv_buf *why)
{
    const struct dv_api_taint *taint;

    if (dv_sched_untolerated(pod, node, false, &taint) == 0)
        return true;
    dv_buf_printf(why, "node(s) had untolerated taint {%.*s: %.*s}", DV_FMT(taint->key),
                  DV_FMT(taint->value));
    return false;
}

const struct dv_str_entry *dv_sched_unselected(const struct dv_api_pod_spec *pod,
                                               const struct dv_object *node)
{
    for (size_t i = 0; i < pod->n_node_selector; i++) {
        const struct dv_str_entry *label =
            dv_entry_find(node->meta->labels, node->meta->n_labels, pod->node_selector[i].key);

        if (!label || !dv_str_eq(label->value, pod->node_selector[i].value))
            return &pod->node_selector[i];
    }
    return NULL;
}

const struct dv_api_node_selector *dv_sched_required(const struct dv_api_pod_spec *pod)
{
    const struct dv_api_node_affinity *affinity =
        pod->affinity ? pod->affinity->node_affinity : NULL;

    return affinity ? affinity->required_during_scheduling_ignored_during_execution : NULL;
}

bool dv_sched_is_selected(const struct dv_api_pod_spec *pod, const struct dv_object *node)
{
    const struct dv_api_node_selector *required = dv_sched_required(pod);

    if (required && !dv_node_selector_matches(required, node->meta->name, node->meta->labels,
                                              node->meta->n_labels))
        return false;
    return !dv_sched_unselected(pod, node);
}

static bool has_room(const struct dv_sched_amounts *amounts,
                     const struct dv_sched_resources *resources, const struct dv_sched_room *room,
                     struct dv_buf *why)
{
    bool is_ok = true;

    for (size_t i = 0; i < amounts->all.n; i++) {
        const struct dv_sched_amount *amount = &amounts->all.v[i];
        int64_t has = dv_sched_room_has(room, amount->resource);

        /* A node that has none of an extended resource which a class serves may give devices
         * instead: that is for the allocator to find out. */
        if (amount->n == 0 || (amount->is_served && has == 0) ||
            amount->n <= has - dv_sched_room_taken(room, amount->resource))
            continue;
        is_ok = false;
        if (amount->resource == DV_SCHED_RESOURCE_PODS) {
            line(why, DV_STR("Too many pods"));
            continue;
        }
        line(why, DV_STR("Insufficient "));
        dv_buf_add(why, resources->names.v[amount->resource]->name);
    }
    return is_ok;
}

bool dv_sched_fits(const struct dv_api_pod_spec *pod, const struct dv_sched_amounts *amounts,
                   const struct dv_sched_resources *resources, const struct dv_object *node,
                   const struct dv_sched_room *room, struct dv_buf *why)
{
    if (pod->node_name.n > 0 && !dv_str_eq(pod->node_name, node->meta->name)) {
        line(why, DV_STR("node(s) didn't match the requested node name"));
        return false;
    }
    if (!dv_sched_is_open(pod, room)) {
        line(why, DV_STR("node(s) were unschedulable"));
        return false;
    }
    if (room->has_taints && !are_taints_tolerated(pod, node->value, why))
        return false;
    if (!dv_sched_is_selected(pod, node)) {
        line(why, DV_STR("node(s) didn't match Pod's node affinity/selector"));
        return false;
    }
    if (amounts->ports.all.n > 0 && !dv_sched_ports_are_free(&room->ports, &amounts->ports)) {
        line(why, DV_STR("node(s) didn't have free ports for the requested pod ports"));
        return false;
    }
    return has_room(amounts, resources, room, why);
}
