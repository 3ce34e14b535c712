/* object_owners.c - who owns whom: objects by uid, and for each owner, also one that is not there,
 * its dependents. */
#include "cluster/objects/object_owners.h"

#include <string.h>

#include "base/arena.h"
#include "cluster/objects/collection.h"
#include "resource/object_pool.h"
#include "resource/resource.h"

void dv_object_owners_init(struct dv_object_owners *owners)
{
    dv_map_init(&owners->objects);
    dv_map_init(&owners->by_uid);
    dv_slabs_init(&owners->memory);
}

static void forget(struct dv_object_owners *owners, struct dv_dependence *dependence)
{
    struct dv_object_owner *owner = dependence->owner;

    dv_link_remove(&dependence->link);
    if (dv_list_is_empty(&owner->dependents)) {
        (void)dv_map_remove(&owners->by_uid, (dv_str){owner->uid, owner->n_uid});
        dv_slab_free(&owners->memory, owner, sizeof(*owner) + owner->n_uid);
    }
    dv_slab_free(&owners->memory, dependence, sizeof(*dependence));
}

void dv_object_owners_fini(struct dv_object_owners *owners)
{
    const struct dv_map_entry *item;
    size_t at = 0;

    while ((item = dv_map_next(&owners->by_uid, &at)) != NULL) {
        struct dv_object_owner *owner = item->value;
        struct dv_link *link;

        while ((link = dv_list_shift(&owner->dependents)) != NULL)
            dv_slab_free(&owners->memory, DV_CONTAINER(link, struct dv_dependence, link),
                         sizeof(struct dv_dependence));
        dv_slab_free(&owners->memory, owner, sizeof(*owner) + owner->n_uid);
    }
    dv_map_fini(&owners->objects);
    dv_map_fini(&owners->by_uid);
    dv_slabs_fini(&owners->memory);
}

static struct dv_object_owner *take_owner(struct dv_object_owners *owners, dv_str uid)
{
    struct dv_object_owner *owner = dv_map_get(&owners->by_uid, uid);

    if (owner)
        return owner;
    owner = dv_slab_alloc(&owners->memory, sizeof(*owner) + uid.n);
    dv_list_init(&owner->dependents);
    owner->n_uid = uid.n;
    if (uid.n > 0)
        memcpy(owner->uid, uid.p, uid.n);
    /* Looked up above: there was none. */
    (void)dv_map_set(&owners->by_uid, (dv_str){owner->uid, uid.n}, owner);
    return owner;
}

static void depend(struct dv_object_owners *owners, struct dv_entry *entry,
                   const struct dv_api_owner_reference *reference)
{
    struct dv_dependence *dependence = dv_slab_alloc(&owners->memory, sizeof(*dependence));

    dependence->owner = take_owner(owners, reference->uid);
    dependence->entry = entry;
    dependence->is_blocking = reference->block_owner_deletion && *reference->block_owner_deletion;
    dependence->next = entry->owners;
    entry->owners = dependence;
    dv_list_push(&dependence->owner->dependents, &dependence->link);
}

void dv_object_owners_change(struct dv_object_owners *owners, struct dv_entry *entry,
                             const struct dv_object *old, const struct dv_object *now)
{
    struct dv_dependence *before = entry->owners;

    if (old && (!now || !dv_str_eq(old->meta->uid, now->meta->uid)))
        (void)dv_map_remove(&owners->objects,
                            old->meta->uid); /* every stored object is in the map */
    if (now) /* the key points into the object, so it is set anew with each version */
        (void)dv_map_set(&owners->objects, dv_object_names(now).uid, entry);
    entry->owners = NULL;
    for (size_t i = 0; now && i < now->meta->n_owner_references; i++)
        depend(owners, entry, &now->meta->owner_references[i]);
    /* After the new references were added, so that the record of an owner that stays is not freed
     * and made again. */
    while (before) {
        struct dv_dependence *next = before->next;

        forget(owners, before);
        before = next;
    }
}

struct dv_entry *dv_object_owners_find(const struct dv_object_owners *owners, dv_str uid)
{
    return dv_map_get(&owners->objects, uid);
}

const struct dv_object_owner *dv_object_owners_get(const struct dv_object_owners *owners,
                                                   dv_str uid)
{
    return dv_map_get(&owners->by_uid, uid);
}
