/* foreground.c - what an object that is deleted in the foreground waits for. Objects may own each
 * other in a circle, where each would wait for the next one for ever. The reference makes such
 * references non-blocking when it meets one; here they do not count, so that nothing is written and
 * circles that are deleted from two sides at once end, too. */
#include "cluster/embedded/foreground.h"

#include <stddef.h>

#include "base/defs.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "cluster/embedded/delete.h"
#include "cluster/objects/collection.h"
#include "cluster/objects/object_owners.h"
#include "resource/resource.h"

/* How many objects are looked at for the way back. Those of a longer circle wait. */
#define CIRCLE_MAX 4096u

bool dv_foreground_is(const struct dv_object *object)
{
    return object->meta->deletion_timestamp.is_set &&
           dv_meta_has_finalizer(object->meta, DV_STR(DV_FINALIZER_FOREGROUND));
}

/* The dependents of an object that block its deletion, one after the other. */
struct blocking {
    const struct dv_list *all; /* NULL: nothing depends on the object */
    struct dv_link *next;
};

static struct blocking blocking_of(const struct dv_object_owners *owners,
                                   const struct dv_object *object)
{
    const struct dv_object_owner *owner = dv_object_owners_get(owners, object->meta->uid);

    return owner ? (struct blocking){&owner->dependents, owner->dependents.head.next}
                 : (struct blocking){0};
}

/* NULL: that was the last. */
static struct dv_object *next_of(struct blocking *blocking)
{
    while (blocking->all && blocking->next != &blocking->all->head) {
        const struct dv_dependence *dependence =
            DV_CONTAINER(blocking->next, struct dv_dependence, link);

        blocking->next = blocking->next->next;
        if (dependence->is_blocking && dependence->entry->object)
            return dv_entry_object(dependence->entry);
    }
    return NULL;
}

/* Adds those that `object` waits for and that wait themselves. True: one of them is `wanted`. */
static bool add_waiting(const struct dv_object_owners *owners, const struct dv_object *object,
                        dv_str wanted, struct dv_map *seen)
{
    struct blocking blocking = blocking_of(owners, object);
    struct dv_object *next;

    while (seen->n < CIRCLE_MAX && (next = next_of(&blocking))) {
        if (!dv_foreground_is(next))
            continue;
        if (dv_str_eq(next->meta->uid, wanted))
            return true;
        (void)dv_map_set(seen, next->meta->uid, next);
    }
    return false;
}

/* Whether `from` waits, over others, for the object with the uid `wanted`. */
static bool waits_for(const struct dv_object_owners *owners, struct dv_object *from, dv_str wanted)
{
    const struct dv_map_entry *next;
    struct dv_map seen; /* by uid, walked while it grows */
    bool is_found = dv_str_eq(from->meta->uid, wanted);

    dv_map_init(&seen);
    (void)dv_map_set(&seen, from->meta->uid, from);
    for (size_t at = 0; !is_found && (next = dv_map_next(&seen, &at));)
        is_found = add_waiting(owners, next->value, wanted, &seen);
    dv_map_fini(&seen);
    return is_found;
}

bool dv_foreground_is_blocked(const struct dv_object_owners *owners, const struct dv_object *object)
{
    struct blocking blocking = blocking_of(owners, object);
    struct dv_object *next;

    while ((next = next_of(&blocking)))
        if (!dv_foreground_is(next) || !waits_for(owners, next, object->meta->uid))
            return true;
    return false;
}
