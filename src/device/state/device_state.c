/* device_state.c - a dv_device_state from its start to its end, and what it is told about
 * containers. */
#include "device/state/device_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/row.h"

struct dv_device_state *dv_device_state_new(const struct dv_device_opts *opts)
{
    struct dv_device_state *state = DV_ALLOC(struct dv_device_state);

    if (opts)
        state->opts = *opts;
    dv_list_init(&state->lenders);
    dv_list_init(&state->inactive);
    dv_list_init(&state->leaked);
    dv_list_init(&state->dirty);
    dv_buf_init(&state->key, DV_ROW_BYTES_MAX);
    return state;
}

static void forget_running(struct dv_device_state *state)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&state->running, &at)) != NULL;)
        free(entry->value);
    dv_map_fini(&state->running);
}

void dv_device_state_free(struct dv_device_state *state)
{
    const struct dv_map_entry *entry;

    if (!state)
        return;
    for (size_t at = 0; (entry = dv_map_next(&state->held, &at)) != NULL;)
        dv_device_held_remove(entry->value);
    for (size_t at = 0; (entry = dv_map_next(&state->resources, &at)) != NULL;)
        dv_device_resource_free(entry->value);
    for (size_t at = 0; (entry = dv_map_next(&state->pods, &at)) != NULL;)
        dv_device_pod_free(entry->value);
    for (size_t i = 0; i < state->gone.n; i++)
        dv_buf_fini(&state->gone.v[i]);
    dv_vec_fini(&state->gone);
    forget_running(state);
    dv_map_fini(&state->held);
    dv_map_fini(&state->resources);
    dv_map_fini(&state->pods);
    dv_buf_fini(&state->key);
    free(state);
}

void dv_device_state_freep(struct dv_device_state **state)
{
    dv_device_state_free(*state);
}

void dv_device_set_sources_ready(struct dv_device_state *state, bool is_ready)
{
    state->is_ready = is_ready;
    if (is_ready)
        forget_running(state);
}

/* The key of a running container: the length of the uid tells the two names apart. */
static dv_str running_key(struct dv_device_state *state, dv_str pod_uid, dv_str container)
{
    dv_buf_clear(&state->key);
    dv_buf_add(&state->key, (dv_str){(const char *)&pod_uid.n, sizeof(pod_uid.n)});
    dv_buf_add(&state->key, pod_uid);
    dv_buf_add(&state->key, container);
    return dv_buf_str(&state->key);
}

void dv_device_add_running(struct dv_device_state *state, dv_str pod_uid, dv_str container)
{
    dv_str key = running_key(state, pod_uid, container);
    char *copy;

    if (dv_map_get(&state->running, key))
        return;
    copy = dv_alloc(key.n);
    memcpy(copy, key.p, key.n);
    (void)dv_map_set(&state->running, (dv_str){copy, key.n}, copy); /* is not there yet */
}

bool dv_device_is_running(struct dv_device_state *state, dv_str pod_uid, dv_str container)
{
    return dv_map_get(&state->running, running_key(state, pod_uid, container)) != NULL;
}
