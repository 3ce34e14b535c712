/* oci_node.c - device nodes with their cgroup rules, and network interfaces.
 *
 * Two differences from the reference. A node of type "u" is a character device, so it gets a rule
 * as one and the host's may be found where it is: without them it could not be opened, nor be left
 * to the host. And permissions "none" give no rule rather than an empty one, which runc refuses. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/map.h"
#include "base/path.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "oci/edit.h"
#include "oci/oci.h"
#include "json/json.h"

/* A device node as it will be in the container. */
struct node {
    const struct dv_cdi_node *spec;
    struct dv_oci_node device;
};

bool dv_oci_node_from_stat(uint32_t mode, uint64_t rdev, struct dv_oci_node *node,
                           struct dv_err *err)
{
    struct dv_oci_node found = {.major = major(rdev), .minor = minor(rdev)};

    if (S_ISBLK(mode))
        found.type = DV_CDI_NODE_BLOCK;
    else if (S_ISCHR(mode))
        found.type = DV_CDI_NODE_CHAR;
    else if (S_ISFIFO(mode))
        found = (struct dv_oci_node){.type = DV_CDI_NODE_FIFO};
    else
        return dv_fail(err, DV_FAILED_PRECONDITION, "not a device node");
    *node = found;
    return true;
}

/* -- From spec and host --------------------------------------------------------------------- */

static enum dv_cdi_node_type same_on_host(enum dv_cdi_node_type type)
{
    return type == DV_CDI_NODE_UNBUFFERED ? DV_CDI_NODE_CHAR : type;
}

static bool fill_from_host(const struct dv_oci_host *host, dv_str path, struct dv_oci_node *node,
                           struct dv_err *err)
{
    struct dv_oci_node found;

    if (!host->look(host, path, &found, err))
        return dv_wrap(err, "host device \"%.*s\"", DV_FMT(path));
    if (node->type == DV_CDI_NODE_ANY)
        node->type = found.type;
    if (same_on_host(node->type) != found.type)
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "host device \"%.*s\": is of type %s, not %s as the spec says", DV_FMT(path),
                       dv_cdi_node_type_text(found.type), dv_cdi_node_type_text(node->type));
    if (node->major == 0 && node->type != DV_CDI_NODE_FIFO) {
        node->major = found.major;
        node->minor = found.minor;
    }
    return true;
}

static bool complete(const struct dv_oci_edit *edit, const struct dv_cdi_part *part,
                     const struct dv_cdi_node *spec, struct node *node, struct dv_err *err)
{
    dv_str path = spec->host_path.n > 0 ? spec->host_path : spec->path;

    *node = (struct node){
        spec, {spec->type, spec->major, spec->minor}
    };
    if (spec->type == DV_CDI_NODE_FIFO || (spec->type != DV_CDI_NODE_ANY && spec->major != 0))
        return true;
    if (!fill_from_host(edit->host, path, &node->device, err))
        return dv_oci_blame(part, err);
    return true;
}

static size_t count_nodes(const struct dv_cdi_edits *edits)
{
    size_t n = 0;

    for (size_t i = 0; i < edits->n_parts; i++)
        n += edits->parts[i].edits->n_nodes;
    return n;
}

/* -- Into the config ------------------------------------------------------------------------ */

/* Sets the owner of a node whose spec does not say: the container's user, unless that is root. */
static void put_owner(struct dv_json *object, dv_str key, struct dv_cdi_number said,
                      const struct dv_json *user, struct dv_arena *arena)
{
    const struct dv_json *member = dv_json_get(user, key);
    uint64_t id = said.value;
    struct dv_err err;

    if (!said.is_set && (!dv_json_is(member, DV_JSON_NUMBER) ||
                         !dv_json_as_u64(member, &id, &err) || id == 0 || id > UINT32_MAX))
        return;
    dv_json_set(object, key, dv_json_new_u64(id, arena), arena);
}

