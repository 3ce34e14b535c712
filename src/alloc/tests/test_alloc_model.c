#include "alloc/tests/test_alloc_model.h"

#include "alloc/alloc.h"
#include "alloc/tests/test_alloc_world.h"
#include "alloc/tests/test_model_search.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "cel/cel.h"
#include "number/number.h"
#include "resource/resource.h"

static bool fail(struct model *model)
{
    model->has_failed = true;
    return false;
}

/* ---- selectors ---- */

static struct dv_cel_attribute attribute_of(dv_str name, const struct dv_api_device_attribute *api)
{
    struct dv_cel_attribute to = {.name = name, .kind = DV_CEL_ATTRIBUTE_NONE};

    if (api->int_)
        to = (struct dv_cel_attribute){name, DV_CEL_ATTRIBUTE_INT, {.i = *api->int_}, 0};
    else if (api->bool_)
        to = (struct dv_cel_attribute){name, DV_CEL_ATTRIBUTE_BOOL, {.b = *api->bool_}, 0};
    else if (api->string.p)
        to = (struct dv_cel_attribute){name, DV_CEL_ATTRIBUTE_STRING, {.s = api->string}, 0};
    else if (api->version.p)
        to = (struct dv_cel_attribute){name, DV_CEL_ATTRIBUTE_VERSION, {.s = api->version}, 0};
    else if (api->ints)
        to = (struct dv_cel_attribute){
            name, DV_CEL_ATTRIBUTE_INTS, {.ints = api->ints}, api->n_ints};
    else if (api->bools)
        to = (struct dv_cel_attribute){
            name, DV_CEL_ATTRIBUTE_BOOLS, {.bools = api->bools}, api->n_bools};
    else if (api->strings)
        to = (struct dv_cel_attribute){
            name, DV_CEL_ATTRIBUTE_STRINGS, {.strings = api->strings}, api->n_strings};
    else if (api->versions)
        to = (struct dv_cel_attribute){
            name, DV_CEL_ATTRIBUTE_VERSIONS, {.strings = api->versions}, api->n_versions};
    return to;
}

bool model_evaluate(const struct world *world, dv_str expression, const struct model_device *device,
                    bool *is_match)
{
    const struct dv_alloc_features *features = &world->features;
    const struct dv_api_device *api = device->api;
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_cel_attribute *attributes =
        DV_NEW_ARRAY(arena, struct dv_cel_attribute, api->n_attributes);
    struct dv_cel_capacity *capacities =
        DV_NEW_ARRAY(arena, struct dv_cel_capacity, api->n_capacity);
    struct dv_cel_options options = {
        .features = {features->consumable_capacity, features->list_attributes}
    };
    struct dv_cel_device_input input = {
        .driver = device->spec->driver,
        .attributes = attributes,
        .n_attributes = api->n_attributes,
        .capacities = capacities,
        .n_capacities = api->n_capacity,
        .allow_multiple_allocations =
            api->allow_multiple_allocations && *api->allow_multiple_allocations,
        .list_type_attributes = features->list_attributes,
    };
    struct dv_cel_budget budget = {.cost_max = DV_CEL_COST_MAX};
    const struct dv_cel_expr *expr;
    struct dv_err err;

    for (size_t i = 0; i < api->n_attributes; i++)
        attributes[i] = attribute_of(api->attributes[i].key, &api->attributes[i].value);
    for (size_t i = 0; i < api->n_capacity; i++)
        capacities[i] =
            (struct dv_cel_capacity){api->capacity[i].key, api->capacity[i].value.value};
    expr = dv_cel_compile(expression, &options, arena, &err);
    return expr &&
           dv_cel_eval(expr, dv_cel_device_new(&input, arena), &budget, arena, is_match, &err);
}

static bool is_selected(struct model *model, const struct dv_api_device_selector *selectors,
                        size_t n, const struct model_device *device, bool *is_match)
{
    *is_match = true;
    for (size_t i = 0; i < n && *is_match; i++)
        if (!model_evaluate(model->world, selectors[i].cel->expression, device, is_match))
            return fail(model);
    return true;
}

static bool is_selectable(struct model *model, struct choice *choice, size_t at, bool *is)
{
    const struct model_device *device = &model->pools.devices.v[at];

    *is = choice->memo[at] == 1;
    if (!model->world->features.binding_conditions && device->api->n_binding_conditions > 0) {
        *is = false;
        return true;
    }
    if (choice->memo[at])
        return true;
    if (!is_selected(model, choice->class->spec.selectors, choice->class->spec.n_selectors, device,
                     is))
        return false;
    if (*is && !is_selected(model, choice->terms.selectors, choice->terms.n_selectors, device, is))
        return false;
    if (*is && !model_is_for(model->world, device, is))
        return fail(model);
    choice->memo[at] = *is ? 1 : 2;
    return true;
}

