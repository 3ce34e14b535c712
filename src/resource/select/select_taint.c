/* select_taint.c - which devices a DeviceTaintRule taints. */
#include "base/str.h"
#include "resource/resource.h"
#include "resource/select.h"

static bool is_any_or(dv_str wanted, dv_str name)
{
    return wanted.n == 0 || name.n == 0 || dv_str_eq(wanted, name);
}

bool dv_taint_rule_selects(const struct dv_api_device_taint_rule *rule, dv_str driver, dv_str pool,
                           dv_str device)
{
    const struct dv_api_device_taint_selector *selector = rule->spec.device_selector;

    return !selector || (is_any_or(selector->driver, driver) && is_any_or(selector->pool, pool) &&
                         is_any_or(selector->device, device));
}
