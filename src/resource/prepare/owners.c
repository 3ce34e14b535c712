/* owners.c - removes owner references that are there twice. */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/map.h"
#include "base/str.h"
#include "resource/prepare.h"
#include "resource/resource.h"

/* The warning has the uids of one object, which has at most 3 MiB, and a few words. */
#define WARNING_BYTES_MAX (4u * 1024u * 1024u)

static void add_duplicate(struct dv_buf *warning, dv_str uid)
{
    dv_buf_add(warning, warning->n > 0
                            ? DV_STR(", ")
                            : DV_STR(".metadata.ownerReferences contains duplicate entries; API "
                                     "server dedups owner references in 1.20+, and may reject such "
                                     "requests as early as 1.24; please fix your requests; "
                                     "duplicate UID(s) observed: "));
    dv_buf_add(warning, uid);
}

static char flag(const bool *value)
{
    return !value ? '-' : *value ? 't' : 'f';
}

/* Prints all of a reference: only what is the same in all of it is there twice. */
static dv_str key_of(const struct dv_api_owner_reference *owner, struct dv_arena *arena)
{
    const dv_str zero = {"", 1};
    const char flags[] = {flag(owner->controller), flag(owner->block_owner_deletion)};
    const dv_str texts[] = {
        owner->uid,  zero, owner->api_version,     zero, owner->kind, zero,
        owner->name, zero, {flags, sizeof(flags)},
    };

    return dv_str_concat(texts, DV_COUNT(texts), arena);
}

dv_str dv_dedup_owners(struct dv_api_object_meta *meta, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf warning;
    DV_CLEANUP(dv_map_fini) struct dv_map seen;
    struct dv_api_owner_reference *kept;
    size_t n = 0;

    dv_buf_init(&warning, WARNING_BYTES_MAX);
    dv_map_init(&seen);
    kept = DV_NEW_ARRAY(arena, struct dv_api_owner_reference, meta->n_owner_references);
    for (size_t i = 0; i < meta->n_owner_references; i++) {
        struct dv_api_owner_reference *owner = &meta->owner_references[i];

        /* the warning names it each time that it comes again */
        if (dv_map_set(&seen, key_of(owner, arena), owner))
            add_duplicate(&warning, owner->uid);
        else
            kept[n++] = *owner;
    }
    if (n < meta->n_owner_references) {
        meta->owner_references = kept;
        meta->n_owner_references = n;
    }
    return dv_str_copy(dv_buf_str(&warning), arena);
}
