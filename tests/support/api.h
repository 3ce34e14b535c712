/* api.h - the embedded API on a loop whose clock is turned, asked by whole calls.
 *
 * A test asks it directly, and gives what it tests `front` as its cluster: requests through that
 * can be made to fail (api_front.h). Objects are YAML; a namespace of NULL is "default" where the
 * kind has namespaces. */
#ifndef DV_TESTS_API_H
#define DV_TESTS_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/defs.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "store/store.h"
#include "support/api_front.h"

struct dv_arena;
struct dv_loop;

struct api {
    struct dv_clock_virtual clock;
    struct dv_loop *loop;
    struct dv_arena *arena; /* for what tests make; until the end */
    struct dv_store *store;
    struct dv_embedded *embedded; /* NULL: closed */
    struct api_front front;
    char dir[64];   /* of a store on the disk; empty: it is in memory */
    char path[100]; /* the store in it */
    /* Whether what is tested has work that no request shows; NULL: it never has. */
    bool (*is_busy)(struct api *api);
};

/* The store's namespaces, for those who open the two themselves. */
enum {
    API_TABLE_OBJECTS,
    API_TABLE_META,
};
extern const struct dv_store_schema api_schema;

void api_init(struct api *api);         /* with a store in memory */
void api_init_on_disk(struct api *api); /* in a directory of its own */
void api_fini(struct api *api);         /* what was opened over it is closed by now */
/* As when the process ends: closes the API and its store, and opens them from what is on the disk.
 */
void api_reopen(struct api *api);

/* ---- requests, until they are answered ---- */

struct api_reply {
    int code; /* 0: success; else that of the Status */
    const char *message;
    struct dv_object *object; /* in the arena */
};

struct api_reply api_create(struct api *api, enum dv_kind_id kind, const char *namespace,
                            const char *yaml);
/* A merge patch, of the object or of its status. */
struct api_reply api_patch(struct api *api, enum dv_kind_id kind, enum dv_subresource subresource,
                           const char *namespace, const char *name, const char *yaml);
/* grace_s: NULL: the object's own. */
struct api_reply api_delete(struct api *api, enum dv_kind_id kind, const char *namespace,
                            const char *name, const int64_t *grace_s);
/* Fails the test unless it succeeded. */
struct dv_object *api_must(struct api_reply reply);

/* ---- what is there: borrowed until the next turn ---- */

struct dv_object *api_get(const struct api *api, enum dv_kind_id kind, const char *namespace,
                          const char *name); /* NULL: absent */
/* All of a kind, in the order of their names; of one namespace, or with NULL of all. */
size_t api_list(struct api *api, enum dv_kind_id kind, const char *namespace,
                struct dv_object ***objects);

/* A text in the arena. */
const char *api_text(struct api *api, const char *fmt, ...) DV_PRINTF(2, 3);

/* ---- time ---- */

/* Until nothing happens before the clock is turned. */
void api_settle(struct api *api);
/* Turns the clock in steps of half a second, and settles after each. */
void api_pass(struct api *api, uint64_t ms);
/* Turns it at once, as after a pause of the whole machine, and settles. */
void api_leap(struct api *api, uint64_t ms);

/* ---- for those who have a loop and a store of their own ---- */

/* Opens the API and waits until its namespaces are there. */
struct dv_embedded *api_open_embedded(struct dv_loop *loop, struct dv_store *store,
                                      const struct dv_embedded_options *options);
void api_close_embedded(struct dv_loop *loop, struct dv_embedded *embedded);
void api_close_store(struct dv_loop *loop, struct dv_store *store);

/* Whether an engine has come to rest: so many turns in which nothing was done. */
struct api_quiet {
    struct dv_store *store;
    struct dv_embedded *embedded;
    uint64_t version;
    unsigned n_turns;
};
/* To be asked once a turn; `is_other_idle`: what else may be at work is at rest. */
bool api_is_quiet(struct api_quiet *quiet, bool is_other_idle);
/* Runs the loop until it is met, and does not let it sleep meanwhile: turns are counted. */
void api_wait_awake(struct dv_loop *loop, bool (*is_met)(void *ctx), void *ctx);

#endif
