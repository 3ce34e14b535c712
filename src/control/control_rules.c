/* control_rules.c - DeviceTaintRules: which claims they concern, the taints that they add to
 * devices, and the counts that a rule tells in its status (rule_sync.c writes them). */
#include <stdbool.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "control/control_index.h"
#include "control/control_queue.h"
#include "control/controllers.h"
#include "control/evict.h"
#include "control/evictor.h"
#include "control/taint.h"
#include "resource/resource.h"

static const struct dv_api_device_taint_rule *value_of(const struct dv_rule *rule)
{
    return rule->object->value;
}

static void free_rule(struct dv_evictor *evictor, struct dv_rule *rule)
{
    (void)dv_map_remove(&evictor->rules, rule->name);
    (void)dv_map_remove(&evictor->rule_uids, rule->uid);
    dv_object_unref(rule->object);
    free(rule);
}

void dv_rules_fini(struct dv_evictor *evictor)
{
    const struct dv_map_entry *entry;
    size_t at = 0;

    while ((entry = dv_map_next(&evictor->rules, &at)) != NULL)
        free_rule(evictor, entry->value);
    dv_map_fini(&evictor->rules);
    dv_map_fini(&evictor->rule_uids);
}

/* ---- changes ---- */

static void index_rule(struct dv_evictor *evictor, dv_str name,
                       const struct dv_api_device_taint_rule *rule)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    dv_str word = DV_STR_NONE;

    if (rule && dv_taint_is_evicting(&rule->spec.taint))
        word = dv_taint_rule_word(rule->spec.device_selector, scratch);
    dv_index_set(&evictor->rules_by_word, name, &word, word.n > 0);
}

/* Has the claims judged again whose devices the rule may select. */
static void mark(struct dv_evictor *evictor, const struct dv_api_device_taint_rule *rule)
{
    if (dv_taint_is_evicting(&rule->spec.taint))
        dv_evictor_mark_claims(evictor, rule->spec.device_selector);
}

static void remove_rule(struct dv_evictor *evictor, struct dv_rule *rule)
{
    index_rule(evictor, rule->name, NULL);
    mark(evictor, value_of(rule));
    free_rule(evictor, rule);
}

/* Puts an object under its rule. The keys of the maps point into the object, so they are set anew
 * with every object. */
static void put_rule(struct dv_evictor *evictor, struct dv_rule *rule, struct dv_object *object)
{
    struct dv_object *old = rule->object;

    rule->object = dv_object_ref(object);
    rule->name = object->meta->name;
    rule->uid = object->meta->uid;
    /* Returns the rule itself, which was under the text of the old object. */
    (void)dv_map_set(&evictor->rules, rule->name, rule);
    (void)dv_map_set(&evictor->rule_uids, rule->uid, rule);
    dv_object_unref(old);
}

static void look(struct dv_evictor *evictor, const struct dv_rule *rule)
{
    dv_queue_add(&evictor->control->queues[DV_CONTROL_RULE_QUEUE], DV_STR_NONE, rule->name);
}

void dv_evictor_rule_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_evictor *evictor = ((struct dv_control *)ctx)->evictor;
    struct dv_rule *rule = dv_map_get(&evictor->rules, (now ? now : old)->meta->name);
    bool is_same;

    if (rule && (!now || !dv_str_eq(rule->uid, now->meta->uid))) {
        remove_rule(evictor, rule);
        rule = NULL;
    }
    if (!now)
        return;
    is_same = rule && dv_message_eq(&dv_message_device_taint_rule_spec, &value_of(rule)->spec,
                                    &((struct dv_api_device_taint_rule *)now->value)->spec);
    if (rule && !is_same)
        mark(evictor, value_of(rule)); /* marks the claims that it selected until now */
    if (!rule)
        rule = DV_ALLOC(struct dv_rule);
    put_rule(evictor, rule, now);
    if (is_same)
        return;
    index_rule(evictor, rule->name, value_of(rule));
    mark(evictor, value_of(rule));
    look(evictor, rule);
}

void dv_rules_look(struct dv_evictor *evictor, dv_str uid)
{
    const struct dv_rule *rule = dv_map_get(&evictor->rule_uids, uid);

    if (rule)
        look(evictor, rule);
}

void dv_rules_judged(struct dv_evictor *evictor)
{
    const struct dv_map_entry *entry;
    size_t at = 0;

    while ((entry = dv_map_next(&evictor->rules, &at)) != NULL) {
        struct dv_rule *rule = entry->value;

        if (rule->is_waiting)
            look(evictor, rule);
        rule->is_waiting = false;
    }
}

/* ---- taints ---- */

void dv_rules_apply(const struct dv_evictor *evictor,
                    const struct dv_api_device_request_allocation_result *result,
                    struct dv_arena *arena, struct dv_eviction *eviction)
{
    dv_str words[DV_TAINT_WORDS];

