/* resolve.c - the edits for some names, and what to say when a name is not there. */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "cdi/cdi_index.h"

/* Names that a message has room for. */
#define TOLD_DEVICES_MAX 6u
#define TOLD_BYTES_MAX 1024u

/* "; the kind vendor.com/gpu is in /etc/cdi/a.json with devices 0, 1 and 2 more". */
static void tell_kind(const struct dv_cdi_index *index, dv_str kind, struct dv_buf *buf)
{
    const struct dv_cdi_kind *found = dv_map_get(&index->kinds, kind);
    const struct dv_cdi_spec *first;
    size_t n_others;

    if (!found)
        return;
    first = found->specs.v[0].spec;
    n_others = found->specs.n - 1;
    dv_buf_printf(buf, "; the kind %.*s is in %.*s with devices", DV_FMT(kind),
                  DV_FMT(first->path));
    for (size_t i = 0; i < first->n_devices && i < TOLD_DEVICES_MAX; i++)
        dv_buf_printf(buf, "%s %.*s", i > 0 ? "," : "", DV_FMT(first->devices[i].name));
    if (first->n_devices > TOLD_DEVICES_MAX)
        dv_buf_printf(buf, " and %zu more", first->n_devices - TOLD_DEVICES_MAX);
    if (n_others > 0)
        dv_buf_printf(buf, ", and in %zu other%s", n_others, n_others > 1 ? "s" : "");
}

/* Finds a refused file that may have the name: one of the same kind most likely does. */
static const struct dv_cdi_spec *find_refused(const struct dv_cdi_index *index, dv_str kind)
{
    for (size_t i = 0; i < index->refused.n; i++) {
        if (dv_str_eq(index->refused.v[i].spec->kind, kind))
            return index->refused.v[i].spec;
    }
    return index->refused.n > 0 ? index->refused.v[0].spec : NULL;
}

/* Says what was searched for a name that is not there; the likelier cause comes first, as the text
 * is cut. */
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
        dv_buf_printf(&buf, "; %zu refused, such as %.*s: %.*s", index->refused.n,
                      DV_FMT(refused->path), DV_FMT(refused->problems[0]));
    if (is_suspect)
        tell_kind(index, kind, &buf);
    return dv_fail(err, DV_NOT_FOUND, "CDI device \"%.*s\": in none of %zu specs%s", DV_FMT(name),
                   index->n_specs - index->refused.n, dv_buf_c(&buf));
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
