/* qos.c - the quality-of-service class of a pod, from its containers' resources. */
#include <stdbool.h>

#include "base/str.h"
#include "number/number.h"
#include "resource/prepare.h"
#include "resource/resource.h"

enum { CPU, MEMORY, N_RESOURCES };

static const dv_str names[N_RESOURCES] = {DV_STR_INIT("cpu"), DV_STR_INIT("memory")};

/* Sums over containers of the amounts that are more than 0. */
struct sums {
    struct dv_quantity v[N_RESOURCES];
    bool is_there[N_RESOURCES];
};

struct totals {
    struct sums requests;
    struct sums limits;
    bool is_all_limited;
    struct dv_arena *arena;
};

/* Adds the amounts. Returns whether all of the resources were there. */
static bool add(struct sums *sums, const struct dv_quantity_entry *entries, size_t n,
                struct dv_arena *arena)
{
    unsigned n_found = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < N_RESOURCES; j++) {
            if (!dv_str_eq(entries[i].key, names[j]) || dv_quantity_sign(&entries[i].value) <= 0)
                continue;
            sums->v[j] = dv_quantity_add(&sums->v[j], &entries[i].value, arena);
            sums->is_there[j] = true;
            n_found++;
        }
    return n_found == N_RESOURCES;
}

static void add_resources(struct totals *totals,
                          const struct dv_api_resource_requirements *resources)
{
    (void)add(&totals->requests, resources->requests, resources->n_requests, totals->arena);
    if (!add(&totals->limits, resources->limits, resources->n_limits, totals->arena))
        totals->is_all_limited = false;
}

static bool is_any(const struct sums *sums)
{
    return sums->is_there[CPU] || sums->is_there[MEMORY];
}

static bool is_same(const struct sums *a, const struct sums *b)
{
    for (size_t i = 0; i < N_RESOURCES; i++)
        if (a->is_there[i] != b->is_there[i] || dv_quantity_cmp(&a->v[i], &b->v[i]) != 0)
            return false;
    return true;
}

dv_str dv_pod_qos_class(const struct dv_api_pod *pod, struct dv_arena *arena)
{
    const struct dv_api_pod_spec *spec = &pod->spec;
    struct totals totals = {.is_all_limited = true, .arena = arena};

    if (spec->resources && (spec->resources->n_requests > 0 || spec->resources->n_limits > 0)) {
        add_resources(&totals, spec->resources);
    } else {
        for (size_t i = 0; i < spec->n_containers; i++)
            add_resources(&totals, &spec->containers[i].resources);
        for (size_t i = 0; i < spec->n_init_containers; i++)
            add_resources(&totals, &spec->init_containers[i].resources);
    }
    if (!is_any(&totals.requests) && !is_any(&totals.limits))
        return DV_STR("BestEffort");
    return totals.is_all_limited && is_same(&totals.requests, &totals.limits) ? DV_STR("Guaranteed")
                                                                              : DV_STR("Burstable");
}
