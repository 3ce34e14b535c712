/* taint.c - when a taint of a device puts a claim out of use, and for which devices a rule speaks.
 * Pure; evict.c and control_rules.c feed it. */
#include "control/taint.h"

#include <string.h>

#include "base/arena.h"
#include "resource/resource.h"

/* ---- eviction ---- */

bool dv_taint_is_evicting(const struct dv_api_device_taint *taint)
{
    return dv_str_eq(taint->effect, DV_STR("NoExecute"));
}

/* Whether a toleration tolerates a taint that evicts. An empty effect does not: for devices it
 * tolerates only what keeps pods away. An empty key stands for all keys only where any value will
 * do. */
static bool tolerates(const struct dv_api_device_toleration *toleration,
                      const struct dv_api_device_taint *taint)
{
    return dv_str_eq(toleration->effect, DV_STR("NoExecute")) &&
           (toleration->key.n > 0 || dv_str_eq(toleration->operator, DV_STR("Exists"))) &&
           dv_device_toleration_matches(toleration, taint);
}

/* Finds how long the taint is tolerated: the shortest limit of all tolerations that match, 0 when
 * none does. False: for ever. */
static bool tolerated_s(const struct dv_api_device_request_allocation_result *result,
                        const struct dv_api_device_taint *taint, int64_t *seconds)
{
    bool is_tolerated = false;
    bool is_limited = false;

    *seconds = 0;
    for (size_t i = 0; i < result->n_tolerations; i++) {
        const struct dv_api_device_toleration *toleration = &result->tolerations[i];
        int64_t own;

        if (!tolerates(toleration, taint))
            continue;
        is_tolerated = true;
        if (!toleration->toleration_seconds)
            continue;
        own = *toleration->toleration_seconds > 0 ? *toleration->toleration_seconds : 0;
        *seconds = is_limited && *seconds < own ? *seconds : own;
        is_limited = true;
    }
    return is_limited || !is_tolerated;
}

static void add_rule(struct dv_eviction *eviction, dv_str rule, struct dv_arena *arena)
{
    dv_str *all;

    if (rule.n == 0)
        return;
    for (size_t i = 0; i < eviction->n_rules; i++)
        if (dv_str_eq(eviction->rules[i], rule))
            return;
    all = DV_NEW_ARRAY(arena, dv_str, eviction->n_rules + 1);
    if (eviction->n_rules > 0)
        memcpy(all, eviction->rules, eviction->n_rules * sizeof(all[0]));
    all[eviction->n_rules++] = rule;
    eviction->rules = all;
}

void dv_taint_apply(const struct dv_api_device_request_allocation_result *result,
                    const struct dv_taint_source *source, struct dv_arena *arena,
                    struct dv_eviction *eviction)
{
    const struct dv_time *added = &source->taint->time_added;
    int64_t at_s = added->is_set ? added->seconds : source->since.seconds;
    int64_t seconds;

    if (!dv_taint_is_evicting(source->taint) || !tolerated_s(result, source->taint, &seconds))
        return;
    at_s = at_s > INT64_MAX - seconds ? INT64_MAX : at_s + seconds;
    if (!eviction->is_set || at_s < eviction->at_s)
        eviction->at_s = at_s;
    eviction->is_set = true;
    add_rule(eviction, source->rule, arena);
}

void dv_eviction_merge(struct dv_eviction *eviction, const struct dv_eviction *other,
                       struct dv_arena *arena)
{
    if (!other->is_set)
        return;
    if (!eviction->is_set || other->at_s < eviction->at_s)
        eviction->at_s = other->at_s;
    eviction->is_set = true;
    for (size_t i = 0; i < other->n_rules; i++)
        add_rule(eviction, other->rules[i], arena);
}

bool dv_eviction_eq(const struct dv_eviction *a, const struct dv_eviction *b)
{
    if (a->is_set != b->is_set || a->n_rules != b->n_rules || (a->is_set && a->at_s != b->at_s))
        return false;
    for (size_t i = 0; i < a->n_rules; i++)
        if (!dv_str_eq(a->rules[i], b->rules[i]))
            return false;
    return true;
}

/* ---- rules and devices ---- */

bool dv_taint_selects(const struct dv_api_device_taint_selector *selector, dv_str driver,
                      dv_str pool, dv_str device)
{
    return selector && (!selector->driver.p || dv_str_eq(selector->driver, driver)) &&
           (!selector->pool.p || dv_str_eq(selector->pool, pool)) &&
           (!selector->device.p || dv_str_eq(selector->device, device));
}

void dv_taint_words(dv_str driver, dv_str pool, dv_str device, struct dv_arena *arena,
                    dv_str words[DV_TAINT_WORDS])
{
    words[0] = DV_STR("all");
    words[1] = dv_str_printf(arena, "driver %.*s", DV_FMT(driver));
    words[2] = dv_str_printf(arena, "device %.*s", DV_FMT(device));
    words[3] = dv_str_printf(arena, "pool %.*s", DV_FMT(pool));
    words[4] = dv_str_printf(arena, "pool %.*s device %.*s", DV_FMT(pool), DV_FMT(device));
}

dv_str dv_taint_rule_word(const struct dv_api_device_taint_selector *selector,
                          struct dv_arena *arena)
{
    dv_str words[DV_TAINT_WORDS];

    if (!selector)
        return DV_STR_NONE;
    dv_taint_words(selector->driver, selector->pool, selector->device, arena, words);
    if (selector->pool.p)
        return words[selector->device.p ? 4 : 3];
    if (selector->device.p)
        return words[2];
    return words[selector->driver.p ? 1 : 0];
}
