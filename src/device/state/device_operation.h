/* device_operation.h - an allocation or a start under way, for the files of this folder. */
#ifndef DV_DEVICE_OPERATION_H
#define DV_DEVICE_OPERATION_H

#include "base/err.h"
#include "base/str.h"
#include "device/state/device_state.h"

enum dv_device_phase {
    DV_DEVICE_PRE_STARTING,
    DV_DEVICE_ALLOCATING,
};

struct dv_device_operation {
    struct dv_device_state *state;
    struct dv_device_pod *pod;
    struct dv_arena *arena; /* the request */
    struct dv_device_request request;
    enum dv_device_phase phase;
    size_t at;             /* the limit that is being handled */
    bool has_collected;    /* once for an operation */
    bool needs_allocation; /* a start found a resource without a record */
    struct dv_arena *scratch;
    struct dv_device_step step;

    /* The choice of devices that is being made. */
    struct dv_device_resource *resource; /* counted in its n_operations; NULL without */
    DV_VEC(struct dv_device *) taken;    /* counted in their n_reserved */
    uint64_t n_required;
    uint64_t n_needed;    /* still */
    bool is_aligned_only; /* more are aligned than needed: no others may be chosen */
};

/* -- device_operation.c */

/* Handles limits until the operation has to wait, or is at its end. */
void dv_device_operation_go_on(struct dv_device_operation *operation);
/* Whether the limit is for a plugin that we know. */
bool dv_device_operation_is_for_plugins(const struct dv_device_operation *operation,
                                        const struct dv_device_limit *limit);
/* Counts the operation among those of the resource, which stays until it is left. */
void dv_device_operation_use_resource(struct dv_device_operation *operation,
                                      struct dv_device_resource *resource);
/* Counts it no longer; does nothing without a resource. */
void dv_device_operation_leave_resource(struct dv_device_operation *operation);
/* Ends the choice: what was taken is held, free, or left taken as in the reference. */
void dv_device_operation_release_taken(struct dv_device_operation *operation, bool stays_taken);
/* Sets the step to a call of the plugin with these devices. */
void dv_device_operation_call(struct dv_device_operation *operation, enum dv_device_step_kind kind,
                              const struct dv_device_plugin *plugin,
                              struct dv_device *const *devices, size_t n);
/* Copies ids, so that they last whatever happens to the devices. */
dv_str *dv_device_operation_copy_ids(struct dv_device_operation *operation,
                                     struct dv_device *const *devices, size_t n);

/* Sets the step to a failure, and gives back what was taken. Returns false. */
bool dv_device_operation_fail(struct dv_device_operation *operation, enum dv_device_failure failure,
                              const char *fmt, ...) DV_PRINTF(3, 4);
/* Like dv_device_operation_fail, with what the plugin said, in the reference's words. */
bool dv_device_operation_fail_status(struct dv_device_operation *operation,
                                     enum dv_device_failure failure, const char *before,
                                     const struct dv_err *status);
bool dv_device_operation_fail_stopped(struct dv_device_operation *operation,
                                      enum dv_device_failure failure, const char *before);

/* -- allocate.c. Limits: true when done with it; otherwise the operation waits or has failed. */

bool dv_device_allocate_limit(struct dv_device_operation *operation,
                              const struct dv_device_limit *limit);
/* Lends all that an init container holds to later containers; others keep theirs. */
void dv_device_hand_on(struct dv_device_operation *operation);
void dv_device_preferred_answered(struct dv_device_operation *operation, dv_str response);
void dv_device_preferred_refused(struct dv_device_operation *operation,
                                 const struct dv_err *status);
void dv_device_allocate_answered(struct dv_device_operation *operation, dv_str response);
void dv_device_allocate_refused(struct dv_device_operation *operation, const struct dv_err *status);

/* -- device_start.c */

bool dv_device_pre_start_limit(struct dv_device_operation *operation,
                               const struct dv_device_limit *limit);
void dv_device_pre_start_answered(struct dv_device_operation *operation, dv_str response);
void dv_device_pre_start_refused(struct dv_device_operation *operation,
                                 const struct dv_err *status);

/* -- choose.c */

enum dv_device_choice {
    DV_DEVICE_CHOSE_NOTHING, /* nothing is needed */
    DV_DEVICE_CHOSEN,        /* operation->taken */
    DV_DEVICE_CHOICE_ASKS,   /* the step asks the plugin for its preference */
    DV_DEVICE_CHOICE_FAILED, /* the step says why */
};

/* Chooses the devices of operation->resource, as the kubelet's devicesToAllocate does. */
enum dv_device_choice dv_device_choose(struct dv_device_operation *operation,
                                       const struct dv_device_limit *limit);
/* Goes on with the plugin's preference, which may name anything. */
enum dv_device_choice dv_device_choose_preferred(struct dv_device_operation *operation,
                                                 const dv_str *ids, size_t n_ids);

#endif
