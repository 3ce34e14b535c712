/* prepare_priority.c - the priority that a pod has from its class, as the reference's admission
 * plugin Priority gives it. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/str.h"
#include "resource/prepare.h"
#include "resource/resource.h"

static const struct {
    dv_str name;
    int64_t value;
} system_classes[] = {
    {DV_STR_INIT("system-node-critical"),    2000001000},
    {DV_STR_INIT("system-cluster-critical"), 2000000000},
};

bool dv_system_priority(dv_str name, int64_t *value)
{
    for (size_t i = 0; i < DV_COUNT(system_classes); i++)
        if (dv_str_eq(name, system_classes[i].name)) {
            *value = system_classes[i].value;
            return true;
        }
    return false;
}

const char *dv_pod_add_priority(struct dv_api_pod *pod, const struct dv_api_priority_class *class,
                                struct dv_arena *arena)
{
    struct dv_api_pod_spec *spec = &pod->spec;
    dv_str policy = class && class->preemption_policy.p ? class->preemption_policy
                                                        : DV_STR(DV_PREEMPT_LOWER_PRIORITY);
    int64_t *value = DV_NEW(arena, int64_t);

    *value = class ? class->value : 0;
    if (class && spec->priority_class_name.n == 0)
        spec->priority_class_name = class->metadata.name;
    if (spec->priority && *spec->priority != *value)
        return dv_str_printf(arena,
                             "the integer value of priority (%lld) must not be provided in pod "
                             "spec; priority admission controller computed %lld from the given "
                             "PriorityClass name",
                             (long long)*spec->priority, (long long)*value)
            .p;
    if (spec->preemption_policy.p && !dv_str_eq(spec->preemption_policy, policy))
        return dv_str_printf(arena,
                             "the string value of PreemptionPolicy (%.*s) must not be provided in "
                             "pod spec; priority admission controller computed %.*s from the given "
                             "PriorityClass name",
                             DV_FMT(spec->preemption_policy), DV_FMT(policy))
            .p;
    spec->priority = value;
    spec->preemption_policy = policy;
    return NULL;
}
