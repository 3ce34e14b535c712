/* admission.h - the steps of an admission, a release and the start of a container.
 *
 * admission.c has the table: in which order they come, and what follows each outcome. What a step
 * does is in step_*.c; it takes the operation, and tells its outcome by returning it or, after
 * DV_STEP_PENDING, by dv_pod_operation_go from a callback. No step calls another one.
 *
 * Steps are dv_admit_* (of an admission), dv_release_* and dv_start_*; dv_admission_* and
 * dv_pod_operation_* are what several of them share. Other modules start operations with
 * dv_pods_admit, dv_pods_release and dv_pods_start_container (pod.h). */
#ifndef DV_POD_ADMISSION_H
#define DV_POD_ADMISSION_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "pod/pod.h"

struct dv_claim_operation;
struct dv_device_state;
struct dv_err;

/* ---- admission.c ---- */

/* Tells that the operation's step has this outcome, and runs the steps that follow. The operation
 * may end in this call, and its memory with it. */
void dv_pod_operation_go(struct dv_pod_operation *op, enum dv_pod_outcome outcome);
/* Like dv_pod_operation_go, but after the code that runs now has returned. Returns DV_STEP_PENDING,
 * for steps to return. Steps use it when the caller who started the operation may still be on the
 * stack: `done` must not run within that call. */
enum dv_pod_outcome dv_pod_operation_post(struct dv_pod_operation *op, enum dv_pod_outcome outcome);
/* Like dv_pod_operation_post, but in the next turn of the loop, for a step that is done in parts.
 */
enum dv_pod_outcome dv_pod_operation_post_next_turn(struct dv_pod_operation *op,
                                                    enum dv_pod_outcome outcome);
/* When the pods are closing, these give up the admissions that wait for devices and what pods have
 * asked of their claims. */
void dv_pods_cancel_waiting(struct dv_pods *pods);
void dv_pods_cancel_claims(struct dv_pods *pods);

struct dv_pod_admission *dv_admission_of(struct dv_pod_operation *op);
struct dv_pod_release *dv_release_of(struct dv_pod_operation *op);
struct dv_pod_start *dv_start_of(struct dv_pod_operation *op);

/* ---- the steps, in the order of the table ---- */

/* step_open.c: is it a pod, and is nothing else under way for it? */
enum dv_pod_outcome dv_admit_open(struct dv_pod_operation *op);
enum dv_pod_outcome dv_release_open(struct dv_pod_operation *op);
enum dv_pod_outcome dv_start_open(struct dv_pod_operation *op);

/* step_print.c: its row for the store is printed, that of a large pod on a worker. */
enum dv_pod_outcome dv_admit_print(struct dv_pod_operation *op);
void dv_admit_cancel_print(struct dv_pod_operation *op);

/* step_wait.c: is there what it asks for? Otherwise it waits. */
enum dv_pod_outcome dv_admit_look(struct dv_pod_operation *op);
enum dv_pod_outcome dv_admit_wait(struct dv_pod_operation *op);
void dv_admit_cancel_wait(struct dv_pod_operation *op);

/* step_align.c: on which NUMA nodes are its devices to be? */
enum dv_pod_outcome dv_admit_align_pod(struct dv_pod_operation *op);
enum dv_pod_outcome dv_admit_align_container(struct dv_pod_operation *op);

/* step_allocate.c: devices, container by container */
enum dv_pod_outcome dv_admit_begin(struct dv_pod_operation *op);
enum dv_pod_outcome dv_admit_next(struct dv_pod_operation *op);
enum dv_pod_outcome dv_admit_allocate(struct dv_pod_operation *op);
void dv_admit_cancel_allocate(struct dv_pod_operation *op);
/* PreStartContainer where plugins want it, and devices where none are recorded; nothing is run. */
enum dv_pod_outcome dv_start_find_plugins(struct dv_pod_operation *op);
enum dv_pod_outcome dv_start_ask_plugins(struct dv_pod_operation *op);
void dv_start_cancel_asking(struct dv_pod_operation *op);

