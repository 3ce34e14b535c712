/* apps_plan.c - actions, and what all that makes pods has in common: whom objects belong to, pods
 * of a template, and names for templates. */
#include "apps/plan/apps_plan.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/num.h"
#include "resource/resource.h"
#include "resource/select.h"

/* More than any object that is accepted has as text. */
#define TEXT_BYTES_MAX (16u * 1024u * 1024u)

void dv_plan_init(struct dv_plan *plan, struct dv_arena *arena)
{
    *plan = (struct dv_plan){.again_ms = DV_PLAN_NEVER, .arena = arena};
}

void dv_plan_again(struct dv_plan *plan, uint64_t ms)
{
    plan->again_ms = dv_u64_min(plan->again_ms, ms);
}

static struct dv_action *add(struct dv_plan *plan, enum dv_action_type type,
                             const struct dv_kind *kind, const struct dv_api_object_meta *meta)
{
    struct dv_action *action = dv_vec_add_in(&plan->actions, plan->arena);

    *action = (struct dv_action){.type = type,
                                 .kind = kind,
                                 .namespace = meta->namespace,
                                 .name = meta->name,
                                 .uid = meta->uid};
    return action;
}

struct dv_action *dv_plan_delete(struct dv_plan *plan, const struct dv_kind *kind,
                                 const struct dv_api_object_meta *meta)
{
    return add(plan, DV_ACTION_DELETE, kind, meta);
}

struct dv_action *dv_plan_change(struct dv_plan *plan, const struct dv_kind *kind,
                                 const struct dv_api_object_meta *meta)
{
    return add(plan, DV_ACTION_CHANGE, kind, meta);
}

struct dv_action *dv_plan_create(struct dv_plan *plan, const struct dv_kind *kind,
                                 const void *value)
{
    /* Metadata is the first member of every object. */
    struct dv_action *action = add(plan, DV_ACTION_CREATE, kind, value);

    action->value = value;
    return action;
}

/* ---- owners ---- */

struct dv_plan_owner *dv_plan_owner_of(enum dv_kind_id kind, const struct dv_api_object_meta *meta,
                                       const struct dv_api_label_selector *selector,
                                       struct dv_arena *arena)
{
    struct dv_plan_owner *owner = DV_NEW(arena, struct dv_plan_owner);

    *owner = (struct dv_plan_owner){
        .kind = dv_kind(kind),
        .meta = meta,
        .selector = selector ? dv_label_selector_of(selector, arena) : NULL,
    };
    return owner;
}

enum dv_ownership dv_plan_ownership(const struct dv_plan_owner *owner,
                                    const struct dv_api_object_meta *meta)
{
    const struct dv_api_owner_reference *controller = dv_controller_of(meta);
    bool is_selected;

    /* Whoever may make pods in another namespace can write any uid into them. */
    if (!dv_str_eq(meta->namespace, owner->meta->namespace) ||
        (controller && !dv_str_eq(controller->uid, owner->meta->uid)))
        return DV_OWNER_NONE;
    is_selected =
        owner->selector && dv_label_selector_matches(owner->selector, meta->labels, meta->n_labels);
    if (controller && (is_selected || owner->meta->deletion_timestamp.is_set))
        return is_selected ? DV_OWNER_HAS : DV_OWNER_NONE;
    if (controller)
        return DV_OWNER_RELEASES;
    return is_selected && !meta->deletion_timestamp.is_set &&
                   !owner->meta->deletion_timestamp.is_set
               ? DV_OWNER_ADOPTS
               : DV_OWNER_NONE;
}

static const bool yes = true;

static struct dv_api_owner_reference reference_to(const struct dv_plan_owner *owner,
                                                  struct dv_arena *arena)
{
    const struct dv_api_version *version = &owner->kind->versions[0];

    return (struct dv_api_owner_reference){
        .api_version =
            dv_str_printf(arena, "%.*s/%.*s", DV_FMT(version->group), DV_FMT(version->version)),
        .kind = owner->kind->name,
        .name = owner->meta->name,
        .uid = owner->meta->uid,
        .controller = &yes,
        .block_owner_deletion = &yes,
    };
}

void dv_plan_own(const struct dv_plan_owner *owner, struct dv_api_object_meta *meta,
                 struct dv_arena *arena)
{
    meta->owner_references = DV_NEW(arena, struct dv_api_owner_reference);
    meta->owner_references[0] = reference_to(owner, arena);
    meta->n_owner_references = 1;
}

void dv_plan_set_finalizer(struct dv_api_object_meta *meta, dv_str finalizer, bool has,
                           struct dv_arena *arena)
{
    dv_str *all = DV_NEW_ARRAY(arena, dv_str, meta->n_finalizers + 1);
    size_t n = 0;

