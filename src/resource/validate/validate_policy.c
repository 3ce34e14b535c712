/* validate_policy.c - how much of a shared capacity a request may ask for. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "number/number.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"
#include "resource/validate/device_checks.h"

#define VALUES_MAX 10u

static const char *text_of(const struct dv_quantity *quantity, struct dv_arena *arena)
{
    return dv_str_to_c(dv_quantity_text(quantity, arena), arena);
}

/* Rounds up to a whole number, at most the largest of 64 bits. */
static int64_t whole(const struct dv_quantity *quantity)
{
    int64_t value;

    if (!dv_quantity_to_i64_ceil(quantity, &value))
        value = dv_quantity_sign(quantity) < 0 ? INT64_MIN : INT64_MAX;
    return value;
}

static void add(struct dv_problems *problems, const struct dv_field_path *path, const char *name,
                const struct dv_quantity *shown, const char *text, const struct dv_quantity *bound)
{
    dv_problem_add(problems, DV_PROBLEM_INVALID, path, name,
                   dv_bad_quantity(shown, problems->arena), "%s%s", text,
                   bound ? text_of(bound, problems->arena) : "");
}

static void check_repeated_values(struct dv_problems *problems, const struct dv_field_path *path,
                                  const struct dv_api_capacity_request_policy *policy)
{
    for (size_t i = 0; i < policy->n_valid_values; i++) {
        struct dv_field_path item = dv_path_index(path, i);
        int64_t value = whole(&policy->valid_values[i]);
        bool is_repeated = false;

        for (size_t j = 0; j < i; j++)
            is_repeated = is_repeated || whole(&policy->valid_values[j]) == value;
        if (is_repeated)
            dv_problem_add(problems, DV_PROBLEM_DUPLICATE, &item, NULL,
                           dv_bad_str(dv_str_printf(problems->arena, "%lld", (long long)value)),
                           "%s", "");
    }
}

static void check_values(struct dv_problems *problems, const struct dv_field_path *up,
                         const struct dv_quantity *capacity,
                         const struct dv_api_capacity_request_policy *policy)
{
    struct dv_field_path path = dv_path_name(up, "validValues");
    const struct dv_quantity *values = policy->valid_values;
    size_t n = policy->n_valid_values;
    bool has_default = false;

    for (size_t i = 1; i < n; i++) {
        struct dv_field_path item = dv_path_index(&path, i);

        if (dv_quantity_cmp(&values[i - 1], &values[i]) > 0)
            add(problems, &item, NULL, &values[i], "values must be sorted in ascending order",
                NULL);
    }
    if (n > VALUES_MAX)
        dv_too_many(problems, &path, NULL, n, VALUES_MAX);
    for (size_t i = 0; n <= VALUES_MAX && i < n; i++) {
        struct dv_field_path item = dv_path_index(&path, i);

        if (dv_quantity_cmp(&values[i], capacity) > 0)
            add(problems, &item, NULL, &values[i],
                "option is larger than capacity value: ", capacity);
        has_default = has_default || dv_quantity_cmp(&values[i], policy->default_) == 0;
    }
    if (n <= VALUES_MAX)
        check_repeated_values(problems, &path, policy);
    if (!has_default)
        add(problems, &path, NULL, policy->default_,
            "default value is not valid according to the requestPolicy", NULL);
}

static void check_steps(struct dv_problems *problems, const struct dv_field_path *path,
                        const struct dv_quantity *value,
                        const struct dv_api_capacity_request_policy_range *range)
{
    uint64_t step = (uint64_t)whole(range->step);
    int64_t distance = (int64_t)((uint64_t)whole(value) - (uint64_t)whole(range->min));

    /* Only zero is a multiple of a step of zero; the reference would crash on it. */
    if (step == 0 ? distance == 0 : step == UINT64_MAX || distance % (int64_t)step == 0)
        return;
    dv_problem_add(problems, DV_PROBLEM_INVALID, path, "step",
                   dv_bad_quantity(value, problems->arena),
                   "value is not a multiple of a given step (%s) from (%s)",
                   text_of(range->step, problems->arena), text_of(range->min, problems->arena));
}

static void check_step(struct dv_problems *problems, const struct dv_field_path *path,
                       const struct dv_quantity *capacity, const struct dv_quantity *preset,
                       const struct dv_api_capacity_request_policy_range *range)
{
    struct dv_quantity one = dv_quantity_add(range->min, range->step, problems->arena);

    if (dv_quantity_cmp(&one, capacity) > 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "step",
                       dv_bad_quantity(range->step, problems->arena),
                       "one step %s is larger than capacity value: %s",
                       text_of(&one, problems->arena), text_of(capacity, problems->arena));
    check_steps(problems, path, preset, range);
    if (range->max)
        check_steps(problems, path, range->max, range);
}

static void check_range(struct dv_problems *problems, const struct dv_field_path *up,
                        const struct dv_quantity *capacity, const struct dv_quantity *preset,
                        const struct dv_api_capacity_request_policy_range *range)
{
    struct dv_field_path path = dv_path_name(up, "validRange");

    if (!range->min) {
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, &path, "min", dv_bad_none(),
                       "required when validRange is defined");
        return;
    }
    if (dv_quantity_cmp(range->min, capacity) > 0)
        add(problems, &path, "min", range->min, "min is larger than capacity value: ", capacity);
    if (dv_quantity_cmp(preset, range->min) < 0)
        add(problems, &path, "min", preset, "default is less than min: ", range->min);
    if (range->max && dv_quantity_cmp(range->min, range->max) > 0)
        add(problems, &path, "max", range->min, "min is larger than max: ", range->max);
    if (range->max && dv_quantity_cmp(range->max, capacity) > 0)
        add(problems, &path, "max", range->max, "max is larger than capacity value: ", capacity);
    if (range->max && dv_quantity_cmp(preset, range->max) > 0)
        add(problems, &path, "max", preset, "default is more than max: ", range->max);
    if (range->step)
        check_step(problems, &path, capacity, preset, range);
}

void dv_check_request_policy(struct dv_problems *problems, const struct dv_field_path *path,
                             const struct dv_quantity *capacity,
                             const struct dv_api_capacity_request_policy *policy)
{
    bool has_values = policy->n_valid_values > 0;

    if (has_values && policy->valid_range)
        dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, path, NULL, dv_bad_none(),
                       "exactly one policy can be specified, cannot specify \"validValues\" and "
                       "\"validRange\" at the same time");
    else if ((has_values || policy->valid_range) && !policy->default_)
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, path, "default", dv_bad_none(),
                       "required when %s is defined", has_values ? "validValues" : "validRange");
    else if (has_values)
        check_values(problems, path, capacity, policy);
    else if (policy->valid_range)
        check_range(problems, path, capacity, policy->default_, policy->valid_range);
}
