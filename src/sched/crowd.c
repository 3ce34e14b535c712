/* crowd.c - crowds: pods that are alike. What was found out about a node for one of them is
 * remembered for all, until the node, or what they ask for, may have become better. So thousands of
 * pods of one template that do not fit cost one look at each node, and not one look for each pod. A
 * pod that fits nowhere waits in its crowd; an event that may help wakes one of them, and its
 * success wakes the next. */
#include "sched/crowd.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "affinity/affinity.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "sched/fit.h"
#include "sched/sched_state.h"

/* How many crowds without pods are kept: the next pod of a template is often like the last, and
 * then nothing has to be found out again. */
#define N_IDLE_MAX 64u
/* The ceiling of what all crowds remember. Past it nothing more is remembered, and nodes are looked
 * at each time: slower, and as right. */
#define MEMO_BYTES_MAX ((size_t)64 * 1024 * 1024)
#define N_REASONS_MAX UINT16_MAX
/* How many waiting pods are looked at to find one whose back-off is over. They are alike, so any of
 * them will do, and a crowd may have thousands. */
#define N_LOOK_MAX 32u

static dv_str keep(dv_str text)
{
    char *copy = dv_alloc(text.n + 1);

    if (text.n > 0)
        memcpy(copy, text.p, text.n);
    return (dv_str){copy, text.n};
}

static void drop(dv_str text)
{
    free((void *)(uintptr_t)text.p); /* made by keep, which returns it as const */
}

/* ---- life ---- */

static struct dv_sched_crowd *new_crowd(struct dv_sched *sched, dv_str key)
{
    struct dv_sched_crowd *crowd = DV_ALLOC(struct dv_sched_crowd);

    crowd->key = keep(key);
    dv_list_init(&crowd->waiting);
    dv_map_init(&crowd->reasons);
    dv_map_init(&crowd->classes);
    dv_map_set(&sched->crowds, crowd->key, crowd);
    return crowd;
}

static void free_crowd(struct dv_sched *sched, struct dv_sched_crowd *crowd)
{
    const struct dv_map_entry *entry;

    dv_map_remove(&sched->crowds, crowd->key);
    dv_link_remove(&crowd->link);
    dv_link_remove(&crowd->waits);
    sched->memo_bytes -= crowd->n_memos * sizeof(crowd->memos[0]);
    free(crowd->memos);
    if (crowd->wants)
        sched->n_wanting--;
    dv_affinity_wants_free(sched->affinity, crowd->wants);
    free(crowd->miss);
    free(crowd->vain);
    free(crowd->lack);
    for (size_t i = 0; i < crowd->all.n; i++)
        free(crowd->all.v[i]);
    dv_vec_fini(&crowd->all);
    dv_map_fini(&crowd->reasons);
    for (size_t at = 0; (entry = dv_map_next(&crowd->classes, &at));)
        drop(entry->key);
    dv_map_fini(&crowd->classes);
    dv_vec_fini(&crowd->resources);
    drop(crowd->key);
    free(crowd);
}

static void add_class(struct dv_sched_crowd *crowd, dv_str name)
{
    dv_str kept;

    if (dv_map_get(&crowd->classes, name))
        return;
    kept = keep(name);
    dv_map_set(&crowd->classes, kept, (void *)(uintptr_t)kept.p);
}

static void add_classes(struct dv_sched_crowd *crowd, const struct dv_api_device_claim *devices)
{
    for (size_t i = 0; i < devices->n_requests; i++) {
        const struct dv_api_device_request *request = &devices->requests[i];

        if (request->exactly)
            add_class(crowd, request->exactly->device_class_name);
        for (size_t j = 0; j < request->n_first_available; j++)
            add_class(crowd, request->first_available[j].device_class_name);
    }
}

/* Notes what beside nodes can help a pod of the crowd: the classes that its requests name, and the
 * resources that a class may come to serve. sched->amounts are the pod's. */
static void set_needs(struct dv_sched *sched, struct dv_sched_crowd *crowd,
                      const struct dv_sched_pod *pod)
{
    for (size_t i = 0; i < pod->n_claims; i++) {
        const struct dv_api_resource_claim *claim = dv_sched_claim_value(pod->claims[i].claim);

        if (!claim || claim->status.allocation)
            continue;
        crowd->has_requests = true;
        add_classes(crowd, &claim->spec.devices);
    }
    for (size_t i = 0; i < sched->amounts.all.n; i++)
        if (sched->amounts.all.v[i].resource >= DV_SCHED_N_FIXED_RESOURCES)
            *dv_vec_add(&crowd->resources) = sched->amounts.all.v[i].resource;
    crowd->has_requests |= pod->is_extended;
}

