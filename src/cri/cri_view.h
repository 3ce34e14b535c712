/* cri_view.h - the view of a runtime's pods: what is kept of them, and how it is kept current.
 *
 * A listing of everything tells which pods have changed: another id, another state. Such a pod is
 * looked at: its sandboxes and containers are listed, the status of each is asked for, and all of
 * it takes the place of what was known, at once. A look that fails changes nothing and is repeated.
 *
 *     listing (every second, or rarely where there are events) --+
 *     event of a container ------------------------------------- +-> wanted -> look -> told
 *     dv_cri_view_relist ----------------------------------------+      ^        |
 *                                                     after a second    +-- failed
 */
#ifndef DV_CRI_VIEW_H
#define DV_CRI_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "cri/cri.h"
#include "cri/cri_list.h"
#include "grpc/grpc.h"
#include "loop/loop.h"

struct dv_arena;
struct dv_cri_look;

/* A sandbox or container with its status. What has ended does not change any more, so one look
 * hands it on to the next; two snapshots hold it meanwhile. */
struct dv_cri_item {
    enum dv_cri_kind kind;
    unsigned n_refs;
    dv_str id;              /* its end is that of a C string */
    dv_str uid;             /* of its pod */
    int64_t state;          /* as it was listed */
    const void *status;     /* its PodSandboxStatus or ContainerStatus, see cri_keep.h */
    struct dv_arena *arena; /* of the status; NULL: there is none */
    uint64_t listing;       /* the last one that it was in */
    char text[];
};

struct dv_cri_items {
    struct dv_cri_item **v;
    size_t n;
    size_t size;
};

struct dv_cri_record {
    struct dv_cri_pod shown; /* its uid is `text` */
    const struct CriV1__PodSandboxStatus **sandboxes;
    const struct CriV1__ContainerStatus **containers;
    struct dv_cri_items items;
    struct dv_cri_look *look; /* that is under way; NULL: none */
    struct dv_link queued;    /* in the view's queue, waiting for a look */
    struct dv_link told;      /* in the view's list of pods to tell of */
    uint64_t taken_ns;        /* 0: never */
    bool is_wanted;           /* something has changed since the last look began */
    bool has_failed;          /* its last look did; the next one waits for the timer */
    char text[];
};

struct dv_cri_view {
    struct dv_cri *cri;
    struct dv_map records; /* by uid */
    struct dv_map items;   /* by id */
    struct dv_list queue;
    struct dv_list told;
    struct dv_task tell_task;
    size_t n_looking;
    size_t n_failed; /* records whose last look failed */
    struct dv_timer timer;
    uint64_t listed_ns; /* when the last complete listing was begun; 0: none */
    bool is_complete;

    /* The listing of everything. */
    struct {
        struct dv_call calls[2]; /* by kind */
        unsigned n_running;
        struct dv_arena *arena;
        struct dv_cri_list list;
        struct dv_err err;
        uint64_t begun_ns;
        uint64_t ended_ms;
        uint64_t number;
        bool is_repeated; /* another one follows at once */
    } listing;

    /* The stream of events. */
    struct {
        struct dv_call call;
        bool is_running;
        bool has_told; /* there was an event, so that the runtime really serves them */
        uint64_t begun_ms;
        unsigned n_failed; /* streams of the present connection that ended */
        struct dv_timer timer;
    } events;
};

void dv_cri_view_init(struct dv_cri_view *view, struct dv_cri *cri);
/* Frees what the view holds; to be called when all calls have ended. */
void dv_cri_view_fini(struct dv_cri_view *view);
/* Stops all timers and tasks: the runtime is being closed. */
void dv_cri_view_stop(struct dv_cri_view *view);
/* To be called when the runtime can be asked, on a new connection. */
void dv_cri_view_begin(struct dv_cri_view *view);

/* -- Listings: cri_listing.c -- */

/* Lists everything as soon as it can be. */
void dv_cri_listing_now(struct dv_cri_view *view);
/* Starts a call that lists sandboxes or containers; of one pod when `uid` is not empty. */
void dv_cri_listing_call(struct dv_cri *cri, enum dv_cri_kind kind, dv_str uid,
                         struct dv_call *call);
/* Has the timer come when there is something to do next: a listing, or a look to be repeated. */
void dv_cri_listing_set_timer(struct dv_cri_view *view);

/* -- Looks: cri_look.c -- */

/* The record of the pod, made when there is none. */
struct dv_cri_record *dv_cri_look_record(struct dv_cri_view *view, dv_str uid);
/* Has the pod looked at. */
void dv_cri_look_want(struct dv_cri_view *view, struct dv_cri_record *record);
/* Puts the looks that failed into the queue again. */
void dv_cri_look_retry(struct dv_cri_view *view);
/* Starts looks from the queue, as many as may run at a time. */
void dv_cri_look_start(struct dv_cri_view *view);
/* Finds out whether every pod of the first listing has been looked at. */
void dv_cri_view_review(struct dv_cri_view *view);
/* Has pod_changed run for the pod. */
void dv_cri_view_tell(struct dv_cri_view *view, struct dv_cri_record *record);
/* Frees the record with all that it has. */
void dv_cri_look_forget(struct dv_cri_view *view, struct dv_cri_record *record);

/* -- Events: cri_events.c -- */

void dv_cri_events_begin(struct dv_cri_view *view);
void dv_cri_events_stop(struct dv_cri_view *view);
/* Whether the runtime tells of changes by itself, so that a listing is rarely needed. */
bool dv_cri_events_flow(const struct dv_cri_view *view);

#endif