static struct dv_json *make_device(const struct node *node, const struct dv_json *user,
                                   struct dv_arena *arena)
{
    struct dv_json *object = dv_json_new_object(arena);
    const struct dv_cdi_node *spec = node->spec;

    dv_oci_put(object, DV_STR("path"), spec->path, arena);
    dv_oci_put(object, DV_STR("type"), dv_str_from_c(dv_cdi_node_type_text(node->device.type)),
               arena);
    dv_json_set(object, DV_STR("major"), dv_json_new_u64(node->device.major, arena), arena);
    dv_json_set(object, DV_STR("minor"), dv_json_new_u64(node->device.minor, arena), arena);
    if (spec->file_mode.is_set)
        dv_json_set(object, DV_STR("fileMode"), dv_json_new_u64(spec->file_mode.value, arena),
                    arena);
    put_owner(object, DV_STR("uid"), spec->uid, user, arena);
    put_owner(object, DV_STR("gid"), spec->gid, user, arena);
    return object;
}

/* The config's devices that no node has the path of, and then the nodes. */
static bool put_devices(struct dv_oci_edit *edit, struct dv_json *linux_node,
                        const struct dv_map *nodes, struct dv_err *err)
{
    struct dv_json *old = dv_oci_array(linux_node, DV_STR("devices"), edit->arena, err);
    const struct dv_json *user =
        dv_json_get(dv_json_get(edit->config, DV_STR("process")), DV_STR("user"));
    struct dv_json *devices = dv_json_new_array(edit->arena);
    const struct dv_map_entry *entry;
    size_t place = 0;

    if (!old)
        return false;
    for (const struct dv_json *at = dv_json_first(old); at; at = dv_json_next(at)) {
        dv_str path;

        if (!dv_oci_member(at, DV_STR("path"), &path, err))
            return false;
        if (!dv_map_get(nodes, dv_path_clean(path, edit->arena)))
            dv_json_append(devices, dv_json_copy(at, edit->arena));
    }
    while ((entry = dv_map_next(nodes, &place)) != NULL)
        dv_json_append(devices, make_device(entry->value, user, edit->arena));
    dv_json_replace(old, devices);
    return true;
}

/* -- Rules ---------------------------------------------------------------------------------- */

/* "c 195:0 rw": the same text for rules that allow the same. */
static dv_str rule_text(dv_str type, dv_str major_text, dv_str minor_text, dv_str access,
                        struct dv_arena *arena)
{
    return dv_str_printf(arena, "%.*s %.*s:%.*s %s%s%s", DV_FMT(type), DV_FMT(major_text),
                         DV_FMT(minor_text), dv_str_find_char(access, 'r') < access.n ? "r" : "",
                         dv_str_find_char(access, 'w') < access.n ? "w" : "",
                         dv_str_find_char(access, 'm') < access.n ? "m" : "");
}

static dv_str member_text(const struct dv_json *object, dv_str key)
{
    const struct dv_json *member = dv_json_get(object, key);
    dv_str text = DV_STR_NONE;
    struct dv_err err;

    if (dv_json_is(member, DV_JSON_NUMBER))
        return dv_json_number_text(member);
    if (dv_json_is(member, DV_JSON_STRING) && dv_json_as_str(member, &text, &err))
        return text;
    return DV_STR_NONE;
}

/* Collects what the config allows already. Rules count in order, so those before one that denies
 * are left out: it may deny just that. */
static void gather_rules(const struct dv_json *rules, struct dv_map *allowed,
                         struct dv_arena *arena)
{
    for (struct dv_json *at = dv_json_first(rules); at; at = dv_json_next(at)) {
        const struct dv_json *allow = dv_json_get(at, DV_STR("allow"));
        bool is_allowed = false;
        struct dv_err err;

        if (!dv_json_is(allow, DV_JSON_BOOL) || !dv_json_as_bool(allow, &is_allowed, &err) ||
            !is_allowed)
            dv_map_clear(allowed);
        else
            (void)dv_map_set(allowed,
                             rule_text(member_text(at, DV_STR("type")),
                                       member_text(at, DV_STR("major")),
                                       member_text(at, DV_STR("minor")),
                                       member_text(at, DV_STR("access")), arena),
                             at); /* twice is the config's business */
    }
}

