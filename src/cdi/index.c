/* index.c - which spec has which device, and the edits for some names.
 *
 * A conflict counts among the specs of the highest priority that have the device: what lies under
 * them is not used anyway. (The reference drops a device for a conflict at any priority.) */
#include "cdi/index.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/vec.h"
#include "cdi/cdi.h"

static void add_conflict(struct dv_cdi_index *index, const struct dv_cdi_entry *entry,
                         const struct dv_cdi_spec *spec)
{
    index->conflicts = dv_vec_grow(index->conflicts, index->n_conflicts, &index->conflicts_size,
                                   sizeof(index->conflicts[0]), NULL);
    index->conflicts[index->n_conflicts++] =
        (struct dv_cdi_conflict){entry->device->full_name, entry->spec, spec};
}

static void add_device(struct dv_cdi_index *index, const struct dv_cdi_spec *spec,
                       const struct dv_cdi_device *device, struct dv_cdi_entry *fresh)
{
    struct dv_cdi_entry *entry = dv_map_get(&index->by_name, device->full_name);

    if (entry && entry->spec->priority > spec->priority)
        return;
    if (entry && entry->spec->priority == spec->priority) {
        add_conflict(index, entry, spec);
        if (!entry->rival)
            entry->rival = spec;
        return;
    }
    *fresh = (struct dv_cdi_entry){.spec = spec, .device = device};
    (void)dv_map_set(&index->by_name, device->full_name,
                     fresh); /* what it hides has had its turn */
}

static size_t count_devices(const struct dv_cdi_index *index)
{
    size_t n = 0;

    for (size_t i = 0; i < index->n_specs; i++)
        n += index->specs[i]->n_devices;
    return n;
}

struct dv_cdi_index *dv_cdi_index_new(struct dv_cdi_spec *const *specs, size_t n_specs)
{
    struct dv_cdi_index *index = DV_ALLOC(struct dv_cdi_index);
    size_t n_entries = 0;

    dv_map_init(&index->by_name);
    index->specs = dv_alloc(n_specs * sizeof(struct dv_cdi_spec *));
    for (size_t i = 0; i < n_specs; i++)
        index->specs[index->n_specs++] = dv_cdi_spec_ref(specs[i]);
    index->entries = dv_alloc(count_devices(index) * sizeof(struct dv_cdi_entry));
    for (size_t i = 0; i < n_specs; i++) {
        if (specs[i]->n_problems > 0) {
            index->n_refused++;
            continue;
        }
        for (size_t k = 0; k < specs[i]->n_devices; k++)
            add_device(index, specs[i], &specs[i]->devices[k], &index->entries[n_entries++]);
    }
    return index;
}

void dv_cdi_index_free(struct dv_cdi_index *index)
{
    if (!index)
        return;
    for (size_t i = 0; i < index->n_specs; i++)
        dv_cdi_spec_unref(index->specs[i]);
    dv_map_fini(&index->by_name);
    free(index->specs);
    free(index->entries);
    free(index->conflicts);
    free(index);
}

void dv_cdi_index_freep(struct dv_cdi_index **index)
{
    dv_cdi_index_free(*index);
}

const struct dv_cdi_entry *dv_cdi_index_find(const struct dv_cdi_index *index, dv_str full_name)
{
    return dv_map_get(&index->by_name, full_name);
}

const struct dv_cdi_entry *dv_cdi_index_next(const struct dv_cdi_index *index, size_t *at)
{
    const struct dv_map_entry *entry = dv_map_next(&index->by_name, at);

    return entry ? entry->value : NULL;
}

/* -- Resolving ------------------------------------------------------------------------------ */

/* Names that a message has room for. */
#define TOLD_DEVICES_MAX 6u
#define TOLD_BYTES_MAX 1024u

