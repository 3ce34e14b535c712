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
#include "cluster/embedded/change.h"
#include "cluster/embedded/delete.h"
#include "cluster/objects/kin.h"
#include "cluster/objects/shelf.h"
#include "resource/resource.h"

/* How many objects are looked at for the way back. Those of a longer circle wait. */
#define CIRCLE_MAX 4096u

bool dv_foreground_is(const struct dv_object *object)
{
    return object->meta->deletion_timestamp.is_set &&
           dv_meta_has_finalizer(object->meta, DV_STR(DV_FINALIZER_FOREGROUND));
}

/* Adds those that `object` waits for and that wait themselves. True: one of them is `wanted`. */
static bool add_waiting(const struct dv_kin *kin, const struct dv_object *object, dv_str wanted,
                        struct dv_map *seen)
{
    const struct dv_kin_owner *owner = dv_kin_get(kin, object->meta->uid);
    struct dv_link *link;

    if (!owner)
        return false;
    DV_LIST_EACH (&owner->dependents, link) {
        const struct dv_dependence *dependence = DV_CONTAINER(link, struct dv_dependence, link);
        struct dv_object *next = dependence->entry->object;

        if (!dependence->is_blocking || !next || !dv_foreground_is(next))
            continue;
        if (dv_str_eq(next->meta->uid, wanted))
            return true;
        if (seen->n >= CIRCLE_MAX)
            return false;
        (void)dv_map_set(seen, next->meta->uid, next);
    }
    return false;
}

/* Whether `from` waits, over others, for the object with the uid `wanted`. */
static bool waits_for(const struct dv_kin *kin, struct dv_object *from, dv_str wanted)
{
    const struct dv_map_entry *next;
    struct dv_map seen; /* by uid, walked while it grows */
    bool is_found = dv_str_eq(from->meta->uid, wanted);

    dv_map_init(&seen);
    (void)dv_map_set(&seen, from->meta->uid, from);
    for (size_t at = 0; !is_found && (next = dv_map_next(&seen, &at));)
        is_found = add_waiting(kin, next->value, wanted, &seen);
    dv_map_fini(&seen);
    return is_found;
}

bool dv_foreground_is_blocked(const struct dv_kin *kin, const struct dv_object *object)
{
    const struct dv_kin_owner *owner = dv_kin_get(kin, object->meta->uid);
    struct dv_link *link;

    if (!owner)
        return false;
    DV_LIST_EACH (&owner->dependents, link) {
        const struct dv_dependence *dependence = DV_CONTAINER(link, struct dv_dependence, link);
        struct dv_object *next = dependence->entry->object;

        if (dependence->is_blocking &&
            !(next && dv_foreground_is(next) && waits_for(kin, next, object->meta->uid)))
            return true;
    }
    return false;
}
