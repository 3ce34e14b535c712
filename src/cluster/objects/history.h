/* history.h - the last changes of a kind, for those who want to know what happened since.
 *
 * Changes are numbered from 0 as they come; who follows them keeps the number of the next. */
#ifndef DV_CLUSTER_HISTORY_H
#define DV_CLUSTER_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dv_object;

/* The objects may be packed. */
struct dv_change {
    uint64_t version;
    struct dv_object *old;  /* NULL: it came */
    struct dv_object *now;  /* NULL: it went */
    struct dv_object *gone; /* see dv_history_gone */
};

struct dv_history {
    struct dv_change *ring;
    size_t size; /* of the ring: a power of two, or 0 */
    size_t n_max;
    uint64_t first;    /* number of the oldest that is kept */
    uint64_t end;      /* number behind the newest */
    uint64_t floor;    /* versions after this one are known in full */
    uint64_t aged;     /* number behind those that were there at the last dv_history_age */
    size_t size_bytes; /* of the objects that nothing else keeps */
};

/* Nothing is known of the time up to version `floor`. */
void dv_history_init(struct dv_history *history, size_t n_max, uint64_t floor);
void dv_history_fini(struct dv_history *history);

/* Versions grow. Takes references of its own; forgets the oldest. */
void dv_history_add(struct dv_history *history, uint64_t version, struct dv_object *old,
                    struct dv_object *now);
/* To be called now and then: of a burst of changes that were there at the last call already only
 * the last ones are kept, and what takes little memory. False: nothing is left to forget until more
 * come. */
bool dv_history_age(struct dv_history *history);
/* Borrowed until the next change comes, or dv_history_age. `number` must be kept. */
struct dv_change *dv_history_get(const struct dv_history *history, uint64_t number);
/* The number of the first change after `version`, which is not below the floor. */
uint64_t dv_history_after(const struct dv_history *history, uint64_t version);

/* What those see who lose sight of the object by this change, because it went or because it does
 * not match any more: its state before, with the version of the change. Borrowed. */
struct dv_object *dv_history_gone(struct dv_history *history, struct dv_change *change);
/* A new object: `object` with another version. */
struct dv_object *dv_object_with_version(const struct dv_object *object, uint64_t version);

#endif
