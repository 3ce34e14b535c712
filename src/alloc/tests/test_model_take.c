/* test_model_take.c - taking one device, and giving it back. */
#include <string.h>

#include "alloc/tests/test_alloc_model.h"
#include "alloc/tests/test_alloc_world.h"
#include "alloc/tests/test_model_search.h"
#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "number/number.h"
#include "resource/resource.h"

/* ---- constraints ---- */

static bool applies(const struct checker *checker, const struct request *request,
                    const struct choice *choice)
{
    for (size_t i = 0; i < checker->api->n_requests; i++)
        if (dv_str_eq(checker->api->requests[i], request->name) ||
            dv_str_eq(checker->api->requests[i], choice->name))
            return true;
    return checker->api->n_requests == 0;
}

static void add_text(struct texts *texts, struct dv_arena *arena, char type, dv_str text)
{
    *dv_vec_add_in(&texts->v, arena) = dv_str_printf(arena, "%c:%.*s", type, DV_FMT(text));
}

static struct texts texts_of(const struct model *model, const struct dv_api_device_attribute *api)
{
    bool lists = model->world->features.list_attributes;
    struct dv_arena *arena = model->arena;
    struct texts texts = {0};

    for (size_t i = 0; lists && i < api->n_ints; i++)
        add_text(&texts, arena, 'i', dv_str_printf(arena, "%lld", (long long)api->ints[i]));
    for (size_t i = 0; lists && i < api->n_bools; i++)
        add_text(&texts, arena, 'b', api->bools[i] ? DV_STR("t") : DV_STR("f"));
    for (size_t i = 0; lists && i < api->n_strings; i++)
        add_text(&texts, arena, 's', api->strings[i]);
    for (size_t i = 0; lists && i < api->n_versions; i++)
        add_text(&texts, arena, 'v', api->versions[i]);
    if (texts.v.n > 0)
        return texts;
    if (api->string.p)
        add_text(&texts, arena, 's', api->string);
    else if (api->version.p)
        add_text(&texts, arena, 'v', api->version);
    else if (api->bool_)
        add_text(&texts, arena, 'b', *api->bool_ ? DV_STR("t") : DV_STR("f"));
    else if (api->int_)
        add_text(&texts, arena, 'i', dv_str_printf(arena, "%lld", (long long)*api->int_));
    return texts;
}

static const struct dv_api_device_attribute *find(const struct dv_api_device *api, dv_str name)
{
    for (size_t i = 0; i < api->n_attributes; i++)
        if (dv_str_eq(api->attributes[i].key, name))
            return &api->attributes[i].value;
    return NULL;
}

static bool has_common(const struct texts *a, dv_str text)
{
    for (size_t i = 0; i < a->v.n; i++)
        if (dv_str_eq(a->v.v[i], text))
            return true;
    return false;
}

static bool overlaps(const struct texts *a, const struct texts *b)
{
    for (size_t i = 0; i < b->v.n; i++)
        if (has_common(a, b->v.v[i]))
            return true;
    return false;
}

static bool add_to_checker(struct model *model, const struct claim *claim, struct checker *checker,
                           size_t r, const struct model_device *device)
{
    bool is_match = checker->api->match_attribute.p != NULL;
    dv_str name = is_match ? checker->api->match_attribute : checker->api->distinct_attribute;
    size_t slash = dv_str_find_char(name, '/');
    const struct dv_api_device_attribute *attribute = find(device->api, name);
    struct texts texts;
    struct texts common = {0};

    if (!attribute && dv_str_eq(dv_str_slice(name, 0, slash), device->spec->driver))
        attribute = find(device->api, dv_str_slice(name, slash + 1, name.n));
    if (!attribute)
        return false;
    texts = texts_of(model, attribute);
    if (!is_match) {
        for (size_t i = 0; checker->n > 0 && i < claim->requests.n; i++)
            if (overlaps(&checker->seen[i], &texts))
                return false;
        checker->seen[r] = texts;
    } else if (checker->n == 0) {
        checker->common = texts;
    } else {
        if (!overlaps(&checker->common, &texts))
            return false;
        for (size_t i = 0; i < checker->common.v.n; i++)
            if (has_common(&texts, checker->common.v.v[i]))
                *dv_vec_add_in(&common.v, model->arena) = checker->common.v.v[i];
        checker->common = common;
    }
    checker->n++;
    return true;
}

static void remove_from_checkers(struct claim *claim, size_t r, const struct choice *choice,
                                 size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct checker *checker = &claim->checkers.v[i];

        if (!applies(checker, &claim->requests.v[r], choice))
            continue;
        checker->n--;
        memset(&checker->seen[r], 0, sizeof(checker->seen[r]));
    }
}

static bool add_to_checkers(struct model *model, struct claim *claim, size_t r,
                            const struct choice *choice, const struct model_device *device)
{
    for (size_t i = 0; i < claim->checkers.n; i++) {
        struct checker *checker = &claim->checkers.v[i];

        if (!applies(checker, &claim->requests.v[r], choice))
            continue;
        if (!add_to_checker(model, claim, checker, r, device)) {
            remove_from_checkers(claim, r, choice, i);
            return false;
        }
    }
    return true;
}

/* ---- taking ---- */