/* ---- reading ---- */

static bool list_all(struct model *model, struct choice *choice)
{
    for (size_t i = 0; i < model->pools.pools.n; i++)
        if (model->pools.pools.v[i].state != MODEL_USABLE)
            return fail(model);
    for (size_t i = 0; i < model->pools.devices.n; i++) {
        const struct model_device *device = &model->pools.devices.v[i];
        struct dv_quantity *consumed =
            DV_NEW_ARRAY(model->arena, struct dv_quantity, device->api->n_capacity);
        bool is;

        if (!is_selectable(model, choice, i, &is))
            return false;
        if (is && (!model->world->features.consumable_capacity ||
                   model_capacity(device, choice->terms.capacity, model->arena, consumed)))
            *dv_vec_add_in(&choice->all, model->arena) = i;
    }
    choice->takes_all = true;
    choice->n_wanted = choice->all.n;
    return true;
}

static bool has_cel(const struct dv_api_device_selector *selectors, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!selectors[i].cel)
            return false;
    return true;
}

static bool read_choice(struct model *model, struct choice *choice)
{
    const struct dv_api_exact_device_request *terms = &choice->terms;

    choice->memo = DV_NEW_ARRAY(model->arena, unsigned char, model->pools.devices.n);
    if (terms->capacity && !model->world->features.consumable_capacity)
        return fail(model);
    if (terms->admin_access && !model->world->features.admin_access)
        return fail(model);
    for (size_t i = 0; i < model->world->classes.n; i++)
        if (dv_str_eq(model->world->classes.v[i]->meta->name, terms->device_class_name))
            choice->class = model->world->classes.v[i]->value;
    if (terms->device_class_name.n == 0 || !choice->class)
        return fail(model);
    if (!has_cel(terms->selectors, terms->n_selectors) ||
        !has_cel(choice->class->spec.selectors, choice->class->spec.n_selectors))
        return fail(model);
    choice->n_wanted = terms->count > 0 ? (uint64_t)terms->count : 0;
    if (dv_str_eq(terms->allocation_mode, DV_STR("ExactCount")))
        return true;
    return dv_str_eq(terms->allocation_mode, DV_STR("All")) ? list_all(model, choice) : fail(model);
}

static bool read_request(struct model *model, const struct dv_api_device_request *api,
                         struct request *request)
{
    struct choice *choice;

    request->name = api->name;
    request->has_alternatives = api->n_first_available > 0;
    if (!request->has_alternatives) {
        choice = dv_vec_add_in(&request->choices, model->arena);
        choice->name = api->name;
        if (api->exactly)
            choice->terms = *api->exactly;
        return read_choice(model, choice);
    }
    if (!model->world->features.prioritized_list)
        return fail(model);
    for (size_t i = 0; i < api->n_first_available; i++) {
        const struct dv_api_device_sub_request *sub = &api->first_available[i];

        choice = dv_vec_add_in(&request->choices, model->arena);
        choice->name =
            dv_str_printf(model->arena, "%.*s/%.*s", DV_FMT(api->name), DV_FMT(sub->name));
        choice->terms = (struct dv_api_exact_device_request){
            .device_class_name = sub->device_class_name,
            .selectors = sub->selectors,
            .n_selectors = sub->n_selectors,
            .allocation_mode = sub->allocation_mode,
            .count = sub->count,
            .tolerations = sub->tolerations,
            .n_tolerations = sub->n_tolerations,
            .capacity = sub->capacity,
        };
        if (!read_choice(model, choice))
            return false;
    }
    return true;
}

static bool read_claim(struct model *model, const struct dv_api_resource_claim *api)
{
    const struct dv_api_device_claim *devices = &api->spec.devices;
    struct claim *claim = dv_vec_add_in(&model->claims, model->arena);
    uint64_t n_min = 0;

    claim->api = api;
    for (size_t i = 0; i < devices->n_requests; i++) {
        struct request *request = dv_vec_add_in(&claim->requests, model->arena);
        uint64_t least = UINT64_MAX;

        if (!read_request(model, &devices->requests[i], request))
            return false;
        for (size_t j = 0; j < request->choices.n; j++)
            if (request->choices.v[j].n_wanted < least)
                least = request->choices.v[j].n_wanted;
        n_min = n_min + least < n_min ? UINT64_MAX : n_min + least;
    }
    if (n_min > RESULTS_MAX)
        return fail(model);
    for (size_t i = 0; i < devices->n_constraints; i++) {
        struct checker *checker = dv_vec_add_in(&claim->checkers, model->arena);

        checker->api = &devices->constraints[i];
        checker->seen = DV_NEW_ARRAY(model->arena, struct texts, devices->n_requests);
        if (!checker->api->match_attribute.p && !checker->api->distinct_attribute.p)
            return fail(model);
    }
    return true;
}