static void add_rule(struct dv_json *rules, const struct node *node, struct dv_map *allowed,
                     struct dv_arena *arena)
{
    dv_str type = dv_str_from_c(dv_cdi_node_type_text(same_on_host(node->device.type)));
    dv_str access = node->spec->permissions.n > 0 ? node->spec->permissions : DV_STR("rwm");
    struct dv_json *rule = dv_json_new_object(arena);
    struct dv_json *major_node = dv_json_new_u64(node->device.major, arena);
    struct dv_json *minor_node = dv_json_new_u64(node->device.minor, arena);
    dv_str text = rule_text(type, dv_json_number_text(major_node), dv_json_number_text(minor_node),
                            access, arena);

    if (dv_map_get(allowed, text))
        return;
    dv_json_set(rule, DV_STR("allow"), dv_json_new_bool(true, arena), arena);
    dv_oci_put(rule, DV_STR("type"), type, arena);
    dv_json_set(rule, DV_STR("major"), major_node, arena);
    dv_json_set(rule, DV_STR("minor"), minor_node, arena);
    dv_oci_put(rule, DV_STR("access"), access, arena);
    dv_json_append(rules, rule);
    (void)dv_map_set(allowed, text, rule); /* was not there */
}

static bool needs_rule(const struct node *node)
{
    return node->device.type != DV_CDI_NODE_FIFO &&
           !dv_str_eq(node->spec->permissions, DV_STR("none"));
}

static bool add_rules(struct dv_oci_edit *edit, struct dv_json *linux_node,
                      const struct node *nodes, size_t n_nodes, struct dv_err *err)
{
    DV_CLEANUP(dv_map_fini) struct dv_map allowed; /* rules by their text */
    struct dv_json *resources;
    struct dv_json *rules;
    size_t first = 0;

    dv_map_init(&allowed);
    while (first < n_nodes && !needs_rule(&nodes[first]))
        first++;
    if (first == n_nodes)
        return true;
    resources = dv_oci_object(linux_node, DV_STR("resources"), edit->arena, err);
    rules = resources ? dv_oci_array(resources, DV_STR("devices"), edit->arena, err) : NULL;
    if (!rules)
        return false;
    gather_rules(rules, &allowed, edit->arena);
    for (size_t i = first; i < n_nodes; i++) {
        if (needs_rule(&nodes[i]))
            add_rule(rules, &nodes[i], &allowed, edit->arena);
    }
    return true;
}

bool dv_oci_add_nodes(struct dv_oci_edit *edit, struct dv_err *err)
{
    size_t n_nodes = count_nodes(edit->edits);
    struct node *nodes = DV_NEW_ARRAY(edit->arena, struct node, n_nodes);
    DV_CLEANUP(dv_map_fini) struct dv_map by_path;
    struct dv_json *linux_node;
    size_t n = 0;

    dv_map_init(&by_path);
    if (n_nodes == 0)
        return true;
    for (size_t i = 0; i < edit->edits->n_parts; i++) {
        const struct dv_cdi_part *part = &edit->edits->parts[i];

        for (size_t k = 0; k < part->edits->n_nodes; k++, n++) {
            dv_str path = dv_path_clean(part->edits->nodes[k].path, edit->arena);

            if (!complete(edit, part, &part->edits->nodes[k], &nodes[n], err))
                return false;
            (void)dv_map_remove(&by_path, path); /* the later one counts, and comes later */
            (void)dv_map_set(&by_path, path, &nodes[n]);
        }
    }
    linux_node = dv_oci_object(edit->config, DV_STR("linux"), edit->arena, err);
    return linux_node && put_devices(edit, linux_node, &by_path, err) &&
           add_rules(edit, linux_node, nodes, n_nodes, err);
}
