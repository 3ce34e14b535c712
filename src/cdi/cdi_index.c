/* cdi_index.c - which spec has which device.
 *
 * A conflict counts among the specs of the highest priority that have the device: what lies under
 * them is not used anyway. (The reference drops a device for a conflict at any priority.) */
#include "cdi/cdi_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "cdi/cdi.h"

/* ---- specs in their order ---- */

int dv_cdi_ranked_cmp(const struct dv_cdi_ranked *a, const struct dv_cdi_ranked *b)
{
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    if (a->number > 0)
        return 0;
    if (a->spec->priority != b->spec->priority)
        return a->spec->priority < b->spec->priority ? -1 : 1;
    return dv_str_cmp(a->spec->path, b->spec->path);
}

/* The first place whose spec does not come before `ranked`. */
static size_t find_rank(const struct dv_cdi_ranks *ranks, const struct dv_cdi_ranked *ranked)
{
    size_t low = 0;
    size_t high = ranks->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (dv_cdi_ranked_cmp(&ranks->v[middle], ranked) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void add_rank(struct dv_cdi_ranks *ranks, const struct dv_cdi_ranked *ranked)
{
    size_t at = find_rank(ranks, ranked);

    (void)dv_vec_add(ranks); /* room for it; the rest moves up */
    memmove(&ranks->v[at + 1], &ranks->v[at], (ranks->n - 1 - at) * sizeof(ranks->v[0]));
    ranks->v[at] = *ranked;
}

static void remove_rank(struct dv_cdi_ranks *ranks, const struct dv_cdi_ranked *ranked)
{
    dv_vec_remove(ranks, find_rank(ranks, ranked));
}

static void add_to_kind(struct dv_cdi_index *index, const struct dv_cdi_ranked *ranked)
{
    dv_str name = ranked->spec->kind;
    struct dv_cdi_kind *kind = dv_map_get(&index->kinds, name);

    if (!kind) {
        kind = dv_alloc(sizeof(*kind) + name.n);
        memcpy(kind->text, name.p, name.n); /* a spec without problems has one */
        kind->name = (dv_str){kind->text, name.n};
        (void)dv_map_set(&index->kinds, kind->name, kind); /* it was absent */
    }
    add_rank(&kind->specs, ranked);
}

static void free_kind(struct dv_cdi_kind *kind)
{
    dv_vec_fini(&kind->specs);
    free(kind);
}

static void remove_from_kind(struct dv_cdi_index *index, const struct dv_cdi_ranked *ranked)
{
    struct dv_cdi_kind *kind = dv_map_get(&index->kinds, ranked->spec->kind);

    remove_rank(&kind->specs, ranked);
    if (kind->specs.n == 0) {
        (void)dv_map_remove(&index->kinds, kind->name);
        free_kind(kind);
    }
}

/* ---- names ---- */

/* The first of the highest priority counts, and the second of it is the rival. */
static struct dv_cdi_entry choose(const struct dv_cdi_named *named)
{
    struct dv_cdi_entry best = {0};

    for (size_t i = 0; i < named->n_holders; i++) {
        const struct dv_cdi_holder *holder = &named->holders[i];
        const struct dv_cdi_spec *spec = holder->ranked.spec;

        if (!best.spec || best.spec->priority < spec->priority)
            best = (struct dv_cdi_entry){.spec = spec, .device = holder->device};
        else if (best.spec->priority == spec->priority && !best.rival)
            best.rival = spec;
    }
    return best;
}

static void retire_entry(struct dv_cdi_index *index, struct dv_cdi_entry *entry)
{
    if (entry)
        *dv_vec_add(&index->gone_entries) = entry;
}

/* Updates a name after its holders have changed. The key is always borrowed from the spec that
 * counts. */
static void update_named(struct dv_cdi_index *index, struct dv_cdi_named *named)
{
    struct dv_cdi_entry *before = named->entry;
    struct dv_cdi_entry best = choose(named);
    struct dv_cdi_node_set *nodes;

    if (before && before->device == best.device && before->rival == best.rival)
        return;
    named->entry = DV_ALLOC(struct dv_cdi_entry);
    *named->entry = best;
    retire_entry(index, before);
    if (before && before->device == best.device)
        return;
    (void)dv_map_set(&index->by_name, best.device->full_name, named); /* itself, with another key */
    nodes = dv_cdi_node_set_ref(&index->nodes, best.spec->kind, best.device);
    dv_cdi_node_set_unref(&index->nodes, named->nodes);
    named->nodes = nodes;
}

static void add_device(struct dv_cdi_index *index, const struct dv_cdi_ranked *ranked,
                       const struct dv_cdi_device *device)
{
    struct dv_cdi_named *named = dv_map_get(&index->by_name, device->full_name);
    size_t at;

    if (!named)
        named = DV_ALLOC(struct dv_cdi_named);
    named->holders = dv_realloc(named->holders, (named->n_holders + 1) * sizeof(named->holders[0]));
    for (at = named->n_holders; at > 0; at--) {
        if (dv_cdi_ranked_cmp(&named->holders[at - 1].ranked, ranked) <= 0)
            break;
        named->holders[at] = named->holders[at - 1];
    }
    named->holders[at] = (struct dv_cdi_holder){*ranked, device};
    named->n_holders++;
    update_named(index, named);
}

static void free_named(struct dv_cdi_index *index, struct dv_cdi_named *named)
{
    dv_cdi_node_set_unref(&index->nodes, named->nodes);
    free(named->holders);
    free(named);
}

static void remove_device(struct dv_cdi_index *index, const struct dv_cdi_device *device)
{
    struct dv_cdi_named *named = dv_map_get(&index->by_name, device->full_name);
    size_t at = 0;

    while (named->holders[at].device != device)
        at++;
    named->n_holders--;
    memmove(&named->holders[at], &named->holders[at + 1],
            (named->n_holders - at) * sizeof(named->holders[0]));
    if (named->n_holders > 0) {
        update_named(index, named);
        return;
    }
    (void)dv_map_remove(&index->by_name, device->full_name);
    retire_entry(index, named->entry);
    free_named(index, named);
}

/* ---- the whole ---- */

static void add_spec(struct dv_cdi_index *index, const struct dv_cdi_ranked *ranked)
{
    const struct dv_cdi_spec *spec = dv_cdi_spec_ref(ranked->spec);

    index->n_specs++;
    if (spec->n_problems > 0) {
        add_rank(&index->refused, ranked);
        return;
    }
    add_to_kind(index, ranked);
    for (size_t i = 0; i < spec->n_devices; i++)
        add_device(index, ranked, &spec->devices[i]);
}

struct dv_cdi_index *dv_cdi_index_new(struct dv_cdi_spec *const *specs, size_t n_specs)
{
    struct dv_cdi_index *index = DV_ALLOC(struct dv_cdi_index);

    dv_map_init(&index->kinds);
    dv_map_init(&index->by_name);
    dv_cdi_node_index_init(&index->nodes);
    for (size_t i = 0; i < n_specs; i++)
        add_spec(index, &(struct dv_cdi_ranked){specs[i], i + 1});
    return index;
}

void dv_cdi_index_add(struct dv_cdi_index *index, struct dv_cdi_spec *spec)
{
    add_spec(index, &(struct dv_cdi_ranked){spec, 0});
}

void dv_cdi_index_remove(struct dv_cdi_index *index, struct dv_cdi_spec *spec)
{
    const struct dv_cdi_ranked ranked = {spec, 0};

    index->n_specs--;
    *dv_vec_add(&index->gone_specs) = spec;
    if (spec->n_problems > 0) {
        remove_rank(&index->refused, &ranked);
        return;
    }
    remove_from_kind(index, &ranked);
    for (size_t i = 0; i < spec->n_devices; i++)
        remove_device(index, &spec->devices[i]);
}

void dv_cdi_index_sweep(struct dv_cdi_index *index)
{
    for (size_t i = 0; i < index->gone_specs.n; i++)
        dv_cdi_spec_unref(index->gone_specs.v[i]);
    for (size_t i = 0; i < index->gone_entries.n; i++)
        free(index->gone_entries.v[i]);
    dv_vec_fini(&index->gone_specs);
    dv_vec_fini(&index->gone_entries);
}

static void unref_all(struct dv_cdi_ranks *ranks)
{
    for (size_t i = 0; i < ranks->n; i++)
        dv_cdi_spec_unref(ranks->v[i].spec);
}

void dv_cdi_index_free(struct dv_cdi_index *index)
{
    const struct dv_map_entry *at;

    if (!index)
        return;
    dv_cdi_index_sweep(index);
    for (size_t i = 0; (at = dv_map_next(&index->by_name, &i)) != NULL;) {
        struct dv_cdi_named *named = at->value;

        free(named->entry);
        free_named(index, named);
    }
    dv_map_fini(&index->by_name); /* its keys are the specs', as are names of nodes */
    dv_cdi_node_index_fini(&index->nodes);
    for (size_t i = 0; (at = dv_map_next(&index->kinds, &i)) != NULL;) {
        struct dv_cdi_kind *kind = at->value;

        unref_all(&kind->specs);
        free_kind(kind);
    }
    dv_map_fini(&index->kinds);
    unref_all(&index->refused);
    dv_vec_fini(&index->refused);
    free(index);
}

void dv_cdi_index_freep(struct dv_cdi_index **index)
{
    dv_cdi_index_free(*index);
}

const struct dv_cdi_entry *dv_cdi_index_find(const struct dv_cdi_index *index, dv_str full_name)
{
    const struct dv_cdi_named *named = dv_map_get(&index->by_name, full_name);

    return named ? named->entry : NULL;
}

const struct dv_cdi_spec *dv_cdi_index_refused(const struct dv_cdi_index *index, size_t *at)
{
    return *at < index->refused.n ? index->refused.v[(*at)++].spec : NULL;
}
