/* daemon_nodes.c - on which nodes a DaemonSet has pods, and what binds a pod to its node. Room,
 * ports and devices are not looked at: they are the scheduler's, which has only that node for it.
 */
#include <string.h>

#include "apps/plan/daemon_set.h"
#include "base/arena.h"
#include "base/defs.h"
#include "base/str.h"
#include "resource/resource.h"
#include "resource/select.h"

#define EXISTS DV_STR_INIT("Exists")
#define NO_SCHEDULE DV_STR_INIT("NoSchedule")
#define NO_EXECUTE DV_STR_INIT("NoExecute")
#define NODE_KEY(word) DV_STR_INIT("node.kubernetes.io/" word)
#define NAME_FIELD DV_STR("metadata.name")

/* What befalls nodes: a pod that belongs to the node stays on it. The last one is for pods on the
 * network of the node alone. */
static const struct dv_api_toleration tolerated[] = {
    {.key = NODE_KEY("not-ready"),           .operator= EXISTS, .effect = NO_EXECUTE },
    {.key = NODE_KEY("unreachable"),         .operator= EXISTS, .effect = NO_EXECUTE },
    {.key = NODE_KEY("disk-pressure"),       .operator= EXISTS, .effect = NO_SCHEDULE},
    {.key = NODE_KEY("memory-pressure"),     .operator= EXISTS, .effect = NO_SCHEDULE},
    {.key = NODE_KEY("pid-pressure"),        .operator= EXISTS, .effect = NO_SCHEDULE},
    {.key = NODE_KEY("unschedulable"),       .operator= EXISTS, .effect = NO_SCHEDULE},
    {.key = NODE_KEY("network-unavailable"), .operator= EXISTS, .effect = NO_SCHEDULE},
};

static bool is_same(const struct dv_api_toleration *a, const struct dv_api_toleration *b)
{
    return dv_str_eq(a->key, b->key) && dv_str_eq(a->effect, b->effect) &&
           dv_str_eq(a->operator, b->operator) && dv_str_eq(a->value, b->value);
}

/* Sets a toleration; one that the template has for the same taint gives way. */
static void tolerate(struct dv_api_pod_spec *spec, const struct dv_api_toleration *toleration)
{
    for (size_t i = 0; i < spec->n_tolerations; i++)
        if (is_same(&spec->tolerations[i], toleration)) {
            spec->tolerations[i] = *toleration;
            return;
        }
    spec->tolerations[spec->n_tolerations++] = *toleration;
}

static void add_tolerations(struct dv_api_pod_spec *spec, struct dv_arena *arena)
{
    size_t n = spec->host_network ? DV_COUNT(tolerated) : DV_COUNT(tolerated) - 1;
    struct dv_api_toleration *all =
        DV_NEW_ARRAY(arena, struct dv_api_toleration, spec->n_tolerations + n);

    if (spec->n_tolerations > 0)
        memcpy(all, spec->tolerations, spec->n_tolerations * sizeof(all[0]));
    spec->tolerations = all;
    for (size_t i = 0; i < n; i++)
        tolerate(spec, &tolerated[i]);
}

/* Replaces what the template requires of nodes by the one node; what it prefers stays. */
static void bind_to(struct dv_api_pod_spec *spec, dv_str node, struct dv_arena *arena)
{
    struct dv_api_affinity *affinity = DV_NEW(arena, struct dv_api_affinity);
    struct dv_api_node_affinity *nodes = DV_NEW(arena, struct dv_api_node_affinity);
    struct dv_api_node_selector *selector = DV_NEW(arena, struct dv_api_node_selector);
    struct dv_api_node_selector_term *term = DV_NEW(arena, struct dv_api_node_selector_term);
    struct dv_api_node_selector_requirement *field =
        DV_NEW(arena, struct dv_api_node_selector_requirement);
    dv_str *names = DV_NEW(arena, dv_str);

    if (spec->affinity)
        *affinity = *spec->affinity;
    if (affinity->node_affinity)
        *nodes = *affinity->node_affinity;
    *names = node;
    *field = (struct dv_api_node_selector_requirement){
        .key = NAME_FIELD, .operator= DV_STR("In"), .values = names, .n_values = 1};
    *term = (struct dv_api_node_selector_term){.match_fields = field, .n_match_fields = 1};
    *selector =
        (struct dv_api_node_selector){.node_selector_terms = term, .n_node_selector_terms = 1};
    nodes->required_during_scheduling_ignored_during_execution = selector;
    affinity->node_affinity = nodes;
    spec->affinity = affinity;
}

