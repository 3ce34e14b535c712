/* pods.h - what the files of this module share. */
#ifndef DV_POD_PODS_H
#define DV_POD_PODS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "loop/loop.h"
#include "pod/pod.h"
#include "topology/topology.h"

struct dv_arena;
struct dv_claim_operation;
struct dv_err;
struct dv_holdings;
struct dv_object;
struct dv_owner;

/* The longest text of what a pod waits for: the name of a resource, and some words. */
#define DV_POD_AWAITED_BYTES 512u

/* Objects up to this size are printed on the loop, which takes a fraction of a millisecond. */
#define DV_POD_PRINTED_BYTES_MAX (64u * 1024u)

struct dv_pod {
    struct dv_pods *pods;
    struct dv_arena *arena; /* of everything it has, but for the next one and `row_text` */
    /* The Pod as it came typed, or a newer one, for its row; when it uses claims the spec points
     * into it. NULL: it came as text, or its row is long and kept. */
    struct dv_object *object;
    struct dv_pod_spec spec;
    dv_str row;             /* for the store; empty: it is printed from the object */
    struct dv_buf row_text; /* the memory of a row that was printed from an object */
    dv_str full_name;       /* "namespace/name" */
    struct dv_pod *older;   /* the next one of that name, by time of arrival */
    enum dv_pod_state state;
    bool was_admitted;
    bool may_run;                               /* a container may have been started */
    bool has_ended;                             /* what ran in it has ended */
    struct dv_owner *owner;                     /* NULL: nobody that is watched */
    struct dv_buf awaited;                      /* what it waits for; up to DV_POD_AWAITED_BYTES */
    const struct dv_claim_operation *preparing; /* its claims; NULL: nothing is under way */
    uint64_t since_wall_ns;
};

/* The write of all pods into a store that was found damaged and began anew. */
struct dv_pod_rewrite {
    struct dv_save save;
    struct dv_arena *arena; /* of what is being written */
    struct dv_timer timer;  /* until the next attempt */
    uint64_t pause_ms;      /* before the attempt after that; 0: none has failed */
    bool is_lent;
};

struct dv_pods {
    struct dv_loop *loop;
    struct dv_pods_options options;
    struct dv_pod_marks *marks; /* of those that nobody has asked how to start; may be NULL */
    struct dv_map by_uid;       /* dv_pod */
    struct dv_map ended;        /* uids of pods that the API does not know to have ended */
    struct dv_map by_name;      /* the latest of that name */
    struct dv_map runs;         /* dv_runs: what was told about containers, by the pod's uid */
    struct dv_list waiting;     /* dv_pod_admission, for devices */
    struct dv_list claim_ops;   /* dv_pod_operation, whose claims are asked for */
    struct dv_task look_task;
    struct dv_task changed_task;
    struct dv_map changed;          /* the uids of pods that have changed, until that is told */
    struct dv_arena *changed_arena; /* of these uids; NULL: there are none */
    struct dv_task close_task;
    struct dv_pod_rewrite rewrite;
    struct dv_holdings *holdings;
    struct dv_topology_counts counts;
    size_t n_under_way; /* admissions, releases, starts, and the rewrite */
    bool has_runtime;   /* which starts the containers of the agent's pods */
    bool is_closing;
    dv_closed_fn *closed;
    void *closed_ctx;
};

/* pods.c */
/* A pod of this spec, in no map yet. Takes the arena that the spec is in. The caller sets its row
 * or its object. */
struct dv_pod *dv_pod_new(struct dv_pods *pods, struct dv_arena *arena,
                          const struct dv_pod_spec *spec);
void dv_pod_free(struct dv_pod *pod);
void dv_pods_add(struct dv_pods *pods, struct dv_pod *pod);
/* Takes the pod out of the maps and frees it. */
void dv_pods_remove(struct dv_pods *pods, struct dv_pod *pod);
struct dv_pod *dv_pods_get(const struct dv_pods *pods, const struct dv_pod_ref *ref);
void dv_pod_set_state(struct dv_pod *pod, enum dv_pod_state state);
/* Sets what the pod waits for; an empty text: nothing. False: it waited for that already. */
bool dv_pod_set_awaited(struct dv_pod *pod, const char *awaited);
void dv_pods_tell_changed(struct dv_pods *pods, dv_str uid);
/* Fails with DV_NOT_FOUND: no such pod is admitted here. */
void dv_pods_fail_unknown(const struct dv_pod_ref *ref, struct dv_err *err);
/* Tells that one operation, which a closing module waits for, is over. */
void dv_pods_end_one(struct dv_pods *pods);
/* The request that allocation and start of a container have in common. */
struct dv_device_request dv_pod_request(const struct dv_pod *pod, size_t i_container);

/* need.c: the functions return false when there is no such resource */
struct dv_pod_need {
    dv_str container;
    dv_str resource;
};
/* The first resource whose plugin is known here and has not come back, or not listed, yet. */
bool dv_pod_find_away(const struct dv_pod *pod, struct dv_pod_need *need);
/* The first resource that no plugin lists or has listed, and nobody holds. */
bool dv_pod_find_unknown(const struct dv_pod *pod, struct dv_pod_need *need);
/* A resource of which the pod needs more devices than are free, or are its own. */
struct dv_pod_shortage {
    dv_str resource;
    uint64_t n_needed; /* at the same time, at least */
    uint64_t n_listed; /* free or not, healthy or not */
};
/* Whether others hold devices of a resource that the pod asks for: if they did not, the pod might
 * be admitted. */
bool dv_pod_has_rivals(const struct dv_pod *pod);
bool dv_pod_find_shortage(const struct dv_pod *pod, struct dv_pod_shortage *shortage);

/* ended.c */
#define DV_POD_ENDED_PREFIX "ended/" /* before a uid: a key of the store, of what has ended */
/* Keeps a copy of the uid. */
void dv_pods_note_ended(struct dv_pods *pods, dv_str uid);
void dv_pods_free_ended(struct dv_pods *pods);

/* admission.c: admissions that wait look whether they can go on, at once; dv_pods_look_again has it
 * done soon after the caller has returned. */
void dv_pods_look(struct dv_pods *pods);

#endif
