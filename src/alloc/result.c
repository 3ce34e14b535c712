/* result.c - writes what the search has chosen for a claim as the API's allocation: a result for
 * each device, the configuration of the class and of the claim that applies, and a node selector
 * that says where the devices can be used. */
#include "alloc/inventory.h"
#include "alloc/search.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"

/* ---- devices ---- */

static void write_device(struct dv_alloc_search *search, const struct dv_alloc_task *task,
                         const struct dv_alloc_pick *pick,
                         struct dv_api_device_request_allocation_result *result)
{
    static const bool yes = true;
    const struct dv_alloc_want *want = &task->asks[pick->ask].wants[pick->want];
    const struct dv_alloc_device *device = search->view->places[pick->place].device;

    result->request = want->name;
    result->driver = device->slice->spec->driver;
    result->pool = device->slice->spec->pool.name;
    result->device = device->api->name;
    if (want->is_admin)
        result->admin_access = &yes;
    if (want->n_tolerations > 0) {
        result->n_tolerations = want->n_tolerations;
        result->tolerations =
            DV_NEW_ARRAY(search->arena, struct dv_api_device_toleration, want->n_tolerations);
        for (size_t i = 0; i < want->n_tolerations; i++)
            result->tolerations[i] = want->tolerations[i];
    }
    if (search->inventory->features.binding_conditions) {
        result->binding_conditions = device->api->binding_conditions;
        result->n_binding_conditions = device->api->n_binding_conditions;
        result->binding_failure_conditions = device->api->binding_failure_conditions;
        result->n_binding_failure_conditions = device->api->n_binding_failure_conditions;
    }
    if (!pick->is_multi)
        return;
    result->share_id = dv_str_copy(dv_str_from_c(pick->share_id), search->arena);
    if (pick->n_consumed > 0) {
        result->consumed_capacity = pick->consumed;
        result->n_consumed_capacity = pick->n_consumed;
    }
}

/* ---- configuration ---- */

struct configs {
    DV_VEC(struct dv_api_device_allocation_configuration) v;
};

static void add_class_configs(struct dv_alloc_search *search, const struct dv_alloc_task *task,
                              size_t at, struct configs *configs)
{
    const struct dv_alloc_want *want = &task->asks[at].wants[task->asks[at].chosen];
    const struct dv_api_device_class *class = want->class;

    for (size_t i = 0; i < class->spec.n_config; i++) {
        struct dv_api_device_allocation_configuration *config =
            dv_vec_add_in(&configs->v, search->arena);
        dv_str *requests = DV_NEW_ARRAY(search->arena, dv_str, task->n_asks);

        config->source = DV_STR("FromClass");
        config->device_configuration = class->spec.config[i].device_configuration;
        /* The configuration of a class is written once, for all requests that chose the class. */
        for (size_t j = at; j < task->n_asks; j++)
            if (task->asks[j].wants[task->asks[j].chosen].class == class)
                requests[config->n_requests++] = task->asks[j].wants[task->asks[j].chosen].name;
        config->requests = requests;
    }
}

static bool is_first_of_class(const struct dv_alloc_task *task, size_t at)
{
    const struct dv_api_device_class *class = task->asks[at].wants[task->asks[at].chosen].class;

    for (size_t i = 0; i < at; i++)
        if (task->asks[i].wants[task->asks[i].chosen].class == class)
            return false;
    return true;
}

static bool names(const struct dv_api_device_claim_configuration *config,
                  const struct dv_alloc_ask *ask)
{
    for (size_t i = 0; i < config->n_requests; i++)
        if (dv_str_eq(config->requests[i], ask->api->name) ||
            dv_str_eq(config->requests[i], ask->wants[ask->chosen].name))
            return true;
    return false;
}

static void add_claim_config(struct dv_alloc_search *search, const struct dv_alloc_task *task,
                             const struct dv_api_device_claim_configuration *from,
                             struct configs *configs)
{
    /* A configuration of the claim is written once when it is for all requests, and otherwise once
     * for every request that it names. */
    for (size_t i = 0; i < (from->n_requests ? task->n_asks : 1); i++) {
        struct dv_api_device_allocation_configuration *config;

        if (from->n_requests && !names(from, &task->asks[i]))
            continue;
        config = dv_vec_add_in(&configs->v, search->arena);
        config->source = DV_STR("FromClaim");
        config->requests = from->requests;
        config->n_requests = from->n_requests;
        config->device_configuration = from->device_configuration;
    }
}

/* ---- nodes ---- */

