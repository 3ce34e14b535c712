/* auth_pool.c - the pools that a token's slices may be in.
 *
 * A pool is known by its driver and name alone: a slice from elsewhere makes it old or incomplete
 * for the node whose pool it is, and who holds a device of the one holds that of the other. Nearly
 * all drivers name a node's pool after the node, and a node can come later than a slice that has
 * taken its name. Who came first therefore cannot decide. A pool belongs to the node that its name
 * begins with ("n1", "n1/gpus": no node's name has a slash), and a driver's token makes slices in
 * pools of its own node, and in those that an administrator has named for it. */
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "resource/resource.h"
#include "resource/validate.h"
#include "serve/auth.h"
#include "serve/auth/auth_rules.h"

/* The limit of pools in a token: more than any driver has on a node, and each is looked at with
 * each write. */
#define POOLS_MAX 32u

bool dv_auth_give_pools(struct dv_api_user_info *user, const dv_str *pools, size_t n_pools,
                        struct dv_arena *arena, struct dv_err *err)
{
    if (n_pools > POOLS_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT, "a token can be given %u pools, not %zu",
                       POOLS_MAX, n_pools);
    for (size_t i = 0; i < n_pools; i++)
        if (!dv_is_pool_name(pools[i]))
            return dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\" is not the name of a pool",
                           DV_FMT(dv_str_slice(pools[i], 0, 64)));
    dv_auth_add_extra(user, DV_STR(DV_EXTRA_POOLS), pools, n_pools, arena);
    return true;
}

dv_str dv_auth_pool_owner(dv_str pool)
{
    return dv_str_slice(pool, 0, dv_str_find_char(pool, '/'));
}

static bool is_given(const struct dv_strs *pools, dv_str pool)
{
    for (size_t i = 0; i < pools->n; i++)
        if (dv_str_eq(pools->v[i], pool))
            return true;
    return false;
}

/* Whether the token may use the pool. A slice that is in a pool already stays there, whoever put it
 * there, and may be updated. A node's own program has no list of pools: it may make what the
 * reference lets it make. */
static bool may_name(const struct dv_auth_write *write, dv_str pool)
{
    struct dv_strs given = dv_auth_extra(write->user, DV_STR(DV_EXTRA_POOLS));

    if (write->change->old || !write->driver.n || is_given(&given, pool))
        return true;
    if (!write->node.n)
        return given.n == 0 ||
               dv_auth_deny(write, "pool \"%.*s\" is none of those that the token is for",
                            DV_FMT(pool));
    return dv_auth_deny(write,
                        "pool \"%.*s\" is not named after node \"%.*s\" (\"%.*s\", \"%.*s/...\"), "
                        "nor one that the token is for (davit token create --pool)",
                        DV_FMT(pool), DV_FMT(write->node), DV_FMT(write->node),
                        DV_FMT(write->node));
}

/* Checks the pool of a slice. A pool that is named after a node belongs to that node, whoever was
 * first to use the name: from then on the slices of others in it cannot be changed. */
bool dv_auth_check_pool(const struct dv_auth_write *write)
{
    const struct dv_api_resource_slice *slice = write->change->value;
    const char *advice =
        write->node.n ? ": choose another name, as that of the own node" : ": choose another name";
    const struct dv_object *rival = write->change->rival;
    const struct dv_api_resource_slice *other = rival ? rival->value : NULL;
    dv_str pool = slice->spec.pool.name;
    dv_str owner = dv_auth_pool_owner(pool);

    if (write->node.n && dv_str_eq(owner, write->node))
        return true;
    if (write->change->is_pool_of_node)
        return dv_auth_deny(write, "pool \"%.*s\" has the name of another node%s", DV_FMT(pool),
                            advice);
    if (write->change->old && other && !dv_str_eq(other->spec.node_name, owner))
        other = NULL;
    if (other && other->spec.node_name.n > 0)
        return dv_auth_deny(write, "pool \"%.*s\" is of node \"%.*s\" (slice \"%.*s\")%s",
                            DV_FMT(pool), DV_FMT(other->spec.node_name), DV_FMT(rival->meta->name),
                            advice);
    if (other)
        return dv_auth_deny(write, "pool \"%.*s\" is not of this node alone (slice \"%.*s\")%s",
                            DV_FMT(pool), DV_FMT(rival->meta->name), advice);
    return may_name(write, pool);
}
