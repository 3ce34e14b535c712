/* alloc_capacity.c - devices that several claims share by capacity (consumable capacity): how much
 * a share takes by the device's policy, and whether that much is left. */
#include <stdint.h>

#include "alloc/inventory.h"
#include "alloc/search.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/str.h"
#include "number/number.h"
#include "resource/resource.h"

/* Room for a quantity with the most digits that one may have, its signs and its suffix. */
#define QUANTITY_BYTES_MAX (DV_QUANTITY_DIGITS_MAX + 64u)

static const struct dv_quantity *requested(const struct dv_alloc_want *want, dv_str name)
{
    if (!want->capacity)
        return NULL;
    for (size_t i = 0; i < want->capacity->n_requests; i++)
        if (dv_str_eq(want->capacity->requests[i].key, name))
            return &want->capacity->requests[i].value;
    return NULL;
}

static bool has_capacity(const struct dv_api_device *api, dv_str name)
{
    for (size_t i = 0; i < api->n_capacity; i++)
        if (dv_str_eq(api->capacity[i].key, name))
            return true;
    return false;
}

/* The quantity as a whole number, as the reference computes with steps; one that is too large
 * becomes the largest number. */
static int64_t whole(const struct dv_quantity *quantity)
{
    int64_t value;

    if (dv_quantity_to_i64_ceil(quantity, &value))
        return value;
    return dv_quantity_sign(quantity) < 0 ? INT64_MIN : INT64_MAX;
}

static struct dv_quantity round_to_range(const struct dv_quantity *wanted,
                                         const struct dv_api_capacity_request_policy_range *range)
{
    int64_t min;
    int64_t step;
    int64_t above;
    int64_t n_steps;

    if (dv_quantity_cmp(wanted, range->min) < 0)
        return *range->min;
    if (!range->step)
        return *wanted;
    min = whole(range->min);
    step = whole(range->step);
    if (step <= 0 || __builtin_sub_overflow(whole(wanted), min, &above))
        return *wanted;
    n_steps = above / step + (above % step != 0);
    if (__builtin_mul_overflow(n_steps, step, &above) || __builtin_add_overflow(min, above, &above))
        return *wanted;
    return dv_quantity_from_i64(above, DV_QUANTITY_BINARY_SI);
}

static struct dv_quantity round_to_values(const struct dv_quantity *wanted,
                                          const struct dv_api_capacity_request_policy *policy)
{
    for (size_t i = 0; i < policy->n_valid_values; i++)
        if (dv_quantity_cmp(wanted, &policy->valid_values[i]) <= 0)
            return policy->valid_values[i];
    return *wanted;
}

static struct dv_quantity consumption(const struct dv_quantity *wanted,
                                      const struct dv_api_device_capacity *capacity)
{
    const struct dv_api_capacity_request_policy *policy = capacity->request_policy;

    if (!wanted)
        return policy && policy->default_ ? *policy->default_ : capacity->value;
    if (policy && policy->valid_range && policy->valid_range->min)
        return round_to_range(wanted, policy->valid_range);
    if (policy && policy->valid_values)
        return round_to_values(wanted, policy);
    return *wanted;
}

static bool is_in_range(const struct dv_quantity *amount,
                        const struct dv_api_capacity_request_policy_range *range)
{
    int64_t step;
    int64_t above;

    if (range->max && dv_quantity_cmp(amount, range->max) > 0)
        return false;
    if (!range->step)
        return true;
    step = whole(range->step);
    if (step == 0 ||
        __builtin_sub_overflow(whole(amount), range->min ? whole(range->min) : 0, &above))
        return false;
    return above % step == 0;
}

static bool keeps_policy(const struct dv_quantity *amount,
                         const struct dv_api_capacity_request_policy *policy)
{
    if (!policy || (policy->default_ && dv_quantity_cmp(amount, policy->default_) == 0))
        return true;
    if (policy->valid_range)
        return is_in_range(amount, policy->valid_range);
    if (!policy->valid_values)
        return true;
    for (size_t i = 0; i < policy->n_valid_values; i++)
        if (dv_quantity_cmp(amount, &policy->valid_values[i]) == 0)
            return true;
    return false;
}

/* What would be in use of a capacity of the device with `amount` more: by claims that hold shares,
 * and by this search. */
