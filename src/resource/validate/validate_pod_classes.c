/* validate_pod_classes.c - the classes that pods name: of priorities (a value, and whether pods of
 * the class may drive out others) and of runtimes. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/map.h"
#include "base/str.h"
#include "resource/prepare.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"
#include "resource/validate/validate_kinds.h"

/* -- Priorities ---------------------------------------------------------------------------- */

/* The largest value that is not the system's own. */
#define USER_VALUE_MAX 1000000000

static const dv_str policies[] = {
    DV_STR_INIT("Never"),
    DV_STR_INIT(DV_PREEMPT_LOWER_PRIORITY),
};

/* Checks a class whose name only the system's own classes may have. */
static void check_system(struct dv_problems *problems, const struct dv_api_priority_class *class)
{
    static const struct dv_field_path metadata = {.kind = PATH_NAME, .name = "metadata"};
    static const char reserved[] =
        "priority class names with 'system-' prefix are reserved for system use only. error: ";
    dv_str name = class->metadata.name;
    int64_t value;

    if (!dv_system_priority(name, &value))
        dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, &metadata, "name", dv_bad_none(),
                       "%s%.*s is not a known system priority class", reserved, DV_FMT(name));
    else if (class->value != value)
        dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, &metadata, "name", dv_bad_none(),
                       "%svalue of %.*s PriorityClass must be %lld", reserved, DV_FMT(name),
                       (long long)value);
    else if (class->global_default)
        dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, &metadata, "name", dv_bad_none(),
                       "%sglobalDefault of %.*s PriorityClass must be false", reserved,
                       DV_FMT(name));
}

void dv_validate_priority_class(struct dv_problems *problems, const struct dv_validation *what)
{
    static const struct dv_meta_rules rules = {dv_check_dns_subdomain, false};
    const struct dv_api_priority_class *class = what->value;
    const struct dv_api_priority_class *old = what->old;

    if (old) {
        dv_check_kind_meta_update(problems, &class->metadata, &old->metadata);
        if (class->value != old->value)
            dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, NULL, "value", dv_bad_none(),
                           "may not be changed in an update.");
        if (!dv_str_eq(class->preemption_policy, old->preemption_policy))
            dv_immutable(problems, NULL, "preemptionPolicy", dv_bad_str(class->preemption_policy));
        return;
    }
    dv_check_meta(problems, &class->metadata, &rules);
    if (dv_str_starts_with(class->metadata.name, DV_STR("system-")))
        check_system(problems, class);
    else if (class->value > USER_VALUE_MAX)
        dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, NULL, "value", dv_bad_none(),
                       "maximum allowed value of a user defined priority is %d", USER_VALUE_MAX);
    if (class->preemption_policy.p)
        dv_check_one_of(problems, NULL, "preemptionPolicy", class->preemption_policy, policies,
                        DV_COUNT(policies));
}

/* -- Runtimes ------------------------------------------------------------------------------ */

/* Two tolerations are the same when only their seconds differ. */
static void check_repeated(struct dv_problems *problems, const struct dv_field_path *path,
                           struct dv_api_toleration *tolerations, size_t n)
{
    DV_CLEANUP(dv_map_fini) struct dv_map known;
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();

    dv_map_init(&known);
    for (size_t i = 0; i < n; i++) {
        struct dv_api_toleration *toleration = &tolerations[i];
        struct dv_field_path item = dv_path_index(path, i);
        /* none of the four is valid with a line in it */
        dv_str key = dv_str_printf(scratch, "%.*s\n%.*s\n%.*s\n%.*s", DV_FMT(toleration->key),
                                   DV_FMT(toleration->operator), DV_FMT(toleration->value),
                                   DV_FMT(toleration->effect));

        if (dv_map_set(&known, key, toleration))
            dv_problem_add(problems, DV_PROBLEM_DUPLICATE, &item, NULL,
                           dv_bad_message(&dv_message_toleration, toleration, problems->arena),
                           "%s", "");
    }
}

static void check_scheduling(struct dv_problems *problems, const struct dv_api_scheduling *value)
{
    static const struct dv_field_path path = {.kind = PATH_NAME, .name = "scheduling"};
    struct dv_field_path tolerations = dv_path_name(&path, "tolerations");

    for (size_t i = 0; i < value->n_node_selector; i++) {
        dv_check_label_name(problems, &path, "nodeSelector", value->node_selector[i].key);
        dv_check_label_value(problems, &path, "nodeSelector", value->node_selector[i].value);
    }
    dv_check_tolerations(problems, &tolerations, value->tolerations, value->n_tolerations);
    check_repeated(problems, &tolerations, value->tolerations, value->n_tolerations);
}

/* What a pod costs beside its containers has the rules of what a container is limited to, and the
 * reference also names them so. */
static void check_overhead(struct dv_problems *problems, const struct dv_api_overhead *overhead)
{
    static const struct dv_field_path path = {.kind = PATH_NAME, .name = "overhead"};
    const struct dv_api_resource_requirements resources = {.limits = overhead->pod_fixed,
                                                           .n_limits = overhead->n_pod_fixed};

    dv_check_resources(problems, &path, &resources, NULL);
}

void dv_validate_runtime_class(struct dv_problems *problems, const struct dv_validation *what)
{
    static const struct dv_meta_rules rules = {dv_check_dns_subdomain, false};
    const struct dv_api_runtime_class *value = what->value;
    const struct dv_api_runtime_class *old = what->old;

    dv_check_meta(problems, &value->metadata, &rules);
    if (!old || dv_str_eq(value->handler, old->handler))
        dv_check_required(problems, NULL, "handler", value->handler, dv_check_dns_label);
    if (value->overhead)
        check_overhead(problems, value->overhead);
    if (value->scheduling)
        check_scheduling(problems, value->scheduling);
    if (!old)
        return;
    dv_check_kind_meta_update(problems, &value->metadata, &old->metadata);
    if (!dv_str_eq(value->handler, old->handler))
        dv_immutable(problems, NULL, "handler", dv_bad_str(value->handler));
}
