/* test_cel_device.h - a device for the tests of selectors. */
#ifndef DV_CEL_TEST_CEL_DEVICE_H
#define DV_CEL_TEST_CEL_DEVICE_H

#include <stdbool.h>

#include "base/str.h"
#include "cel/cel.h"
#include "number/number.h"

struct dv_arena;
struct dv_err;

/* driver dra.example.com: name "fish", cores 8, ok true, ver 1.2.3, other.example.com/name "bird",
 * memory 16Gi; with lists: nums [3, 1, 2] and names ["red", "green"]. */
struct dv_cel_device *dv_cel_test_device(bool has_lists, struct dv_arena *arena);

/* Evaluates within the API's limit. */
static inline bool eval_on(const struct dv_cel_expr *expr, const struct dv_cel_device *device,
                           struct dv_arena *scratch, bool *is_match, struct dv_err *err)
{
    struct dv_cel_budget budget = {.cost_max = DV_CEL_COST_MAX};

    return dv_cel_eval(expr, device, &budget, scratch, is_match, err);
}

#endif
