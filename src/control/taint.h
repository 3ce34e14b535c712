/* taint.h - when taints put a claim's devices out of use, and what a rule says of it. Pure. */
#ifndef DV_CONTROL_TAINT_H
#define DV_CONTROL_TAINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "resource/resource.h"

struct dv_api_condition;
struct dv_api_device_request_allocation_result;
struct dv_api_device_taint;
struct dv_api_device_taint_rule;
struct dv_api_device_taint_selector;
struct dv_arena;
struct dv_json;

/* When a claim, or a pod, has to go, and which rules say so. */
struct dv_eviction {
    bool is_set;
    int64_t at_s;  /* since 1970 */
    dv_str *rules; /* uids, each once; taints of slices have none */
    size_t n_rules;
};

/* A taint, of a slice or by a rule. */
struct dv_taint_source {
    const struct dv_api_device_taint *taint;
    struct dv_time since; /* for a taint that says no time: when it was made */
    dv_str rule;          /* uid; empty: of a slice */
};

/* Adds to *eviction what the taint does to a device that is in use. Only the effect NoExecute does
 * something. Copies nothing; the list grows in `arena`. */
void dv_taint_apply(const struct dv_api_device_request_allocation_result *result,
                    const struct dv_taint_source *source, struct dv_arena *arena,
                    struct dv_eviction *eviction);
/* The earlier of both, for the reasons of both. */
void dv_eviction_merge(struct dv_eviction *eviction, const struct dv_eviction *other,
                       struct dv_arena *arena);
bool dv_eviction_eq(const struct dv_eviction *a, const struct dv_eviction *b);

bool dv_taint_is_evicting(const struct dv_api_device_taint *taint);
/* All criteria that are there must match; no selector at all selects nothing. */
bool dv_taint_selects(const struct dv_api_device_taint_selector *selector, dv_str driver,
                      dv_str pool, dv_str device);

/* ---- finding: the one word of a rule is among those of what it selects ---- */

#define DV_TAINT_WORDS 5u
void dv_taint_words(dv_str driver, dv_str pool, dv_str device, struct dv_arena *arena,
                    dv_str words[DV_TAINT_WORDS]);
/* Empty: it selects nothing. */
dv_str dv_taint_rule_word(const struct dv_api_device_taint_selector *selector,
                          struct dv_arena *arena);

/* ---- a rule's status ---- */

struct dv_rule_counts {
    size_t n_pods;       /* that are to be evicted, or would be */
    size_t n_namespaces; /* that these are in */
    size_t n_evicted;    /* since we began */
    size_t n_published;  /* devices; for the effect None, as the next */
    size_t n_allocated;
};

/* Whether the rule's condition is of this generation, and needs no change any more. */
bool dv_rule_is_settled(const struct dv_api_device_taint_rule *rule);
/* The condition that the rule is to have; `now` is its time. In `arena`. */
void dv_rule_condition(const struct dv_api_device_taint_rule *rule,
                       const struct dv_rule_counts *counts, struct dv_time now,
                       struct dv_arena *arena, struct dv_api_condition *condition);
/* Whether the rule has it already, but for the time. */
bool dv_rule_has_condition(const struct dv_api_device_taint_rule *rule,
                           const struct dv_api_condition *condition);
/* The rule's condition as it is; NULL: it has none. */
const struct dv_api_condition *dv_rule_find_condition(const struct dv_api_device_taint_rule *rule);
/* As an apply patch for the rule's status. */
struct dv_json *dv_rule_status(const struct dv_api_device_taint_rule *rule,
                               const struct dv_api_condition *condition, dv_str api_version,
                               struct dv_arena *arena);

#endif
