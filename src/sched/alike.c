/* alike.c - tells whether two pods are alike. All that decides where a pod fits is written as
 * bytes, the key of its crowd (crowd.c): pods with equal keys can stand in for one another. What
 * the key leaves out (name, labels, image) no filter looks at; what it has too much of only makes
 * crowds smaller. */
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/resource.h"
#include "sched/crowd.h"
#include "sched/fit.h"
#include "sched/sched_state.h"

/* Writes the length of a part behind it. Without the lengths, "ab" + "c" and "a" + "bc" would be
 * the same key, and two pods that differ would be taken for alike. */
static void end_part(struct dv_buf *key, size_t begin)
{
    uint32_t n = (uint32_t)(key->n - begin);

    dv_buf_add(key, (dv_str){(const char *)&n, sizeof(n)});
}

static void add_text(struct dv_buf *key, dv_str text)
{
    size_t begin = key->n;

    dv_buf_add(key, text);
    end_part(key, begin);
}

static void add_message(struct dv_buf *key, const struct dv_message *message, const void *value)
{
    size_t begin = key->n;

    if (value)
        dv_encode_pb(message, value, key);
    end_part(key, begin);
}

static void add_node_selection(struct dv_buf *key, const struct dv_api_pod_spec *pod)
{
    const struct dv_api_node_affinity *affinity =
        pod->affinity ? pod->affinity->node_affinity : NULL;

    add_text(key, pod->node_name);
    for (size_t i = 0; i < pod->n_node_selector; i++) {
        add_text(key, pod->node_selector[i].key);
        add_text(key, pod->node_selector[i].value);
    }
    add_message(key, &dv_message_node_selector,
                affinity ? affinity->required_during_scheduling_ignored_during_execution : NULL);
    for (size_t i = 0; i < pod->n_tolerations; i++)
        add_message(key, &dv_message_toleration, &pod->tolerations[i]);
    add_text(key, DV_STR_NONE);
}

static void add_amounts(struct dv_buf *key, const struct dv_sched_amounts *amounts)
{
    size_t begin = key->n;

    for (size_t i = 0; i < amounts->all.n; i++) {
        dv_buf_add(key, (dv_str){(const char *)&amounts->all.v[i].resource,
                                 sizeof(amounts->all.v[i].resource)});
        dv_buf_add(key, (dv_str){(const char *)&amounts->all.v[i].n, sizeof(amounts->all.v[i].n)});
    }
    end_part(key, begin);
}

static void add_claim(struct dv_buf *key, const struct dv_sched *sched,
                      const struct dv_api_resource_claim *claim)
{
    struct dv_err err;

    /* Two claims that are not allocated are alike when they ask for the same. An allocated one
     * stands for itself alone: it says by its node selector where the pod can be, and whether its
     * devices failed. */
    if (!claim->status.allocation) {
        add_message(key, &dv_message_resource_claim_spec, &claim->spec);
        return;
    }
    add_text(key, claim->metadata.uid);
    add_message(key, &dv_message_node_selector, claim->status.allocation->node_selector);
    dv_buf_add_char(key, dv_sched_conditions_failed(sched, claim, &err) ? 'f' : 'a');
}

/* Which requests a pod makes for extended resources depends on the container that asks and on
 * whether it is restarted, so that the sum in the amounts is not enough here. */
static void add_containers(struct dv_buf *key, const struct dv_api_container *containers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        add_text(key, containers[i].restart_policy);
        add_message(key, &dv_message_resource_requirements, &containers[i].resources);
    }
    add_text(key, DV_STR_NONE);
}

dv_str dv_sched_crowd_key(struct dv_sched *sched, const struct dv_sched_pod *pod)
{
    const struct dv_api_pod_spec *spec = &dv_sched_pod_value(pod)->spec;
    struct dv_buf *key = &sched->crowd_key;

    dv_buf_clear(key);
    dv_buf_add_char(key, pod->is_preset ? 'p' : 's');
    add_node_selection(key, spec);
    add_amounts(key, &sched->amounts);
    for (size_t i = 0; i < pod->n_claims; i++)
        add_claim(key, sched, dv_sched_claim_value(pod->claims[i].claim));
    if (pod->is_extended) {
        add_containers(key, spec->init_containers, spec->n_init_containers);
        add_containers(key, spec->containers, spec->n_containers);
    }
    return dv_buf_str(key);
}