/* "; the kind vendor.com/gpu is in /etc/cdi/a.json with devices 0, 1 and 2 more". */
static void tell_kind(const struct dv_cdi_index *index, dv_str kind, struct dv_buf *buf)
{
    const struct dv_cdi_spec *first = NULL;
    size_t n_others = 0;

    for (size_t i = 0; i < index->n_specs; i++) {
        const struct dv_cdi_spec *spec = index->specs[i];

        if (spec->n_problems > 0 || !dv_str_eq(spec->kind, kind))
            continue;
        n_others += first != NULL;
        first = first ? first : spec;
    }
    if (!first)
        return;
    dv_buf_printf(buf, "; the kind %.*s is in %.*s with devices", DV_FMT(kind),
                  DV_FMT(first->path));
    for (size_t i = 0; i < first->n_devices && i < TOLD_DEVICES_MAX; i++)
        dv_buf_printf(buf, "%s %.*s", i > 0 ? "," : "", DV_FMT(first->devices[i].name));
    if (first->n_devices > TOLD_DEVICES_MAX)
        dv_buf_printf(buf, " and %zu more", first->n_devices - TOLD_DEVICES_MAX);
    if (n_others > 0)
        dv_buf_printf(buf, ", and in %zu other%s", n_others, n_others > 1 ? "s" : "");
}

/* A refused file may be the one that has it; one of the same kind most likely is. */
static const struct dv_cdi_spec *find_refused(const struct dv_cdi_index *index, dv_str kind)
{
    const struct dv_cdi_spec *found = NULL;

    for (size_t i = 0; i < index->n_specs; i++) {
        const struct dv_cdi_spec *spec = index->specs[i];

        if (spec->n_problems > 0 && dv_str_eq(spec->kind, kind))
            return spec;
        if (spec->n_problems > 0 && !found)
            found = spec;
    }
    return found;
}

/* What was looked at, for a name that is not there; the likelier cause first, as text is cut. */
static bool fail_unknown(const struct dv_cdi_index *index, dv_str name, struct dv_err *err)
{
    dv_str kind = dv_str_slice(name, 0, dv_str_find_char(name, '='));
    const struct dv_cdi_spec *refused = find_refused(index, kind);
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    bool is_suspect = refused && dv_str_eq(refused->kind, kind);

    dv_buf_init(&buf, TOLD_BYTES_MAX);
    if (!is_suspect)
        tell_kind(index, kind, &buf);
    if (refused)
        dv_buf_printf(&buf, "; %zu refused, such as %.*s: %.*s", index->n_refused,
                      DV_FMT(refused->path), DV_FMT(refused->problems[0]));
    if (is_suspect)
        tell_kind(index, kind, &buf);
    return dv_fail(err, DV_NOT_FOUND, "CDI device \"%.*s\": in none of %zu specs%s", DV_FMT(name),
                   index->n_specs - index->n_refused, dv_buf_c(&buf));
}

static const struct dv_cdi_entry *find_usable(const struct dv_cdi_index *index, dv_str name,
                                              struct dv_err *err)
{
    const struct dv_cdi_entry *entry = dv_cdi_index_find(index, name);
    struct dv_cdi_name parts;

    if (!entry) {
        if (dv_cdi_name_parse(name, &parts, err))
            (void)fail_unknown(index, name, err); /* tells by NULL */
        return NULL;
    }
    if (entry->rival) {
        (void)dv_fail(err, DV_FAILED_PRECONDITION,
                      "CDI device \"%.*s\": both %.*s and %.*s have it", DV_FMT(name),
                      DV_FMT(entry->spec->path), DV_FMT(entry->rival->path));
        return NULL;
    }
    return entry;
}

static void add_part(struct dv_cdi_edits *edits, struct dv_cdi_part part)
{
    for (size_t i = 0; i < edits->n_parts; i++) {
        if (edits->parts[i].edits == part.edits)
            return;
    }
    edits->parts[edits->n_parts++] = part;
}

bool dv_cdi_resolve(const struct dv_cdi_index *index, const dv_str *names, size_t n_names,
                    struct dv_arena *arena, struct dv_cdi_edits *edits, struct dv_err *err)
{
    struct dv_cdi_edits found = {0};

    if (n_names > DV_CDI_NAMES_MAX)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED,
                       "%zu CDI device names for one container: at most %u are allowed", n_names,
                       DV_CDI_NAMES_MAX);
    found.parts = DV_NEW_ARRAY(arena, struct dv_cdi_part, 2 * n_names);
    for (size_t i = 0; i < n_names; i++) {
        const struct dv_cdi_entry *entry = find_usable(index, names[i], err);

        if (!entry)
            return false;
        add_part(&found, (struct dv_cdi_part){entry->spec, NULL, &entry->spec->edits});
        add_part(&found, (struct dv_cdi_part){entry->spec, entry->device, &entry->device->edits});
    }
    *edits = found;
    return true;
}