struct dv_sched_crowd *dv_sched_crowd_join(struct dv_sched *sched, struct dv_sched_pod *pod,
                                           dv_str key)
{
    struct dv_sched_crowd *crowd = dv_map_get(&sched->crowds, key);

    if (crowd && crowd == pod->crowd)
        return crowd;
    dv_sched_crowd_leave(sched, pod);
    /* Looked up again, because leaving the old crowd may have freed this idle one. */
    crowd = dv_map_get(&sched->crowds, key);
    if (!crowd) {
        crowd = new_crowd(sched, key);
        set_needs(sched, crowd, pod);
        if (pod->is_related) {
            crowd->wants = dv_affinity_wants_new(sched->affinity, dv_sched_pod_value(pod));
            sched->n_wanting++;
        }
    }
    if (dv_link_is_in(&crowd->link)) {
        dv_link_remove(&crowd->link);
        sched->n_idle--;
    }
    crowd->n_pods++;
    pod->crowd = crowd;
    return crowd;
}

void dv_sched_crowd_leave(struct dv_sched *sched, struct dv_sched_pod *pod)
{
    struct dv_sched_crowd *crowd = pod->crowd;

    if (!crowd)
        return;
    pod->crowd = NULL;
    if (crowd->searcher == pod) {
        crowd->searcher = NULL;
        /* The pod searched at growing cost for all that are alike: another one has to take that
         * over. */
        pod->is_woken = true;
    }
    /* A pod that waits for a class is in the list of that class, by the same link. */
    if (!pod->class_wait)
        dv_link_remove(&pod->waits);
    if (dv_list_is_empty(&crowd->waiting))
        dv_link_remove(&crowd->waits);
    if (pod->is_woken) /* what woke the pod may help another one */
        dv_sched_crowd_wake(sched, crowd);
    pod->is_woken = false;
    if (--crowd->n_pods > 0)
        return;
    dv_list_push(&sched->idle, &crowd->link);
    if (++sched->n_idle > N_IDLE_MAX) {
        sched->n_idle--;
        free_crowd(sched, DV_CONTAINER(dv_list_first(&sched->idle), struct dv_sched_crowd, link));
    }
}

void dv_sched_crowds_free(struct dv_sched *sched)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&sched->crowds, &at));)
        free_crowd(sched, entry->value);
    dv_map_fini(&sched->crowds);
}

/* ---- waiting ---- */

void dv_sched_crowd_wait(struct dv_sched *sched, struct dv_sched_pod *pod)
{
    struct dv_sched_crowd *crowd = pod->crowd;

    if (pod->is_woken) /* it was at the head of the list when it was woken, and keeps its place */
        dv_list_push_front(&crowd->waiting, &pod->waits);
    else
        dv_list_push(&crowd->waiting, &pod->waits);
    if (!dv_link_is_in(&crowd->waits))
        dv_list_push(&sched->crowds_waiting, &crowd->waits);
}

/* The first pod whose back-off is over, or else the first of all: it is queued when its back-off
 * ends. */
static struct dv_sched_pod *choose(const struct dv_sched *sched, const struct dv_sched_crowd *crowd)
{
    uint64_t now = dv_loop_now_ms(sched->loop);
    struct dv_link *link;
    size_t n = 0;

    DV_LIST_EACH (&crowd->waiting, link) {
        struct dv_sched_pod *pod = DV_CONTAINER(link, struct dv_sched_pod, waits);

        if (pod->backoff_until_ms <= now)
            return pod;
        if (++n == N_LOOK_MAX)
            break;
    }
    return DV_CONTAINER(dv_list_first(&crowd->waiting), struct dv_sched_pod, waits);
}

void dv_sched_crowd_wake(struct dv_sched *sched, struct dv_sched_crowd *crowd)
{
    struct dv_sched_pod *pod;

    if (dv_list_is_empty(&crowd->waiting))
        return;
    pod = choose(sched, crowd);
    pod->is_woken = true;
    dv_sched_queue(pod);
}

/* ---- what is remembered ---- */

