/* control_views.c - decides which keys a change that a view tells puts into which queue. Indexes of
 * pods by the claims and templates that they name, and of claims by the pods that they are for,
 * find what a change concerns without walking all objects. */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/str.h"
#include "control/control.h"
#include "control/control_index.h"
#include "control/control_queue.h"
#include "control/controllers.h"
#include "control/evict.h"
#include "control/uses.h"
#include "resource/resource.h"

static dv_str claim_word(dv_str namespace, dv_str name, struct dv_arena *arena)
{
    const dv_str parts[] = {DV_STR("claim "), namespace, DV_STR("/"), name};

    return dv_str_concat(parts, DV_COUNT(parts), arena);
}

static dv_str template_word(dv_str namespace, dv_str name, struct dv_arena *arena)
{
    const dv_str parts[] = {DV_STR("template "), namespace, DV_STR("/"), name};

    return dv_str_concat(parts, DV_COUNT(parts), arena);
}

/* The word of a claim that was generated for this entry of a pod's list. */
static dv_str generated_word(dv_str pod_uid, dv_str entry, struct dv_arena *arena)
{
    const dv_str parts[] = {DV_STR("generated "), pod_uid, DV_STR("/"), entry};

    return dv_str_concat(parts, DV_COUNT(parts), arena);
}

static dv_str key_of(const struct dv_api_object_meta *meta, struct dv_arena *arena)
{
    const dv_str parts[] = {meta->namespace, DV_STR("/"), meta->name};

    return dv_str_concat(parts, DV_COUNT(parts), arena);
}

/* ---- looking up ---- */

static const struct dv_api_resource_claim *find_claim(void *ctx, dv_str namespace, dv_str name)
{
    const struct dv_object *object = dv_control_get(ctx, DV_CONTROL_CLAIMS, namespace, name);

    return object ? object->value : NULL;
}

static const struct dv_api_resource_claim_template *find_template(void *ctx, dv_str namespace,
                                                                  dv_str name)
{
    const struct dv_object *object = dv_control_get(ctx, DV_CONTROL_TEMPLATES, namespace, name);

    return object ? object->value : NULL;
}

static const struct dv_api_resource_claim *find_generated(void *ctx, dv_str namespace,
                                                          dv_str pod_uid, dv_str entry)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    const struct dv_control *control = ctx;
    const struct dv_list *refs =
        dv_index_find(&control->claims, generated_word(pod_uid, entry, scratch));
    struct dv_link *link;

    if (!refs)
        return NULL;
    DV_LIST_EACH (refs, link) {
        dv_str key = dv_index_thing(link);
        struct dv_object *object;
        dv_str own_namespace;
        dv_str name;

        dv_control_split(key, &own_namespace, &name);
        object = dv_control_get(control, DV_CONTROL_CLAIMS, own_namespace, name);
        if (!object)
            object = dv_made_get(control, key);
        if (object && dv_str_eq(own_namespace, namespace) &&
            dv_control_is_owned_by(object->meta, pod_uid) &&
            dv_str_eq(dv_control_entry_of(object->meta), entry))
            return object->value;
    }
    return NULL;
}

void dv_control_lookup_init(struct dv_control *control)
{
    control->lookup = (struct dv_control_lookup){.ctx = control,
                                                 .claim = find_claim,
                                                 .generated = find_generated,
                                                 .template = find_template};
}

void dv_control_index_claim(struct dv_control *control, dv_str key,
                            const struct dv_api_resource_claim *claim)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    const struct dv_api_resource_claim_status *status = &claim->status;
    dv_str *words = DV_NEW_ARRAY(scratch, dv_str, status->n_reserved_for + 2);
    dv_str entry = dv_control_entry_of(&claim->metadata);
    size_t n = 0;
    dv_str name;

    n += dv_control_owner_pod(&claim->metadata, &name, &words[0]);
    if (n > 0 && entry.n > 0)
        words[n++] = generated_word(words[0], entry, scratch);
    for (size_t i = 0; i < status->n_reserved_for; i++)
        if (dv_control_is_pod(&status->reserved_for[i]))
            words[n++] = status->reserved_for[i].uid;
    dv_index_set(&control->claims, key, words, n);
}

/* ---- pods ---- */

static const struct dv_api_pod_extended_resource_claim_status *
extended_of(const struct dv_api_pod *pod)
{
    return pod->status.extended_resource_claim_status;
}

/* Gathers the names of all claims that the pod's spec and status mention, into `names`, which has
 * room for them. */
static size_t claim_names(const struct dv_api_pod *pod, dv_str *names)
{
    const struct dv_api_pod_status *status = &pod->status;
    size_t n = 0;

    for (size_t i = 0; i < pod->spec.n_resource_claims; i++)
        if (pod->spec.resource_claims[i].resource_claim_name.p)
            names[n++] = pod->spec.resource_claims[i].resource_claim_name;
    for (size_t i = 0; i < status->n_resource_claim_statuses; i++)
        if (status->resource_claim_statuses[i].resource_claim_name.p)
            names[n++] = status->resource_claim_statuses[i].resource_claim_name;
    if (extended_of(pod) && extended_of(pod)->resource_claim_name.n > 0)
        names[n++] = extended_of(pod)->resource_claim_name;
    return n;
}

static size_t n_names_max(const struct dv_api_pod *pod)
{
    return pod->spec.n_resource_claims + pod->status.n_resource_claim_statuses + 1;
}

