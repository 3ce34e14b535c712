/* evict.h - pods on devices that must not be used any more: who has to go, when, and because of
 * which rules. */
#ifndef DV_CONTROL_EVICT_H
#define DV_CONTROL_EVICT_H

#include <stddef.h>

#include "base/str.h"

struct dv_api_pod;
struct dv_control;
struct dv_evictor;
struct dv_object;
struct dv_queue_item;

struct dv_evictor *dv_evictor_new(struct dv_control *control);
void dv_evictor_free(struct dv_evictor *evictor); /* NULL is fine */
/* All views have been filled: begins to decide. */
void dv_evictor_start(struct dv_evictor *evictor);

/* One of both is NULL when the pod came or went. */
void dv_evictor_pod_changed(struct dv_evictor *evictor, dv_str key, const struct dv_api_pod *old,
                            const struct dv_api_pod *now);
void dv_evictor_claim_changed(struct dv_evictor *evictor, dv_str key, struct dv_object *now);
/* For views: ctx is the dv_control. */
void dv_evictor_slice_changed(void *ctx, struct dv_object *old, struct dv_object *now);
void dv_evictor_rule_changed(void *ctx, struct dv_object *old, struct dv_object *now);

size_t dv_evictor_n_pending(const struct dv_evictor *evictor);

size_t dv_control_eviction_sync_bytes(void);
void dv_control_eviction_sync_run(struct dv_queue_item *item);
size_t dv_control_rule_sync_bytes(void);
void dv_control_rule_sync_run(struct dv_queue_item *item);

#endif
