/* engine_parts.h - what was granted as one list of each thing, and the options it becomes. */
#ifndef DV_ENGINE_PARTS_H
#define DV_ENGINE_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "base/vec.h"
#include "cdi/cdi.h"

struct dv_arena;
struct dv_engine_command;
struct dv_engine_facts;
struct dv_engine_grant;
struct dv_engine_plan;
struct dv_engine_settings;
struct dv_err;

struct dv_engine_words {
    dv_str *v;
    size_t n;
    size_t size;
};

/* All that is to be expressed, each name or place once: of two the later one counts, as in an OCI
 * config. */
struct dv_engine_parts {
    struct dv_engine_words env; /* "NAME=value" */
    DV_VEC(struct dv_cdi_node) nodes;
    DV_VEC(struct dv_cdi_mount) mounts;
    DV_VEC(uint32_t) gids;
    const struct dv_cdi_annotation *annotations;
    size_t n_annotations;
    struct dv_engine_words names; /* of CDI devices that the engine is told by name */
    size_t n_hooks;
    dv_str hook;      /* the first one's file */
    dv_str hook_name; /* "createContainer" */
    size_t n_net_devices;
    bool has_rdt;
    dv_str spec; /* the file of what an engine cannot be told */
};

/* A command that is being made. */
struct dv_engine_making {
    const struct dv_engine_command *command;
    const struct dv_engine_facts *facts;
    const struct dv_engine_settings *settings;
    const struct dv_engine_parts *parts;
    struct dv_arena *arena;
    struct dv_engine_plan *plan;
    struct dv_engine_words added; /* the options for what is started */
    struct dv_engine_words notes;
};

/* Adds the options of an engine: engine_options.c. */
DV_CHECKED bool dv_engine_add_container(struct dv_engine_making *making, struct dv_err *err);
DV_CHECKED bool dv_engine_add_runc(struct dv_engine_making *making, struct dv_err *err);
DV_CHECKED bool dv_engine_add_apptainer(struct dv_engine_making *making, struct dv_err *err);
DV_CHECKED bool dv_engine_add_systemd_run(struct dv_engine_making *making, struct dv_err *err);

void dv_engine_add(struct dv_engine_making *making, dv_str word);
void dv_engine_note(struct dv_engine_making *making, dv_str note);

/* Where the host has the node, and whether a mount is a bind mount that may only be read. */
dv_str dv_engine_node_host(const struct dv_cdi_node *node);
dv_str dv_engine_node_permissions(const struct dv_cdi_node *node);
bool dv_engine_mount_is_bind(const struct dv_cdi_mount *mount);
bool dv_engine_mount_has(const struct dv_cdi_mount *mount, dv_str option);

#endif
