/* node_uses.c - counts what is held on the node, and tells how much that was during the last
 * hour. */
#include <stddef.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/str.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "proto/davit_node_v1.pb-c.h"
#include "serve/node/serve_answer.h"
#include "serve/node/use_ring.h"
#include "serve/serve.h"

void dv_serve_count_uses(const struct dv_node *node, struct dv_use_ring *ring)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_claim_state *state = dv_claim_manager_state(node->claims);
    const struct dv_serve_resource *resources;
    size_t n = dv_serve_resources(node, arena, &resources);
    const struct dv_claim *claim;

    dv_use_ring_begin(ring);
    for (size_t i = 0; i < n; i++)
        dv_use_ring_add(ring, &(struct dv_use_key){.resource = resources[i].name},
                        resources[i].held);
    for (size_t at = 0; (claim = dv_claim_next(state, &at)) != NULL;)
        for (size_t i = 0; i < claim->record.n_drivers; i++) {
            const struct dv_claim_driver *driver = &claim->record.drivers[i];

            for (size_t k = 0; k < driver->n_devices; k++)
                dv_use_ring_add(
                    ring,
                    &(struct dv_use_key){.driver = driver->name, .pool = driver->devices[k].pool},
                    1);
        }
}

NodeV1__Uses *dv_serve_uses(const struct dv_use_ring *ring, struct dv_arena *arena)
{
    NodeV1__Uses *message = DV_NEW(arena, NodeV1__Uses);
    struct dv_past_use *uses;
    size_t n = dv_use_ring_list(ring, arena, &uses);

    node_v1__uses__init(message);
    message->use_step_ms = DV_USE_STEP_MS;
    message->uses = DV_NEW_ARRAY(arena, NodeV1__Use *, n);
    for (size_t i = 0; i < n; i++) {
        NodeV1__Use *use = DV_NEW(arena, NodeV1__Use);

        node_v1__use__init(use);
        use->resource = dv_str_to_c(uses[i].key.resource, arena);
        use->driver = dv_str_to_c(uses[i].key.driver, arena);
        use->pool = dv_str_to_c(uses[i].key.pool, arena);
        use->held = DV_NEW_ARRAY(arena, uint32_t, uses[i].n);
        for (size_t k = 0; k < uses[i].n; k++)
            use->held[use->n_held++] = uses[i].held[k];
        message->uses[message->n_uses++] = use;
    }
    return message;
}
