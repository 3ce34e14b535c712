/* bare_conditions.h - the conditions of a pod whose containers davitd does not start, made from
 * their statuses. Pure. */
#ifndef DV_POD_BARE_CONDITIONS_H
#define DV_POD_BARE_CONDITIONS_H

#include <stdbool.h>

struct dv_api_container;
struct dv_api_container_state_terminated;
struct dv_api_container_status;
struct dv_api_pod_status;
struct dv_arena;
struct dv_bare_facts;

/* Whether an init container goes on when it has started. */
bool dv_bare_is_sidecar(const struct dv_api_container *container);
/* The end that the status tells of: of this run, or of the one before while the next is awaited;
 * NULL: there is none. */
const struct dv_api_container_state_terminated *
dv_bare_end_of(const struct dv_api_container_status *status);
/* Whether the init container lets the next one start. */
bool dv_bare_is_done(const struct dv_api_container *container,
                     const struct dv_api_container_status *status);

/* Begins the conditions, with the one that tells of devices. */
void dv_bare_add_devices(const struct dv_bare_facts *facts, struct dv_arena *arena,
                         struct dv_api_pod_status *status);
/* Adds the others, from the container statuses and the phase that are there. `is_running`: some
 * container is. */
void dv_bare_add_conditions(const struct dv_bare_facts *facts, bool is_running,
                            struct dv_api_pod_status *status, struct dv_arena *arena);

#endif