    if (evictor->rules.n == 0)
        return;
    dv_taint_words(result->driver, result->pool, result->device, arena, words);
    for (size_t i = 0; i < DV_TAINT_WORDS; i++) {
        const struct dv_list *refs = dv_index_find(&evictor->rules_by_word, words[i]);
        struct dv_link *link;

        if (!refs)
            continue;
        DV_LIST_EACH (refs, link) {
            const struct dv_rule *rule = dv_map_get(&evictor->rules, dv_index_thing(link));
            const struct dv_api_device_taint_rule_spec *spec = &value_of(rule)->spec;
            const struct dv_taint_source source = {.taint = &spec->taint,
                                                   .since = rule->object->meta->creation_timestamp,
                                                   .rule = rule->uid};

            if (dv_taint_selects(spec->device_selector, result->driver, result->pool,
                                 result->device))
                dv_taint_apply(result, &source, arena, eviction);
        }
    }
}

/* ---- counting ---- */

struct tally {
    struct dv_map pods;
    struct dv_map namespaces;
};

/* Counts a pod once. The key must live as long as the tally. */
static void add_pod(struct tally *tally, dv_str key)
{
    static char here;
    dv_str namespace;
    dv_str name;

    dv_control_split(key, &namespace, &name);
    (void)dv_map_set(&tally->pods, key, &here); /* a pod that is counted again stays one */
    (void)dv_map_set(&tally->namespaces, namespace, &here);
}

static void count_doomed(const struct dv_evictor *evictor, const struct dv_rule *rule,
                         struct tally *tally)
{
    const struct dv_list *refs = dv_index_find(&evictor->doomed_by_rule, rule->uid);
    struct dv_link *link;

    if (!refs)
        return;
    DV_LIST_EACH (refs, link)
        add_pod(tally, dv_index_thing(link));
}

static void count_users(const struct dv_evictor *evictor, const struct dv_used_claim *used,
                        struct dv_arena *arena, struct tally *tally)
{
    const struct dv_list *refs = dv_index_find(
        &evictor->control->pods, dv_str_printf(arena, "claim %.*s", DV_FMT(used->key)));
    struct dv_link *link;

    if (!refs)
        return;
    DV_LIST_EACH (refs, link) {
        dv_str key = dv_index_thing(link);
        const struct dv_api_pod *pod;
        dv_str namespace;
        dv_str name;

        dv_control_split(key, &namespace, &name);
        pod = dv_control_get_pod(evictor->control, namespace, name);
        if (pod && dv_evictor_is_user(pod, used))
            add_pod(tally, key);
    }
}

/* Counts what a rule with the effect None would do: judges all claims as if its effect was
 * NoExecute and there were no other taints. */
struct simulation {
    const struct dv_evictor *evictor;
    const struct dv_rule *rule;
    struct dv_arena *arena;
    struct dv_rule_counts *counts;
    struct tally *tally;
};

static void simulate(void *ctx, struct dv_used_claim *used)
{
    const struct simulation *simulation = ctx;
    const struct dv_api_device_taint_rule_spec *spec = &value_of(simulation->rule)->spec;
    const struct dv_api_resource_claim *claim = dv_used_claim_value(used);
    const struct dv_api_device_allocation_result *devices = &claim->status.allocation->devices;
    struct dv_api_device_taint taint = spec->taint;
    const struct dv_taint_source source = {.taint = &taint};
    struct dv_eviction eviction = {0};

    taint.effect = DV_STR("NoExecute");
    for (size_t i = 0; i < devices->n_results; i++) {
        const struct dv_api_device_request_allocation_result *result = &devices->results[i];

        if (!dv_taint_selects(spec->device_selector, result->driver, result->pool, result->device))
            continue;
        simulation->counts->n_allocated++;
        dv_taint_apply(result, &source, simulation->arena, &eviction);
    }
    if (eviction.is_set)
        count_users(simulation->evictor, used, simulation->arena, simulation->tally);
}

static void count_simulated(const struct dv_evictor *evictor, const struct dv_rule *rule,
                            struct dv_arena *arena, struct dv_rule_counts *counts,
                            struct tally *tally)
{
    const struct dv_api_device_taint_selector *selector = value_of(rule)->spec.device_selector;
    struct simulation simulation = {evictor, rule, arena, counts, tally};

    counts->n_published = dv_pools_count(evictor, selector);
    dv_evictor_each_claim(evictor, selector, simulate, &simulation);
}

void dv_rules_count(const struct dv_evictor *evictor, const struct dv_rule *rule,
                    struct dv_arena *arena, struct dv_rule_counts *counts)
{
    const struct dv_api_device_taint *taint = &value_of(rule)->spec.taint;
    struct tally tally;

    *counts = (struct dv_rule_counts){.n_evicted = rule->n_evicted};
    dv_map_init(&tally.pods);
    dv_map_init(&tally.namespaces);
    if (dv_taint_is_evicting(taint))
        count_doomed(evictor, rule, &tally);
    else if (dv_str_eq(taint->effect, DV_STR("None")))
        count_simulated(evictor, rule, arena, counts, &tally);
    counts->n_pods = tally.pods.n;
    counts->n_namespaces = tally.namespaces.n;
    dv_map_fini(&tally.pods);
    dv_map_fini(&tally.namespaces);
}
