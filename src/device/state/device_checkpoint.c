/* device_checkpoint.c - makes a checkpoint from a state, and loads one into a state. */
#include "base/arena.h"
#include "base/err.h"
#include "device/kubelet_checkpoint.h"
#include "device/state/device_message.h"
#include "device/state/device_state.h"

static void take_registered(const struct dv_device_resource *resource, struct dv_arena *arena,
                            struct dv_device_registered *registered)
{
    size_t n_healthy = dv_device_resource_n_healthy(resource);
    dv_str *ids = DV_NEW_ARRAY(arena, dv_str, n_healthy);
    size_t n = 0;

    for (size_t i = 0; i < resource->ranked.n && n < n_healthy; i++)
        if (dv_device_is_healthy_now(resource->ranked.v[i]))
            ids[n++] = resource->ranked.v[i]->id;
    *registered = (struct dv_device_registered){resource->name, ids, n};
}

void dv_device_checkpoint_take(const struct dv_device_state *state, struct dv_arena *arena,
                               struct dv_device_checkpoint *checkpoint)
{
    struct dv_device_resource **resources;
    size_t n_resources = dv_device_resources_sorted(state, arena, &resources);
    struct dv_device_registered *registered =
        DV_NEW_ARRAY(arena, struct dv_device_registered, n_resources);
    struct dv_device_record *records = DV_NEW_ARRAY(arena, struct dv_device_record, state->held.n);
    const struct dv_map_entry *entry;

    *checkpoint = (struct dv_device_checkpoint){.registered = registered};
    for (size_t i = 0; i < n_resources; i++)
        if (resources[i]->has_healthy)
            take_registered(resources[i], arena, &registered[checkpoint->n_registered++]);
    for (size_t at = 0; (entry = dv_map_next(&state->held, &at)) != NULL;)
        dv_device_held_describe(entry->value, arena, &records[checkpoint->n_records++]);
    if (checkpoint->n_records > 0)
        checkpoint->records = records; /* NULL when there are none: the reference writes null */
}

void dv_device_checkpoint_load(struct dv_device_state *state,
                               const struct dv_device_checkpoint *checkpoint, uint64_t now_ns,
                               size_t *n_left_out)
{
    struct dv_err err;

    *n_left_out = 0;
    for (size_t i = 0; i < checkpoint->n_records; i++) {
        if (dv_device_response_check(checkpoint->records[i].response, &err))
            (void)dv_device_held_restore(state, &checkpoint->records[i]); /* is in the state now */
        else
            ++*n_left_out;
    }
    for (size_t i = 0; i < checkpoint->n_registered; i++)
        dv_device_resource_restore(state, checkpoint->registered[i].resource, now_ns);
}
