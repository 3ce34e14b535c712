/* apps_plan.h - what a controller wants done, as values: objects to be made, changed and deleted.
 *
 * A plan is made from what the views show. When its actions are done the next one is made from what
 * they show then, until there is nothing left to do: so nothing has to be remembered, and a crash
 * in the middle of a plan loses nothing. */
#ifndef DV_APPS_PLAN_H
#define DV_APPS_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"

struct dv_arena;
struct dv_label_selector;

enum dv_action_type {
    DV_ACTION_CREATE,
    DV_ACTION_DELETE,
    DV_ACTION_CHANGE,
    DV_ACTION_CHANGE_STATUS,
};

struct dv_action {
    enum dv_action_type type;
    const struct dv_kind *kind;
    dv_str namespace;
    dv_str name;               /* empty: CREATE with generateName */
    dv_str uid;                /* that the object must have; empty: CREATE */
    dv_str propagation_policy; /* DELETE; empty: the default */
    const void *value;
    /* CHANGE...: sets fields of `value`, the struct of the kind. False: the object is not as it was
     * when this was decided. */
    bool (*change)(const struct dv_action *action, void *value, struct dv_arena *arena);
    const void *with; /* for `change` */
    /* An event about the owner, told when it is done; without a reason there is none. */
    dv_str reason;
    dv_str message;
    bool is_warning;
};

struct dv_plan {
    DV_VEC(struct dv_action) actions;
    uint64_t again_ms; /* it is looked again at the latest after so long; UINT64_MAX: on changes */
    struct dv_arena *arena;
};

#define DV_PLAN_NEVER UINT64_MAX

void dv_plan_init(struct dv_plan *plan, struct dv_arena *arena);
void dv_plan_again(struct dv_plan *plan, uint64_t ms);

/* Who plans: the object that owns what is made. */
struct dv_plan_owner {
    const struct dv_kind *kind;
    const struct dv_api_object_meta *meta;
    const struct dv_label_selector *selector; /* NULL: it selects nothing */
    dv_str finalizer; /* that what is its own has, and loses with it; empty: none */
};

/* In the arena; keeps what it is given. `selector` may be NULL. */
struct dv_plan_owner *dv_plan_owner_of(enum dv_kind_id kind, const struct dv_api_object_meta *meta,
                                       const struct dv_api_label_selector *selector,
                                       struct dv_arena *arena);

struct dv_action *dv_plan_delete(struct dv_plan *plan, const struct dv_kind *kind,
                                 const struct dv_api_object_meta *meta);
struct dv_action *dv_plan_change(struct dv_plan *plan, const struct dv_kind *kind,
                                 const struct dv_api_object_meta *meta);
/* Plans to create a value that has its metadata. */
struct dv_action *dv_plan_create(struct dv_plan *plan, const struct dv_kind *kind,
                                 const void *value);

/* What an object is to an owner. */
enum dv_ownership {
    DV_OWNER_NONE, /* somebody else's, or it does not match */
    DV_OWNER_HAS,
    DV_OWNER_ADOPTS,   /* nobody's, and it matches */
    DV_OWNER_RELEASES, /* owned, and it matches no longer */
};

enum dv_ownership dv_plan_ownership(const struct dv_plan_owner *owner,
                                    const struct dv_api_object_meta *meta);
/* Plans the adoption or release that the object calls for. */
void dv_plan_adopt_or_release(struct dv_plan *plan, const struct dv_plan_owner *owner,
                              const struct dv_kind *kind, const struct dv_api_object_meta *meta);

/* Puts the finalizer at the end of the list, in the arena, or takes it out. An empty one is none.
 */
void dv_plan_set_finalizer(struct dv_api_object_meta *meta, dv_str finalizer, bool has,
                           struct dv_arena *arena);
/* Sets the one reference of what the owner makes, in the arena. */
void dv_plan_own(const struct dv_plan_owner *owner, struct dv_api_object_meta *meta,
                 struct dv_arena *arena);
/* A pod of the template that belongs to the owner; its parts are the template's. */
struct dv_api_pod *dv_plan_pod(const struct dv_plan_owner *owner,
                               const struct dv_api_pod_template_spec *template,
                               struct dv_arena *arena);

/* A word for a template: the same for the same template. `collisions` tells apart those that
 * would have the same; NULL: none. */
dv_str dv_template_hash(const struct dv_api_pod_template_spec *template, const int64_t *collisions,
                        struct dv_arena *arena);

/* The name of what belongs to a template of the owner, with the hash at its end: of the owner's
 * name at most `n_max` bytes are in it. */
dv_str dv_template_name(dv_str owner, size_t n_max, dv_str hash, struct dv_arena *arena);

#endif