static bool uses_claims(const struct dv_control *control, const struct dv_api_pod *pod)
{
    return pod->spec.n_resource_claims > 0 || extended_of(pod) ||
           dv_index_find(&control->claims, pod->metadata.uid);
}

static void index_pod(struct dv_control *control, dv_str key, const struct dv_api_pod *pod,
                      struct dv_arena *arena)
{
    size_t n_entries = pod ? pod->spec.n_resource_claims : 0;
    dv_str *words;
    size_t n;

    if (!pod) {
        dv_index_set(&control->pods, key, NULL, 0);
        return;
    }
    words = DV_NEW_ARRAY(arena, dv_str, n_names_max(pod) + n_entries);
    n = claim_names(pod, words);
    for (size_t i = 0; i < n; i++)
        words[i] = claim_word(pod->metadata.namespace, words[i], arena);
    for (size_t i = 0; i < n_entries; i++) {
        dv_str template = pod->spec.resource_claims[i].resource_claim_template_name;

        if (template.p)
            words[n++] = template_word(pod->metadata.namespace, template, arena);
    }
    dv_index_set(&control->pods, key, words, n);
}

/* Has the claims looked at that a pod mentions which is gone or over: they may be reserved for it
 * or generated for it. */
static void look_at_claims_of(struct dv_control *control, const struct dv_api_pod *pod,
                              struct dv_arena *arena)
{
    dv_str *names = DV_NEW_ARRAY(arena, dv_str, n_names_max(pod));
    size_t n = claim_names(pod, names);

    for (size_t i = 0; i < n; i++)
        dv_queue_add(&control->queues[DV_CONTROL_CLAIM_QUEUE], pod->metadata.namespace, names[i]);
}

/* Has the claims looked at that say themselves that they are the pod's or reserved for it. Its spec
 * and status need not mention them: the status may never have been written. */
static void look_at_held(struct dv_control *control, const struct dv_api_pod *pod)
{
    dv_control_queue_all(control, DV_CONTROL_CLAIM_QUEUE, &control->claims, pod->metadata.uid);
}

static void look_at_pod(struct dv_control *control, const struct dv_api_pod *pod,
                        struct dv_arena *arena)
{
    if (dv_control_pod_is_done(pod)) {
        look_at_claims_of(control, pod, arena);
        look_at_held(control, pod);
    } else {
        dv_queue_add(&control->queues[DV_CONTROL_POD_QUEUE], pod->metadata.namespace,
                     pod->metadata.name);
    }
}

void dv_control_pod_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = NULL;
    struct dv_control *control = ctx;
    const struct dv_api_pod *was = old ? old->value : NULL;
    const struct dv_api_pod *pod = now ? now->value : NULL;
    dv_str key;

    dv_control_endpoint_changed(control, was, pod);
    dv_control_stray_changed(control, was, pod);
    if (!(was && uses_claims(control, was)) && !(pod && uses_claims(control, pod)))
        return;
    scratch = dv_arena_new();
    key = key_of(now ? now->meta : old->meta, scratch);
    index_pod(control, key, pod, scratch);
    if (was && (!pod || !dv_str_eq(was->metadata.uid, pod->metadata.uid))) {
        dv_recent_add(&control->gone, was->metadata.uid);
        look_at_claims_of(control, was, scratch);
        look_at_held(control, was);
    }
    if (pod)
        look_at_pod(control, pod, scratch);
    if (control->evictor)
        dv_evictor_pod_changed(control->evictor, key, was, pod);
}

/* ---- claims ---- */

static size_t *gauge_of(struct dv_control *control, const struct dv_api_resource_claim *claim)
{
    bool is_allocated = claim->status.allocation != NULL;
    bool has_admin = dv_control_wants_admin(&claim->spec.devices);

    return &control->stats
                .n_claims[is_allocated][has_admin][dv_control_source_of(&claim->metadata)];
}

static void look_at_pods(struct dv_control *control, dv_str word)
{
    const struct dv_list *refs = dv_index_find(&control->pods, word);
    struct dv_link *link;

    if (!refs)
        return;
    DV_LIST_EACH (refs, link) {
        const struct dv_api_pod *pod;
        dv_str namespace;
        dv_str name;

        dv_control_split(dv_index_thing(link), &namespace, &name);
        pod = dv_control_get_pod(control, namespace, name);
        if (pod)
            dv_queue_add(&control->queues[DV_CONTROL_POD_QUEUE], namespace, name);
    }
}

void dv_control_claim_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    struct dv_control *control = ctx;
    const struct dv_api_object_meta *meta = now ? now->meta : old->meta;
    dv_str key = key_of(meta, scratch);

    if (old)
        --*gauge_of(control, old->value);
    if (now)
        ++*gauge_of(control, now->value);
    dv_made_forget(control, meta->namespace, meta->name);
    if (now)
        dv_control_index_claim(control, key, now->value);
    else
        dv_index_set(&control->claims, key, NULL, 0);
    if (now)
        dv_queue_add(&control->queues[DV_CONTROL_CLAIM_QUEUE], meta->namespace, meta->name);
    look_at_pods(control, claim_word(meta->namespace, meta->name, scratch));
    if (control->evictor)
        dv_evictor_claim_changed(control->evictor, key, now);
}

/* ---- templates ---- */

void dv_control_template_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = NULL;

    (void)old;
    if (!now)
        return;
    scratch = dv_arena_new();
    look_at_pods(ctx, template_word(now->meta->namespace, now->meta->name, scratch));
}