static struct dv_quantity in_use_with(struct dv_alloc_search *search, uint32_t place, size_t i,
                                      const struct dv_quantity *amount)
{
    const struct dv_alloc_device *device = search->view->places[place].device;
    const struct dv_api_device_capacity_entry *capacity = &device->api->capacity[i];
    const struct dv_alloc_taken *taken = &search->taken[place];
    const struct dv_alloc_sums *sums = device->ident->sums;
    struct dv_quantity sum = *amount;

    for (size_t j = 0; sums && j < sums->n; j++)
        if (dv_str_eq(sums->v[j].key, capacity->key))
            sum = dv_quantity_add(&sum, &sums->v[j].value, search->arena);
    if (taken->n_shares > 0)
        sum = dv_quantity_add(&sum, &taken->capacity[i], search->arena);
    return sum;
}

static bool is_available(struct dv_alloc_search *search, uint32_t place, size_t i,
                         const struct dv_quantity *amount)
{
    const struct dv_api_device *api = search->view->places[place].device->api;
    struct dv_quantity sum = in_use_with(search, place, i, amount);

    return dv_quantity_cmp(&sum, &api->capacity[i].value.value) <= 0;
}

bool dv_capacity_fits(struct dv_alloc_search *search, const struct dv_alloc_want *want,
                      uint32_t place, struct dv_quantity_entry *consumed)
{
    const struct dv_api_device *api = search->view->places[place].device->api;

    for (size_t i = 0; want->capacity && i < want->capacity->n_requests; i++)
        if (!has_capacity(api, want->capacity->requests[i].key))
            return false;
    for (size_t i = 0; i < api->n_capacity; i++) {
        const struct dv_api_device_capacity *capacity = &api->capacity[i].value;
        struct dv_quantity amount = consumption(requested(want, api->capacity[i].key), capacity);

        if (!keeps_policy(&amount, capacity->request_policy) ||
            !is_available(search, place, i, &amount))
            return false;
        if (consumed)
            consumed[i] = (struct dv_quantity_entry){api->capacity[i].key, amount};
    }
    return true;
}

bool dv_capacity_is_negative(const struct dv_alloc_want *want, const struct dv_alloc_device *device)
{
    const struct dv_api_device *api = device->api;

    for (size_t i = 0; i < api->n_capacity; i++) {
        struct dv_quantity amount =
            consumption(requested(want, api->capacity[i].key), &api->capacity[i].value);

        if (dv_quantity_sign(&amount) < 0)
            return true;
    }
    return false;
}

static dv_str print(const struct dv_quantity *quantity, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, QUANTITY_BYTES_MAX);
    dv_quantity_print(quantity, &buf);
    return dv_str_copy(dv_buf_str(&buf), arena);
}

dv_str dv_capacity_problem(struct dv_alloc_search *search, const struct dv_alloc_want *want,
                           uint32_t place)
{
    const struct dv_api_device *api = search->view->places[place].device->api;

    for (size_t i = 0; want->capacity && i < want->capacity->n_requests; i++)
        if (!has_capacity(api, want->capacity->requests[i].key))
            return dv_str_printf(search->arena, "it has no capacity %.*s",
                                 DV_FMT(want->capacity->requests[i].key));
    for (size_t i = 0; i < api->n_capacity; i++) {
        const struct dv_api_device_capacity *capacity = &api->capacity[i].value;
        struct dv_quantity amount = consumption(requested(want, api->capacity[i].key), capacity);
        struct dv_quantity sum = in_use_with(search, place, i, &amount);
        struct dv_quantity in_use = dv_quantity_sub(&sum, &amount, search->arena);
        struct dv_quantity left = dv_quantity_sub(&capacity->value, &in_use, search->arena);
        struct dv_quantity missing = dv_quantity_sub(&amount, &left, search->arena);

        if (!keeps_policy(&amount, capacity->request_policy))
            return dv_str_printf(
                search->arena, "%.*s of the capacity %.*s is against its request policy",
                DV_FMT(print(&amount, search->arena)), DV_FMT(api->capacity[i].key));
        if (dv_quantity_sign(&missing) > 0)
            return dv_str_printf(
                search->arena, "the capacity %.*s is short by %.*s: %.*s wanted, %.*s of %.*s left",
                DV_FMT(api->capacity[i].key), DV_FMT(print(&missing, search->arena)),
                DV_FMT(print(&amount, search->arena)), DV_FMT(print(&left, search->arena)),
                DV_FMT(print(&capacity->value, search->arena)));
    }
    return DV_STR_NONE;
}
