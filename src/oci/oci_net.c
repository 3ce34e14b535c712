/* oci_net.c - network interfaces that move into the container. */
#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "oci/edit.h"
#include "json/json.h"

/* The name that an interface of the config gets; empty when it does not say. */
static dv_str name_of(const struct dv_json *device)
{
    const struct dv_json *name = dv_json_get(device, DV_STR("name"));
    struct dv_err err;
    dv_str text;

    if (!dv_json_is(name, DV_JSON_STRING) || !dv_json_as_str(name, &text, &err))
        return DV_STR_NONE;
    return text;
}

static bool fail_taken(dv_str one, dv_str other, dv_str name, struct dv_err *err)
{
    return dv_fail(err, DV_FAILED_PRECONDITION,
                   "interfaces \"%.*s\" and \"%.*s\" would both become \"%.*s\"", DV_FMT(one),
                   DV_FMT(other), DV_FMT(name));
}

static bool gather_names(const struct dv_json *devices, struct dv_map *names, struct dv_err *err)
{
    for (struct dv_json *at = dv_json_first(devices); at; at = dv_json_next(at)) {
        dv_str name = name_of(at);
        const struct dv_json *other = name.n > 0 ? dv_map_set(names, name, at) : NULL;

        if (other) {
            (void)fail_taken(dv_json_key(other), dv_json_key(at), name, err);
            return dv_wrap(err, "OCI config");
        }
    }
    return true;
}

static bool add_net_device(struct dv_json *devices, struct dv_cdi_net_device *device,
                           struct dv_map *hosts, struct dv_map *names, struct dv_arena *arena,
                           struct dv_err *err)
{
    const struct dv_cdi_net_device *same = dv_map_get(hosts, device->host_name);
    const struct dv_json *holder = dv_map_get(names, device->name);
    const struct dv_json *old = dv_json_get(devices, device->host_name);
    struct dv_json *object;

    if (same && !dv_str_eq(same->name, device->name))
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "interface \"%.*s\" would become both \"%.*s\" and \"%.*s\"",
                       DV_FMT(device->host_name), DV_FMT(same->name), DV_FMT(device->name));
    if (holder && !dv_str_eq(dv_json_key(holder), device->host_name))
        return fail_taken(dv_json_key(holder), device->host_name, device->name, err);
    if (same)
        return true;
    if (old && dv_map_get(names, name_of(old)) == old)
        (void)dv_map_remove(names, name_of(old)); /* it becomes something else now */
    object = dv_json_new_object(arena);
    dv_oci_put(object, DV_STR("name"), device->name, arena);
    dv_json_set(devices, device->host_name, object, arena);
    (void)dv_map_set(hosts, device->host_name, device); /* was not there */
    (void)dv_map_set(names, device->name, object);      /* nor was that, for another one */
    return true;
}

static size_t count_net_devices(const struct dv_cdi_edits *edits)
{
    size_t n = 0;

    for (size_t i = 0; i < edits->n_parts; i++)
        n += edits->parts[i].edits->n_net_devices;
    return n;
}

bool dv_oci_add_net_devices(struct dv_oci_edit *edit, struct dv_err *err)
{
    DV_CLEANUP(dv_map_fini) struct dv_map hosts; /* interfaces of the edits, by the host's name */
    DV_CLEANUP(dv_map_fini) struct dv_map names; /* members of `devices`, by what they become */
    struct dv_json *parent;
    struct dv_json *devices;

    dv_map_init(&hosts);
    dv_map_init(&names);
    if (count_net_devices(edit->edits) == 0)
        return true;
    parent = dv_oci_object(edit->config, DV_STR("linux"), edit->arena, err);
    devices = parent ? dv_oci_object(parent, DV_STR("netDevices"), edit->arena, err) : NULL;
    if (!devices || !gather_names(devices, &names, err))
        return false;
    for (size_t i = 0; i < edit->edits->n_parts; i++) {
        const struct dv_cdi_part *part = &edit->edits->parts[i];

        for (size_t k = 0; k < part->edits->n_net_devices; k++) {
            if (!add_net_device(devices, &part->edits->net_devices[k], &hosts, &names, edit->arena,
                                err))
                return dv_oci_blame(part, err);
        }
    }
    return true;
}