/* ---- the search ---- */

enum end {
    SUCCESS,
    FAILURE,
    LIMIT,
    ERROR,
};

struct where {
    size_t c;
    size_t r;
    size_t s;
    uint64_t d;
    bool is_inside;
    size_t start;
};

static enum end search(struct model *model, struct where at);

static enum end try_alternatives(struct model *model, struct where at)
{
    const struct request *request = &model->claims.v[at.c].requests.v[at.r];
    size_t n_limits = 0;

    at.is_inside = true;
    at.start = 0;
    for (at.s = 0; at.s < request->choices.n; at.s++) {
        enum end end = search(model, at);

        if (end == SUCCESS || end == ERROR)
            return end;
        n_limits += end == LIMIT;
    }
    return n_limits == request->choices.n ? LIMIT : FAILURE;
}

static enum end try_device(struct model *model, struct where at, struct choice *choice,
                           size_t device, bool must)
{
    struct taking taking = {
        .device = &model->pools.devices.v[device], .c = at.c, .r = at.r, .choice = choice};
    enum end end;

    if (!model_take(model, &taking, must))
        return model->has_failed ? ERROR : FAILURE;
    at.d++;
    at.start = device + 1;
    end = search(model, at);
    if (end != SUCCESS)
        model_untake(model, &taking);
    return end;
}

static enum end try_devices(struct model *model, struct where at, struct choice *choice)
{
    for (size_t i = at.start; i < model->pools.devices.n; i++) {
        const struct model_device *device = &model->pools.devices.v[i];
        struct dv_quantity *consumed =
            DV_NEW_ARRAY(model->arena, struct dv_quantity, device->api->n_capacity);
        enum end end;
        bool is;

        if (model_is_in_use(model, at.c, choice, device))
            continue;
        if (!is_selectable(model, choice, i, &is))
            return ERROR;
        if (!is || (model->world->features.consumable_capacity &&
                    !model_capacity(device, choice->terms.capacity, model->arena, consumed)))
            continue;
        end = try_device(model, at, choice, i, false);
        if (end != FAILURE)
            return end;
    }
    return FAILURE;
}

static enum end search(struct model *model, struct where at)
{
    struct claim *claim;
    struct request *request;
    struct choice *choice;

    if (++model->n_steps > model->n_steps_max) {
        model->gave_up = true;
        return ERROR;
    }
    if (at.c == model->claims.n)
        return SUCCESS;
    claim = &model->claims.v[at.c];
    if (at.r == claim->requests.n) {
        enum end end = search(model, (struct where){.c = at.c + 1});

        return end == LIMIT ? FAILURE : end;
    }
    request = &claim->requests.v[at.r];
    if (request->has_alternatives && !at.is_inside)
        return try_alternatives(model, at);
    choice = &request->choices.v[at.s];
    if (choice->takes_all && choice->n_wanted == 0)
        return FAILURE;
    if (at.d >= choice->n_wanted)
        return search(model, (struct where){.c = at.c, .r = at.r + 1});
    if (claim->n_results + choice->n_wanted - at.d > RESULTS_MAX)
        return LIMIT;
    if (choice->takes_all)
        return try_device(model, at, choice, choice->all.v[at.d], true);
    return try_devices(model, at, choice);
}

static enum dv_alloc_outcome conclude(const struct model *model, enum end end)
{
    if (model->gave_up)
        return DV_ALLOC_GAVE_UP;
    if (end == SUCCESS)
        return DV_ALLOC_DONE;
    if (end == ERROR)
        return DV_ALLOC_FAILED;
    for (size_t i = 0; i < model->pools.pools.n; i++)
        if (model->pools.pools.v[i].state == MODEL_INVALID)
            return DV_ALLOC_NODE_FAILED;
    return DV_ALLOC_NONE;
}

void model_allocate(const struct world *world, uint64_t n_steps_max, struct dv_arena *arena,
                    struct model_result *result)
{
    struct model model = {.world = world, .arena = arena, .n_steps_max = n_steps_max};

    *result = (struct model_result){.outcome = DV_ALLOC_FAILED};
    model_gather(world, arena, &model.pools);
    if (model.pools.has_failed)
        return;
    for (size_t i = 0; i < world->claims.n; i++)
        if (!read_claim(&model, world->claims.v[i]))
            return;
    result->outcome = conclude(&model, search(&model, (struct where){0}));
    result->picks = model.picks.v;
    result->n_picks = model.picks.n;
    result->n_steps = model.n_steps;
}