bool model_is_in_use(const struct model *model, size_t c, const struct choice *choice,
                     const struct model_device *device)
{
    if (choice->terms.admin_access && *choice->terms.admin_access)
        return device->taken_by[c];
    for (size_t i = 0; i < model->claims.n; i++)
        if (device->taken_by[i])
            return true;
    return device->is_dedicated;
}

static void add_counters(struct model *model, const struct model_device *device, bool adds)
{
    const struct dv_api_device *api = device->api;

    for (size_t i = 0; i < api->n_consumes_counters; i++)
        for (size_t j = 0; j < api->consumes_counters[i].n_counters; j++) {
            struct model_counter *counter = model_counter(
                &model->pools.pools.v[device->pool], api->consumes_counters[i].counter_set,
                api->consumes_counters[i].counters[j].key);
            const struct dv_quantity *by = &api->consumes_counters[i].counters[j].value.value;

            counter->consumed = adds ? dv_quantity_add(&counter->consumed, by, model->arena)
                                     : dv_quantity_sub(&counter->consumed, by, model->arena);
        }
}

static bool reserve(struct model *model, const struct model_device *device)
{
    const struct model_pool *pool = &model->pools.pools.v[device->pool];

    add_counters(model, device, true);
    for (size_t i = 0; i < pool->counters.n; i++)
        if (dv_quantity_cmp(&pool->counters.v[i].available, &pool->counters.v[i].consumed) < 0) {
            add_counters(model, device, false);
            return false;
        }
    return true;
}

bool model_tolerates(const struct dv_api_device_toleration *toleration,
                     const struct dv_api_device_taint *taint)
{
    if (toleration->effect.n && !dv_str_eq(toleration->effect, taint->effect))
        return false;
    if (toleration->key.n && !dv_str_eq(toleration->key, taint->key))
        return false;
    if (dv_str_eq(toleration->operator, DV_STR("Exists")))
        return true;
    return (toleration->operator.n == 0 || dv_str_eq(toleration->operator, DV_STR("Equal"))) &&
           dv_str_eq(toleration->value, taint->value);
}

static bool is_tainted(const struct model *model, const struct choice *choice,
                       const struct model_device *device)
{
    for (size_t i = 0; model->world->features.device_taints && i < device->api->n_taints; i++) {
        const struct dv_api_device_taint *taint = &device->api->taints[i];
        bool is_tolerated = !dv_str_eq(taint->effect, DV_STR("NoSchedule")) &&
                            !dv_str_eq(taint->effect, DV_STR("NoExecute"));

        for (size_t j = 0; j < choice->terms.n_tolerations; j++)
            is_tolerated = is_tolerated || model_tolerates(&choice->terms.tolerations[j], taint);
        if (!is_tolerated)
            return true;
    }
    return false;
}

void model_untake(struct model *model, const struct taking *taking)
{
    struct claim *claim = &model->claims.v[taking->c];
    struct model_device *device = taking->device;

    model->picks.n--;
    claim->n_results--;
    if (device->is_multi) {
        for (size_t i = 0; i < device->api->n_capacity; i++)
            device->taken[i] =
                dv_quantity_sub(&device->taken[i], &taking->consumed[i], model->arena);
        device->n_shares--;
    } else {
        device->taken_by[taking->c] = false;
    }
    remove_from_checkers(claim, taking->r, taking->choice, claim->checkers.n);
    if (taking->has_counters)
        add_counters(model, device, false);
}

static bool take_rest(struct model *model, struct taking *taking, bool must)
{
    struct model_device *device = taking->device;
    struct claim *claim = &model->claims.v[taking->c];
    const struct choice *choice = taking->choice;

    if (is_tainted(model, choice, device))
        return false;
    if (!add_to_checkers(model, claim, taking->r, choice, device)) {
        if (must)
            model->has_failed = true;
        return false;
    }
    taking->consumed = DV_NEW_ARRAY(model->arena, struct dv_quantity, device->api->n_capacity);
    if (model->world->features.consumable_capacity &&
        !model_capacity(device, choice->terms.capacity, model->arena, taking->consumed)) {
        remove_from_checkers(claim, taking->r, choice, claim->checkers.n);
        return false;
    }
    if (device->is_multi) {
        for (size_t i = 0; i < device->api->n_capacity; i++)
            device->taken[i] =
                dv_quantity_add(&device->taken[i], &taking->consumed[i], model->arena);
        device->n_shares++;
    } else {
        device->taken_by[taking->c] = true;
    }
    claim->n_results++;
    *dv_vec_add_in(&model->picks, model->arena) =
        (struct model_pick){taking->c, choice->name, device, taking->consumed};
    return true;
}

bool model_take(struct model *model, struct taking *taking, bool must)
{
    struct model_device *device = taking->device;
    bool is_admin = taking->choice->terms.admin_access && *taking->choice->terms.admin_access;

    if (!(is_admin && device->is_multi) &&
        model_is_in_use(model, taking->c, taking->choice, device))
        return false;
    if (device->api->n_consumes_counters > 0) {
        if (!model->world->features.partitionable_devices)
            return false;
        taking->has_counters =
            !(device->is_multi && (device->is_aggregated || device->n_shares > 0));
        if (taking->has_counters && !reserve(model, device))
            return false;
    }
    if (take_rest(model, taking, must))
        return true;
    if (taking->has_counters)
        add_counters(model, device, false);
    return false;
}
