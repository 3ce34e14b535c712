/* kin.c - who owns whom: objects by uid, and for each owner, also one that is not there, its
 * dependents. */
#include "cluster/objects/kin.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "cluster/objects/collection.h"
#include "resource/object_pool.h"
#include "resource/resource.h"

void dv_kin_init(struct dv_kin *kin)
{
    dv_map_init(&kin->objects);
    dv_map_init(&kin->owners);
}

static void forget(struct dv_kin *kin, struct dv_dependence *dependence)
{
    struct dv_kin_owner *owner = dependence->owner;

    dv_link_remove(&dependence->link);
    if (dv_list_is_empty(&owner->dependents)) {
        (void)dv_map_remove(&kin->owners, (dv_str){owner->uid, owner->n_uid});
        free(owner);
    }
    free(dependence);
}

void dv_kin_fini(struct dv_kin *kin)
{
    const struct dv_map_entry *item;
    size_t at = 0;

    while ((item = dv_map_next(&kin->objects, &at)) != NULL) {
        struct dv_entry *entry = item->value;
        struct dv_dependence *dependence;

        while ((dependence = entry->owners) != NULL) {
            entry->owners = dependence->next;
            forget(kin, dependence);
        }
    }
    dv_map_fini(&kin->objects);
    dv_map_fini(&kin->owners);
}

static struct dv_kin_owner *take_owner(struct dv_kin *kin, dv_str uid)
{
    struct dv_kin_owner *owner = dv_map_get(&kin->owners, uid);

    if (owner)
        return owner;
    owner = dv_alloc(sizeof(*owner) + uid.n);
    dv_list_init(&owner->dependents);
    owner->n_uid = uid.n;
    if (uid.n > 0)
        memcpy(owner->uid, uid.p, uid.n);
    /* Looked up above: there was none. */
    (void)dv_map_set(&kin->owners, (dv_str){owner->uid, uid.n}, owner);
    return owner;
}

static void depend(struct dv_kin *kin, struct dv_entry *entry,
                   const struct dv_api_owner_reference *reference)
{
    struct dv_dependence *dependence = DV_ALLOC(struct dv_dependence);

    dependence->owner = take_owner(kin, reference->uid);
    dependence->entry = entry;
    dependence->is_blocking = reference->block_owner_deletion && *reference->block_owner_deletion;
    dependence->next = entry->owners;
    entry->owners = dependence;
    dv_list_push(&dependence->owner->dependents, &dependence->link);
}

void dv_kin_change(struct dv_kin *kin, struct dv_entry *entry, const struct dv_object *old,
                   const struct dv_object *now)
{
    struct dv_dependence *before = entry->owners;

    if (old && (!now || !dv_str_eq(old->meta->uid, now->meta->uid)))
        (void)dv_map_remove(&kin->objects, old->meta->uid); /* every stored object is in the map */
    if (now) /* the key points into the object, so it is set anew with each version */
        (void)dv_map_set(&kin->objects, dv_object_names(now).uid, entry);
    entry->owners = NULL;
    for (size_t i = 0; now && i < now->meta->n_owner_references; i++)
        depend(kin, entry, &now->meta->owner_references[i]);
    /* After the new references were added, so that the record of an owner that stays is not freed
     * and made again. */
    while (before) {
        struct dv_dependence *next = before->next;

        forget(kin, before);
        before = next;
    }
}

struct dv_entry *dv_kin_find(const struct dv_kin *kin, dv_str uid)
{
    return dv_map_get(&kin->objects, uid);
}

const struct dv_kin_owner *dv_kin_get(const struct dv_kin *kin, dv_str uid)
{
    return dv_map_get(&kin->owners, uid);
}