void dv_sched_crowd_improved(struct dv_sched *sched, struct dv_sched_crowd *crowd)
{
    crowd->improved = ++sched->tick;
    if (sched->n_unsynced == 0)
        dv_sched_crowd_wake(sched, crowd);
}

void dv_sched_requests_improved(struct dv_sched *sched)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&sched->crowds, &at));) {
        struct dv_sched_crowd *crowd = entry->value;

        if (crowd->has_requests)
            dv_sched_crowd_improved(sched, crowd);
    }
}

struct dv_sched_crowd_reason *dv_sched_crowd_reason(struct dv_sched_crowd *crowd, dv_str text)
{
    struct dv_sched_crowd_reason *reason = dv_map_get(&crowd->reasons, text);
    char *copy;

    if (reason)
        return reason;
    reason = dv_alloc(sizeof(*reason) + text.n);
    copy = (char *)(reason + 1);
    if (text.n > 0)
        memcpy(copy, text.p, text.n);
    reason->text = (dv_str){copy, text.n};
    reason->number = crowd->all.n;
    *dv_vec_add(&crowd->all) = reason;
    dv_map_set(&crowd->reasons, reason->text, reason);
    return reason;
}

struct dv_sched_crowd_reason *dv_sched_crowd_recall(const struct dv_sched *sched,
                                                    const struct dv_sched_crowd *crowd,
                                                    const struct dv_sched_node *node)
{
    struct dv_sched_memo memo;

    (void)sched;
    if (node->place >= crowd->n_memos)
        return NULL;
    memo = crowd->memos[node->place];
    /* A memo is true as long as nothing got better since: neither this node, nor the crowd's own
     * needs (a class, a pool for many nodes). What gets worse cannot make a node fit. */
    if (memo.at == 0 || memo.at < node->improved || memo.at < crowd->improved)
        return NULL;
    return crowd->all.v[memo.reason];
}

void dv_sched_crowd_remember(struct dv_sched *sched, struct dv_sched_crowd *crowd,
                             const struct dv_sched_node *node,
                             const struct dv_sched_crowd_reason *reason)
{
    size_t n = sched->nodes.n;

    if (reason->number > N_REASONS_MAX)
        return;
    if (node->place >= crowd->n_memos) {
        size_t more = (n - crowd->n_memos) * sizeof(crowd->memos[0]);

        if (sched->memo_bytes + more > MEMO_BYTES_MAX)
            return;
        sched->memo_bytes += more;
        crowd->memos = dv_realloc(crowd->memos, n * sizeof(crowd->memos[0]));
        memset(&crowd->memos[crowd->n_memos], 0, more);
        crowd->n_memos = n;
    }
    crowd->memos[node->place] = (struct dv_sched_memo){
        .at = sched->tick & ((UINT64_C(1) << 48) - 1), .reason = reason->number & 0xffff};
}

/* ---- who is alike ---- */

/* All that decides where a pod fits is written as bytes, the key of its crowd: pods with equal keys
 * can stand in for one another. What the key leaves out (name, image, labels that no term means) no
 * filter looks at; what it has too much of only makes crowds smaller. */

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

/* What the pod wants of others, and what others may look for in it. */
static void add_relations(struct dv_buf *key, const struct dv_api_pod *pod)
{
    const struct dv_api_affinity *affinity = pod->spec.affinity;

    add_text(key, pod->metadata.namespace);
    for (size_t i = 0; i < pod->metadata.n_labels; i++) {
        add_text(key, pod->metadata.labels[i].key);
        add_text(key, pod->metadata.labels[i].value);
    }
    add_message(key, &dv_message_pod_affinity, affinity ? affinity->pod_affinity : NULL);
    add_message(key, &dv_message_pod_anti_affinity, affinity ? affinity->pod_anti_affinity : NULL);
    for (size_t i = 0; i < pod->spec.n_topology_spread_constraints; i++)
        add_message(key, &dv_message_topology_spread_constraint,
                    &pod->spec.topology_spread_constraints[i]);
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
    for (size_t i = 0; i < amounts->ports.all.n; i++) {
        const struct dv_sched_port *port = &amounts->ports.all.v[i];

        add_text(key, dv_str_from_c(port->ip));
        dv_buf_printf(key, "%c%lld", port->protocol, (long long)port->number);
    }
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
    if (pod->is_related)
        add_relations(key, dv_sched_pod_value(pod));
    return dv_buf_str(key);
}