    if (finalizer.n == 0)
        return;
    for (size_t i = 0; i < meta->n_finalizers; i++)
        if (!dv_str_eq(meta->finalizers[i], finalizer))
            all[n++] = meta->finalizers[i];
    if (has)
        all[n++] = finalizer;
    meta->finalizers = all;
    meta->n_finalizers = n;
}

/* Adds the reference of an owner; not when another controller was faster. */
static bool adopt(const struct dv_action *action, void *value, struct dv_arena *arena)
{
    const struct dv_plan_owner *owner = action->with;
    struct dv_api_object_meta *meta = value;
    size_t n = meta->n_owner_references;
    struct dv_api_owner_reference *all = DV_NEW_ARRAY(arena, struct dv_api_owner_reference, n + 1);

    if (dv_controller_of(meta) || meta->deletion_timestamp.is_set)
        return false;
    if (n > 0)
        memcpy(all, meta->owner_references, n * sizeof(all[0]));
    all[n] = reference_to(owner, arena);
    meta->owner_references = all;
    meta->n_owner_references = n + 1;
    dv_plan_set_finalizer(meta, owner->finalizer, true, arena);
    return true;
}

static bool release(const struct dv_action *action, void *value, struct dv_arena *arena)
{
    const struct dv_plan_owner *owner = action->with;
    struct dv_api_object_meta *meta = value;
    struct dv_api_owner_reference *left =
        DV_NEW_ARRAY(arena, struct dv_api_owner_reference, meta->n_owner_references);
    size_t n = 0;

    for (size_t i = 0; i < meta->n_owner_references; i++)
        if (!dv_str_eq(meta->owner_references[i].uid, owner->meta->uid))
            left[n++] = meta->owner_references[i];
    meta->owner_references = left;
    meta->n_owner_references = n;
    dv_plan_set_finalizer(meta, owner->finalizer, false, arena);
    return true;
}

void dv_plan_adopt_or_release(struct dv_plan *plan, const struct dv_plan_owner *owner,
                              const struct dv_kind *kind, const struct dv_api_object_meta *meta)
{
    enum dv_ownership ownership = dv_plan_ownership(owner, meta);
    struct dv_action *action;

    if (ownership != DV_OWNER_ADOPTS && ownership != DV_OWNER_RELEASES)
        return;
    action = dv_plan_change(plan, kind, meta);
    action->change = ownership == DV_OWNER_ADOPTS ? adopt : release;
    action->with = owner;
}

/* ---- pods ---- */

struct dv_api_pod *dv_plan_pod(const struct dv_plan_owner *owner,
                               const struct dv_api_pod_template_spec *template,
                               struct dv_arena *arena)
{
    struct dv_api_pod *pod = DV_NEW(arena, struct dv_api_pod);

    /* Every name that an owner can have may be followed by a dash. */
    pod->metadata.generate_name = dv_str_printf(arena, "%.*s-", DV_FMT(owner->meta->name));
    pod->metadata.namespace = owner->meta->namespace;
    pod->metadata.labels = template->metadata.labels;
    pod->metadata.n_labels = template->metadata.n_labels;
    pod->metadata.annotations = template->metadata.annotations;
    pod->metadata.n_annotations = template->metadata.n_annotations;
    pod->metadata.finalizers = template->metadata.finalizers;
    pod->metadata.n_finalizers = template->metadata.n_finalizers;
    pod->spec = template->spec;
    dv_plan_own(owner, &pod->metadata, arena);
    dv_plan_set_finalizer(&pod->metadata, owner->finalizer, true, arena);
    return pod;
}

/* ---- templates ---- */

dv_str dv_template_hash(const struct dv_api_pod_template_spec *template, const int64_t *collisions,
                        struct dv_arena *arena)
{
    /* The letters that names are made of at random, too: no vowels, so that no words come out. */
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    uint32_t hash;
    char *word;
    dv_str digits;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_encode_json_text(&dv_message_pod_template_spec, template, NULL, DV_STR_NONE, &buf);
    if (collisions)
        dv_buf_printf(&buf, " %lld", (long long)*collisions);
    hash = dv_fnv1a(dv_buf_str(&buf));
    digits = dv_str_printf(arena, "%u", hash);
    word = dv_arena_alloc_raw(arena, digits.n, 1);
    for (size_t i = 0; i < digits.n; i++)
        word[i] = letters[(unsigned char)digits.p[i] % (sizeof(letters) - 1)];
    return (dv_str){word, digits.n};
}

dv_str dv_template_name(dv_str owner, size_t n_max, dv_str hash, struct dv_arena *arena)
{
    dv_str prefix = dv_str_slice(owner, 0, dv_size_min(owner.n, n_max));

    while (prefix.n > 0 && prefix.p[prefix.n - 1] == '.') /* no dash may follow it */
        prefix.n--;
    return dv_str_printf(arena, "%.*s-%.*s", DV_FMT(prefix), DV_FMT(hash));
}
