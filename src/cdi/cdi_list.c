/* cdi_list.c - the index for people: what there is, and what is wrong. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/map.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "cdi/cdi_index.h"

static int by_name(const void *a, const void *b)
{
    return dv_str_cmp((*(const struct dv_cdi_entry *const *)a)->device->full_name,
                      (*(const struct dv_cdi_entry *const *)b)->device->full_name);
}

const struct dv_cdi_entry **dv_cdi_index_list(const struct dv_cdi_index *index,
                                              struct dv_arena *arena, size_t *n_entries)
{
    const struct dv_cdi_entry **entries =
        DV_NEW_ARRAY(arena, const struct dv_cdi_entry *, index->by_name.n);
    const struct dv_map_entry *at;
    size_t place = 0;
    size_t n = 0;

    while ((at = dv_map_next(&index->by_name, &place)) != NULL)
        entries[n++] = ((const struct dv_cdi_named *)at->value)->entry;
    if (n > 0)
        qsort(entries, n, sizeof(const struct dv_cdi_entry *), by_name);
    *n_entries = n;
    return entries;
}

static int by_rank(const void *a, const void *b)
{
    return dv_cdi_ranked_cmp(a, b);
}

/* Lists all specs that are not refused, in their order. */
static size_t list_specs(const struct dv_cdi_index *index, struct dv_arena *arena,
                         struct dv_cdi_ranked **ranked)
{
    struct dv_cdi_ranked *all = DV_NEW_ARRAY(arena, struct dv_cdi_ranked, index->n_specs);
    const struct dv_map_entry *at;
    size_t n = 0;

    for (size_t place = 0; (at = dv_map_next(&index->kinds, &place)) != NULL;) {
        const struct dv_cdi_kind *kind = at->value;

        for (size_t i = 0; i < kind->specs.n; i++)
            all[n++] = kind->specs.v[i];
    }
    qsort(all, n, sizeof(all[0]), by_rank);
    *ranked = all;
    return n;
}

/* The one that a device is held against when its turn comes: the first of the highest priority so
 * far. NULL: none of its priority, or a higher one has settled it already. */
static const struct dv_cdi_spec *find_rival(const struct dv_cdi_named *named,
                                            const struct dv_cdi_device *device)
{
    const struct dv_cdi_spec *best = NULL;

    for (size_t i = 0; i < named->n_holders; i++) {
        const struct dv_cdi_spec *spec = named->holders[i].ranked.spec;

        if (named->holders[i].device == device)
            return best && best->priority == spec->priority ? best : NULL;
        if (!best || best->priority < spec->priority)
            best = spec;
    }
    return NULL;
}

/* Devices that two specs of one priority have, also those that a higher priority settles after
 * them. A third one is held against the first. */
static size_t print_conflicts(const struct dv_cdi_index *index, struct dv_buf *buf)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_cdi_ranked *ranked;
    size_t n_specs = list_specs(index, arena, &ranked);
    size_t n = 0;

    for (size_t i = 0; i < n_specs; i++) {
        const struct dv_cdi_spec *spec = ranked[i].spec;

        for (size_t k = 0; k < spec->n_devices; k++) {
            dv_str name = spec->devices[k].full_name;
            const struct dv_cdi_spec *rival =
                find_rival(dv_map_get(&index->by_name, name), &spec->devices[k]);

            if (rival)
                dv_buf_printf(buf, "%.*s: device \"%.*s\" is also in %.*s\n", DV_FMT(spec->path),
                              DV_FMT(name), DV_FMT(rival->path));
            n += rival != NULL;
        }
    }
    return n;
}

size_t dv_cdi_check_print(const struct dv_cdi_index *index, struct dv_buf *buf)
{
    size_t n = 0;

    for (size_t i = 0; i < index->refused.n; i++) {
        const struct dv_cdi_spec *spec = index->refused.v[i].spec;

        for (size_t k = 0; k < spec->n_problems; k++)
            dv_buf_printf(buf, "%.*s: %.*s\n", DV_FMT(spec->path), DV_FMT(spec->problems[k]));
        n += spec->n_problems;
    }
    return n + print_conflicts(index, buf);
}
