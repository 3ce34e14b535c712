/* cri_list.h - the listings of a runtime and its events, read in place. Pure.
 *
 * A listing comes every second and is nearly always the same, so only what tells a change is read:
 * whose a thing is, its id and its state. */
#ifndef DV_CRI_LIST_H
#define DV_CRI_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_err;

enum dv_cri_kind {
    DV_CRI_SANDBOX,
    DV_CRI_CONTAINER,
};

struct dv_cri_listed {
    enum dv_cri_kind kind;
    dv_str id;
    dv_str uid;    /* of its pod; empty: it is nobody's that we know */
    int64_t state; /* as it came: maybe none that CRI has */
};

struct dv_cri_list {
    struct dv_cri_listed *v;
    size_t n;
    size_t size;
};

/* Adds what a ListPodSandboxResponse or ListContainersResponse has to `list`; texts are copied into
 * `arena`. What has no id or no pod is left out. DV_INTERNAL: it is no such message. */
DV_CHECKED bool dv_cri_list_read(enum dv_cri_kind kind, dv_str message, struct dv_arena *arena,
                                 struct dv_cri_list *list, struct dv_err *err);

/* Which pod a ContainerEventResponse is about. `uid` is empty when it does not say; `id` is that of
 * the container or sandbox. Both are borrowed from the message. */
DV_CHECKED bool dv_cri_event_read(dv_str message, dv_str *uid, dv_str *id, struct dv_err *err);

#endif
