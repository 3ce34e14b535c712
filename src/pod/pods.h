/* pods.h - what the files of this module share. */
#ifndef DV_POD_PODS_H
#define DV_POD_PODS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "device/device.h"
#include "loop/loop.h"
#include "pod/pod.h"

struct dv_arena;

struct dv_pod {
    struct dv_pods *pods;
    struct dv_arena *arena; /* of everything it has */
    struct dv_pod_spec spec;
    dv_str json;          /* as it came, for the store */
    dv_str full_name;     /* "namespace/name" */
    struct dv_pod *older; /* the next one of that name, by time of arrival */
    enum dv_pod_state state;
    bool was_admitted;
    dv_str awaited; /* in `arena`; a pod waits for few things in its life */
    uint64_t since_wall_ns;
};

struct dv_pods {
    struct dv_loop *loop;
    struct dv_pods_options options;
    struct dv_map by_uid;   /* dv_pod */
    struct dv_map by_name;  /* the latest of that name */
    struct dv_list waiting; /* dv_pod_admission, for devices */
    struct dv_task look_task;
    struct dv_task changed_task;
    struct dv_task close_task;
    size_t n_under_way; /* admissions, releases and starts */
    bool is_closing;
    dv_closed_fn *closed;
    void *closed_ctx;
};

/* pods.c */
/* A pod of this spec, in no map yet. Takes the arena that the spec is in. */
struct dv_pod *dv_pod_new(struct dv_pods *pods, struct dv_arena *arena,
                          const struct dv_pod_spec *spec, dv_str json);
void dv_pod_free(struct dv_pod *pod);
void dv_pods_add(struct dv_pods *pods, struct dv_pod *pod);
/* Out of the maps and gone. */
void dv_pods_remove(struct dv_pods *pods, struct dv_pod *pod);
struct dv_pod *dv_pods_get(const struct dv_pods *pods, const struct dv_pod_ref *ref);
void dv_pod_set_state(struct dv_pod *pod, enum dv_pod_state state);
void dv_pods_tell_changed(struct dv_pods *pods);
/* One thing that a closing module waits for is over. */
void dv_pods_end_one(struct dv_pods *pods);
/* The request that allocation and start of a container have in common. */
struct dv_device_request dv_pod_request(const struct dv_pod *pod, size_t i_container);

/* admit.c */
void dv_pods_look(struct dv_pods *pods);
void dv_pods_cancel_waiting(struct dv_pods *pods);

#endif
