/* outside.h - how many devices are held by pods that no API accounts for: sums that are kept as
 * pods come and go, so that a change costs what the pod holds and not what all pods do.
 *
 * A device counts once however many containers hold it, and only while it is healthy: another one
 * cannot be allocated anyway. Pure: what pods hold is asked of a device state. */
#ifndef DV_POD_OUTSIDE_H
#define DV_POD_OUTSIDE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct dv_device_state;
struct dv_outside;

struct dv_outside *dv_outside_new(void);
void dv_outside_free(struct dv_outside *outside); /* NULL is fine */

/* Counts what the pod holds now, or nothing of it. False: the sums are as before, since it neither
 * held nor holds anything that counts here. */
bool dv_outside_set(struct dv_outside *outside, const struct dv_device_state *state, dv_str pod_uid,
                    bool is_outside);
/* How many healthy devices of the resource are held outside the API. Costs the number of those that
 * are held, healthy or not, when the resource's list or plugins have changed since it was asked
 * last. */
size_t dv_outside_count(struct dv_outside *outside, const struct dv_device_state *state,
                        dv_str resource);

#endif