static bool same_requirement(const struct dv_api_node_selector_requirement *a,
                             const struct dv_api_node_selector_requirement *b)
{
    if (!dv_str_eq(a->key, b->key) || !dv_str_eq(a->operator, b->operator) ||
        a->n_values != b->n_values)
        return false;
    for (size_t i = 0; i < a->n_values; i++) {
        size_t j = 0;

        while (j < b->n_values && !dv_str_eq(a->values[i], b->values[j]))
            j++;
        if (j == b->n_values)
            return false;
    }
    return true;
}

struct requirements {
    DV_VEC(struct dv_api_node_selector_requirement) v;
};

static void merge(struct requirements *requirements,
                  const struct dv_api_node_selector_requirement *more, size_t n,
                  struct dv_arena *arena)
{
    for (size_t i = 0; i < n; i++) {
        size_t j = 0;

        while (j < requirements->v.n && !same_requirement(&requirements->v.v[j], &more[i]))
            j++;
        if (j == requirements->v.n)
            *dv_vec_add_in(&requirements->v, arena) = more[i];
    }
}

static struct dv_api_node_selector *one_term(const struct requirements *fields,
                                             const struct requirements *expressions,
                                             struct dv_arena *arena)
{
    struct dv_api_node_selector *selector = DV_NEW(arena, struct dv_api_node_selector);
    struct dv_api_node_selector_term *term = DV_NEW(arena, struct dv_api_node_selector_term);

    selector->node_selector_terms = term;
    selector->n_node_selector_terms = 1;
    term->match_fields = fields->v.v;
    term->n_match_fields = fields->v.n;
    term->match_expressions = expressions->v.v;
    term->n_match_expressions = expressions->v.n;
    return selector;
}

static struct dv_api_node_selector *only_this_node(struct dv_alloc_search *search)
{
    struct requirements fields = {0};
    struct requirements none = {0};
    struct dv_api_node_selector_requirement *requirement = dv_vec_add_in(&fields.v, search->arena);
    dv_str *name = DV_NEW(search->arena, dv_str);

    *name = dv_str_copy(search->node->name, search->arena);
    *requirement = (struct dv_api_node_selector_requirement){DV_STR("metadata.name"), DV_STR("In"),
                                                             .values = name, .n_values = 1};
    return one_term(&fields, &none, search->arena);
}

static bool write_selector(struct dv_alloc_search *search, const struct dv_alloc_task *task,
                           struct dv_api_node_selector **selector)
{
    struct requirements fields = {0};
    struct requirements expressions = {0};

    for (size_t i = 0; i < task->n_picks; i++) {
        const struct dv_alloc_device *device = search->view->places[task->picks[i].place].device;
        const struct dv_api_resource_slice_spec *spec = device->slice->spec;
        bool per_device = spec->per_device_node_selection && *spec->per_device_node_selection;
        dv_str name = per_device ? device->api->node_name : spec->node_name;
        const struct dv_api_node_selector *from =
            per_device ? device->api->node_selector : spec->node_selector;

        if (name.n || (device->api->binds_to_node && *device->api->binds_to_node)) {
            *selector = only_this_node(search);
            return true;
        }
        if (!from)
            continue;
        if (from->n_node_selector_terms != 1)
            return dv_fail(search->err, DV_FAILED_PRECONDITION,
                           "device %.*s/%.*s: its node selector has %zu terms instead of one",
                           DV_FMT(device->ident->pool->path), DV_FMT(dv_ident_name(device->ident)),
                           from->n_node_selector_terms);
        merge(&fields, from->node_selector_terms[0].match_fields,
              from->node_selector_terms[0].n_match_fields, search->arena);
        merge(&expressions, from->node_selector_terms[0].match_expressions,
              from->node_selector_terms[0].n_match_expressions, search->arena);
    }
    if (fields.v.n > 0 || expressions.v.n > 0)
        *selector = one_term(&fields, &expressions, search->arena);
    return true;
}

bool dv_search_result(struct dv_alloc_search *search, const struct dv_alloc_task *task,
                      struct dv_api_allocation_result *allocation)
{
    const struct dv_api_device_claim *claim = &task->claim->spec.devices;
    struct configs configs = {0};

    allocation->devices.n_results = task->n_picks;
    if (task->n_picks > 0)
        allocation->devices.results = DV_NEW_ARRAY(
            search->arena, struct dv_api_device_request_allocation_result, task->n_picks);
    for (size_t i = 0; i < task->n_picks; i++)
        write_device(search, task, &task->picks[i], &allocation->devices.results[i]);
    for (size_t i = 0; i < task->n_asks; i++)
        if (is_first_of_class(task, i))
            add_class_configs(search, task, i, &configs);
    for (size_t i = 0; i < claim->n_config; i++)
        add_claim_config(search, task, &claim->config[i], &configs);
    allocation->devices.config = configs.v.v;
    allocation->devices.n_config = configs.v.n;
    return write_selector(search, task, &allocation->node_selector);
}