/* step_claims.c: prepared before a pod is admitted, unprepared before it is gone */
enum dv_pod_outcome dv_admit_prepare(struct dv_pod_operation *op);
enum dv_pod_outcome dv_release_unprepare(struct dv_pod_operation *op);
enum dv_pod_outcome dv_start_prepare(struct dv_pod_operation *op);
void dv_pod_operation_cancel_claims(struct dv_pod_operation *op);
bool dv_pods_has_claims(const struct dv_pods *pods, dv_str uid);

/* step_check.c: is what it got what it seems, and nobody else's? */
enum dv_pod_outcome dv_admit_check(struct dv_pod_operation *op);
enum dv_pod_outcome dv_admit_take(struct dv_pod_operation *op);
enum dv_pod_outcome dv_admit_evade(struct dv_pod_operation *op);
/* Only whether the CDI names are found: what the pod has is not held against others again. */
enum dv_pod_outcome dv_start_find_specs(struct dv_pod_operation *op);

/* step_save.c */
enum dv_pod_outcome dv_admit_save(struct dv_pod_operation *op);
enum dv_pod_outcome dv_release_give_back(struct dv_pod_operation *op);

/* step_end.c: the last ones. Their operation may be gone when they return. */
enum dv_pod_outcome dv_admit_end_admitted(struct dv_pod_operation *op);
enum dv_pod_outcome dv_admit_end_refused(struct dv_pod_operation *op);
enum dv_pod_outcome dv_admit_end_failed(struct dv_pod_operation *op);
enum dv_pod_outcome dv_release_end_released(struct dv_pod_operation *op);
enum dv_pod_outcome dv_release_end_absent(struct dv_pod_operation *op);
enum dv_pod_outcome dv_release_end_failed(struct dv_pod_operation *op);
enum dv_pod_outcome dv_start_end_ready(struct dv_pod_operation *op);
enum dv_pod_outcome dv_start_end_failed(struct dv_pod_operation *op);

/* ---- what the steps of an admission share ---- */

struct dv_device_state *dv_admission_devices(const struct dv_pod_admission *admission);
/* The pod that others see of this admission: the one that was admitted before, if there is one. */
struct dv_pod *dv_admission_shown(const struct dv_pod_admission *admission);

/* step_end.c: DV_STEP_REFUSED, with a copy of the message */
enum dv_pod_outcome dv_admission_refuse(struct dv_pod_admission *admission,
                                        enum dv_pod_refusal refusal, dv_str message, bool may_come);
/* Like dv_admission_refuse, for a pod that may be admitted later; it counts as a failure of the
 * topology policy. */
enum dv_pod_outcome dv_admission_refuse_for_now(struct dv_pod_admission *admission,
                                                enum dv_pod_refusal refusal,
                                                const struct dv_err *err);
/* Returns DV_STEP_FAILED with this error. When the operation was given up before, that error
 * stays. */
enum dv_pod_outcome dv_pod_operation_fail(struct dv_pod_operation *op, const struct dv_err *err);

/* step_wait.c */
void dv_admission_stop_waiting(struct dv_pod_admission *admission);
/* Has the pod wait for a plugin that is not there, if it may: its state becomes DV_POD_WAITING and
 * says for what, and the caller returns DV_STEP_ABSENT. False: there is none to wait for. */
bool dv_admission_await_plugin(struct dv_pod_admission *admission);

/* step_allocate.c: refuses it for an error of the device module */
enum dv_pod_outcome dv_admission_refuse_allocation(struct dv_pod_admission *admission,
                                                   const struct dv_err *err);

/* step_check.c */
/* Whether the pod may have these devices of this resource, asked before their plugin is called. */
DV_CHECKED bool dv_admission_reserve(struct dv_pod_admission *admission, dv_str resource,
                                     const dv_str *ids, size_t n_ids, struct dv_err *err);
/* Prepares the memory for the rival, the pod that has what this one is about to get. */
void dv_admission_open_aside(struct dv_pod_admission *admission);
/* Lets go of all devices that the admission keeps back (see device_state.h): they can be chosen for
 * others again. Forgets how far it was with taking its own. */
void dv_admission_let_go(struct dv_pod_admission *admission);

#endif
