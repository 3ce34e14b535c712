/* builtin_state.h - the built-in driver with all its parts, which its files share. */
#ifndef DV_BUILTIN_STATE_H
#define DV_BUILTIN_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "builtin/builtin.h"
#include "builtin/machine_scan.h"
#include "cluster/cluster.h"
#include "loop/loop.h"
#include "offer/offer.h"

struct davit_call;
struct davit_dra;
struct davit_dra_claim;
struct davit_dra_claim_ref;
struct dv_arena;
struct dv_err;
struct dv_view;

/* What was written, shared by what was made of it. */
struct dv_builtin_config {
    struct dv_arena *arena;
    struct dv_offers offers;
    size_t n_refs;
};

/* What one look at the machine has shown. */
struct dv_builtin_look {
    struct dv_arena *arena;
    struct dv_builtin_config *config;
    struct dv_offer_snapshot snapshot;
    struct dv_offer_list list;
    struct dv_scan_dirs dirs;
    dv_str text;      /* all that is published of it: two with the same text are the same */
    uint64_t took_ns; /* of a worker's time */
};

/* A claim that has devices: its record, which is in a file, too. */
struct dv_builtin_claim {
    struct dv_arena *arena;
    struct dv_offer_record record;
};

/* What is to be done about the classes of offers. */
struct dv_builtin_classes {
    struct dv_view *view;
    struct dv_request request;
    struct dv_arena *arena; /* of the request */
    bool is_asking;
    struct dv_task task;
    struct dv_timer timer;  /* until the next attempt */
    struct dv_map problems; /* by name of the offer: char *, allocated */
};

struct dv_builtin_driver {
    struct dv_loop *loop;
    struct dv_arena *arena;
    struct dv_builtin_options options; /* texts are in the arena */
    dv_str record_dir;
    struct dv_builtin_config *config;
    struct dv_builtin_look *now;
    /* builtin_watch.c */
    struct dv_watch *watch;
    int uevent_fd; /* -1: they cannot be had */
    struct dv_poll *uevents;
    struct dv_timer timer; /* until the next look */
    struct look_job *job;
    bool wants_look; /* when the job is done */
    /* builtin_claims.c */
    struct dv_map claims;  /* by uid: struct dv_builtin_claim */
    struct dv_list writes; /* jobs that write or remove files */
    struct dv_builtin_classes classes;
    struct davit_dra *dra;
    bool has_taints; /* some device is published with one */
    struct dv_task tell;
    bool is_closing;
    size_t n_open; /* what closing waits for */
    dv_closed_fn *closed;
    void *closed_ctx;
};

/* builtin.c */
struct dv_builtin_config *dv_builtin_config_ref(struct dv_builtin_config *config);
void dv_builtin_config_unref(struct dv_builtin_config *config); /* NULL is fine */
/* Tells the owner, in this turn, that something has changed. */
void dv_builtin_tell(struct dv_builtin_driver *builtin);
/* One of the parts that closing waits for is closed. */
dv_closed_fn dv_builtin_part_closed;

/* builtin_look.c */
/* Makes a look that is ready to be taken: what it needs of the loop's thread is in it. */
struct dv_builtin_look *dv_builtin_look_new(struct dv_builtin_driver *builtin,
                                            struct dv_offer_list *before);
/* Looks at the machine; on any thread. `before` lives until then. */
void dv_builtin_look_take(struct dv_builtin_look *look, dv_str dev_dir, dv_str sys_dir,
                          const struct dv_offer_list *before);
void dv_builtin_look_free(struct dv_loop *loop, struct dv_builtin_look *look); /* NULL is fine */

/* builtin_watch.c */
void dv_builtin_watch_open(struct dv_builtin_driver *builtin);
/* Looks at the machine soon. */
void dv_builtin_look_soon(struct dv_builtin_driver *builtin);
void dv_builtin_watch_close(struct dv_builtin_driver *builtin);

/* builtin_publish.c */
/* Publishes the devices of the last look, and the health of those that are held. */
void dv_builtin_publish(struct dv_builtin_driver *builtin);
void dv_builtin_tell_health(struct dv_builtin_driver *builtin);

/* builtin_claims.c: their ctx is a struct dv_builtin_driver. */
void dv_builtin_prepare(void *ctx, struct davit_call *call, const struct davit_dra_claim *claim);
void dv_builtin_unprepare(void *ctx, struct davit_call *call,
                          const struct davit_dra_claim_ref *claim);
/* Reads the records, and removes what is left of claims that the node does not know. Blocks. */
DV_CHECKED bool dv_builtin_claims_load(struct dv_builtin_driver *builtin, struct dv_err *err);
/* Writes the files of claims anew whose devices have other nodes now. */
void dv_builtin_claims_follow(struct dv_builtin_driver *builtin);
void dv_builtin_claims_fini(struct dv_builtin_driver *builtin);

/* builtin_classes.c */
void dv_builtin_classes_open(struct dv_builtin_driver *builtin);
/* Looks whether the classes are as the offers want them. */
void dv_builtin_classes_look(struct dv_builtin_driver *builtin);
void dv_builtin_classes_close(struct dv_builtin_driver *builtin);

#endif