struct dv_api_pod_spec *dv_daemon_pod_spec(const struct dv_api_daemon_set *set, dv_str node,
                                           struct dv_arena *arena)
{
    struct dv_api_pod_spec *spec = DV_NEW(arena, struct dv_api_pod_spec);

    *spec = set->spec.template.spec;
    add_tolerations(spec, arena);
    if (node.n > 0)
        bind_to(spec, node, arena);
    return spec;
}

static const struct dv_api_node_selector *required_of(const struct dv_api_pod_spec *spec)
{
    const struct dv_api_node_affinity *affinity =
        spec->affinity ? spec->affinity->node_affinity : NULL;

    return affinity ? affinity->required_during_scheduling_ignored_during_execution : NULL;
}

static bool has_labels(const struct dv_api_pod_spec *spec, const struct dv_api_node *node)
{
    for (size_t i = 0; i < spec->n_node_selector; i++) {
        const struct dv_str_entry *label = dv_entry_find(
            node->metadata.labels, node->metadata.n_labels, spec->node_selector[i].key);

        if (!label || !dv_str_eq(label->value, spec->node_selector[i].value))
            return false;
    }
    return true;
}

static bool tolerates(const struct dv_api_pod_spec *spec, const struct dv_api_taint *taint)
{
    for (size_t i = 0; i < spec->n_tolerations; i++)
        if (dv_toleration_matches(&spec->tolerations[i], taint))
            return true;
    return false;
}

struct dv_daemon_verdict dv_daemon_judge(const struct dv_api_daemon_set *set,
                                         const struct dv_api_pod_spec *spec,
                                         const struct dv_api_node *node)
{
    const struct dv_api_node_selector *required = required_of(spec);
    dv_str preset = set->spec.template.spec.node_name;
    struct dv_daemon_verdict verdict = {true, true};

    if ((preset.n > 0 && !dv_str_eq(preset, node->metadata.name)) || !has_labels(spec, node) ||
        (required && !dv_node_selector_matches(required, node->metadata.name, node->metadata.labels,
                                               node->metadata.n_labels)))
        return (struct dv_daemon_verdict){false, false};
    for (size_t i = 0; i < node->spec.n_taints; i++) {
        const struct dv_api_taint *taint = &node->spec.taints[i];
        bool drives_out = dv_str_eq(taint->effect, DV_STR("NoExecute"));

        if ((!drives_out && !dv_str_eq(taint->effect, DV_STR("NoSchedule"))) ||
            tolerates(spec, taint))
            continue;
        verdict.shall_run = false;
        verdict.may_stay = verdict.may_stay && !drives_out;
    }
    return verdict;
}

dv_str dv_daemon_node_of(const struct dv_api_pod *pod)
{
    const struct dv_api_node_selector *required = required_of(&pod->spec);

    if (pod->spec.node_name.n > 0)
        return pod->spec.node_name;
    for (size_t i = 0; required && i < required->n_node_selector_terms; i++) {
        const struct dv_api_node_selector_term *term = &required->node_selector_terms[i];

        for (size_t j = 0; j < term->n_match_fields; j++)
            if (dv_str_eq(term->match_fields[j].key, NAME_FIELD) &&
                dv_str_eq(term->match_fields[j].operator, DV_STR("In")) &&
                term->match_fields[j].n_values == 1)
                return term->match_fields[j].values[0];
    }
    return DV_STR_NONE;
}
