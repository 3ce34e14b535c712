/* cdi_check.c - the rules that are about more than the kind of a field. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "cdi/cdi_name.h"
#include "cdi/cdi_read.h"
#include "cdi/shape.h"
#include "json/json.h"

/* The class becomes the name of a directory of resctrl. */
#define CLOS_ID_BYTES_MAX 4095u

void dv_cdi_check_node(struct dv_cdi_reader *reader, const struct dv_json *node, const void *value)
{
    const struct dv_cdi_node *device = value;
    dv_str permissions = device->permissions;

    if (dv_str_eq(permissions, DV_STR("none")))
        return;
    for (size_t i = 0; i < permissions.n; i++) {
        if (permissions.p[i] == '\0' || !strchr("rwm", permissions.p[i])) {
            dv_cdi_complain(reader, dv_cdi_member(node, DV_STR("permissions")),
                            "\"%.*s\" is not made of r, w and m, nor is it \"none\"",
                            DV_FMT(permissions));
            return;
        }
    }
}

void dv_cdi_check_hook(struct dv_cdi_reader *reader, const struct dv_json *node, const void *value)
{
    const struct dv_cdi_hook *hook = value;

    if (hook->path.n > 0 && hook->path.p[0] != '/')
        dv_cdi_complain(reader, dv_cdi_member(node, DV_STR("path")),
                        "\"%.*s\" does not begin with a slash", DV_FMT(hook->path));
    if (hook->timeout_s.is_set && hook->timeout_s.value == 0)
        dv_cdi_complain(reader, dv_cdi_member(node, DV_STR("timeout")),
                        "must be more than 0 seconds");
}

void dv_cdi_check_rdt(struct dv_cdi_reader *reader, const struct dv_json *node, const void *value)
{
    const struct dv_cdi_rdt *rdt = value;
    dv_str id = rdt->clos_id;

    if (dv_str_eq(id, DV_STR("/"))) /* the class that all tasks begin in */
        return;
    if (id.n > CLOS_ID_BYTES_MAX || dv_str_eq(id, DV_STR(".")) || dv_str_eq(id, DV_STR("..")) ||
        dv_str_find_char(id, '/') < id.n || dv_str_find_char(id, '\n') < id.n)
        dv_cdi_complain(reader, dv_cdi_member(node, DV_STR("closID")),
                        "\"%.*s\" cannot be the name of a directory", DV_FMT(id));
}

/* Checks that each interface gets one name, and each name goes to one interface. */
void dv_cdi_check_edits(struct dv_cdi_reader *reader, const struct dv_json *node, const void *value)
{
    const struct dv_cdi_container_edits *edits = value;
    const struct dv_json *list = dv_cdi_member(node, DV_STR("netDevices"));
    const struct dv_json *at = dv_json_first(list);
    DV_CLEANUP(dv_map_fini) struct dv_map hosts;
    DV_CLEANUP(dv_map_fini) struct dv_map names;

    dv_map_init(&hosts);
    dv_map_init(&names);
    for (size_t i = 0; i < edits->n_net_devices; i++, at = dv_json_next(at)) {
        struct dv_cdi_net_device *device = &edits->net_devices[i];

        if (device->host_name.n > 0 && dv_map_set(&hosts, device->host_name, device))
            dv_cdi_complain(reader, at, "interface \"%.*s\" is here twice",
                            DV_FMT(device->host_name));
        if (device->name.n > 0 && dv_map_set(&names, device->name, device))
            dv_cdi_complain(reader, at, "two interfaces become \"%.*s\"", DV_FMT(device->name));
    }
}

static bool is_empty(const struct dv_cdi_container_edits *edits)
{
    return edits->n_env == 0 && edits->n_nodes == 0 && edits->n_net_devices == 0 &&
           edits->n_hooks == 0 && edits->n_mounts == 0 && edits->n_gids == 0 && !edits->rdt;
}

void dv_cdi_check_device(struct dv_cdi_reader *reader, const struct dv_json *node,
                         const void *value)
{
    const struct dv_cdi_device *device = value;
    const struct dv_json *name = dv_cdi_member(node, DV_STR("name"));
    struct dv_err err;

    if (device->name.n > 0 && !dv_cdi_check_device_name(device->name, &err))
        dv_cdi_complain(reader, name, "%s", err.msg);
    else if (device->name.n > 0 && device->name.p[0] >= '0' && device->name.p[0] <= '9' &&
             reader->release < DV_CDI_0_5_0)
        dv_cdi_complain(reader, name,
                        "\"%.*s\" begins with a digit, which needs cdiVersion 0.5.0; this spec has "
                        "%s",
                        DV_FMT(device->name), dv_cdi_release_text(reader->release));
    if (is_empty(&device->edits))
        dv_cdi_complain(reader, node, "device \"%.*s\" changes nothing in a container",
                        DV_FMT(device->name));
}

static void check_kind(struct dv_cdi_reader *reader, const struct dv_json *node, dv_str kind)
{
    struct dv_err err;
    dv_str vendor;
    dv_str class;

    if (!dv_cdi_kind_parse(kind, &vendor, &class, &err))
        dv_cdi_complain(reader, node, "%s", err.msg);
    else if (dv_str_find_char(class, '.') < class.n && reader->release < DV_CDI_0_6_0)
        dv_cdi_complain(
            reader, node,
            "the class \"%.*s\" has a dot, which needs cdiVersion 0.6.0; this spec has %s",
            DV_FMT(class), dv_cdi_release_text(reader->release));
}

void dv_cdi_check_spec(struct dv_cdi_reader *reader, const struct dv_json *node, const void *value)
{
    const struct dv_cdi_spec *spec = value;
    const struct dv_json *list = dv_cdi_member(node, DV_STR("devices"));
    const struct dv_json *at = dv_json_first(list);
    DV_CLEANUP(dv_map_fini) struct dv_map names;

    if (spec->kind.n > 0)
        check_kind(reader, dv_cdi_member(node, DV_STR("kind")), spec->kind);
    if (!list || (dv_json_is(list, DV_JSON_ARRAY) && spec->n_devices == 0))
        dv_cdi_complain(reader, list ? list : node, "there are no devices");
    dv_map_init(&names);
    for (size_t i = 0; i < spec->n_devices; i++, at = dv_json_next(at)) {
        struct dv_cdi_device *device = &spec->devices[i];

        if (device->name.n > 0 && dv_map_set(&names, device->name, device))
            dv_cdi_complain(reader, dv_cdi_member(at, DV_STR("name")),
                            "there is another device \"%.*s\"", DV_FMT(device->name));
    }
}
