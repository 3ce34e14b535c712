/* podresources_state.h - a state of golden/podresources, built with davit's own functions: plugins
 * connect and list their devices, records come from a checkpoint, pods are parsed; claims are as
 * given. */
#ifndef DV_GOLDEN_PODRESOURCES_STATE_H
#define DV_GOLDEN_PODRESOURCES_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "base/str.h"
#include "serve/podresources/podres_answer.h"

struct dv_arena;
struct dv_device_state;
struct dv_err;

struct state {
    const json_t *json; /* the record */
    struct dv_arena *arena;
    struct dv_device_state *devices;
    struct dv_podres_claim *claims;
    size_t n_claims;
    struct dv_podres_node node;
};

struct state_device {
    dv_str resource;
    dv_str id;
};

/* Keeps `json` and `arena`. Ends the program when the record is not what the README says. */
void state_init(struct state *state, const json_t *json, bool is_strict, struct dv_arena *arena);
void state_fini(struct state *state);

/* Whether a pod of that name is there, and active. */
bool state_is_active(const struct state *state, dv_str pod);
/* The healthy devices that have a topology without nodes. */
size_t state_without_nodes(const struct state *state, const struct state_device **devices);

/* Ends the program with the error unless all is well. */
void state_must(const struct state *state, bool is_ok, const struct dv_err *err);
/* A member; empty when it is absent or no string. */
dv_str state_text(const json_t *object, const char *key);
/* From text in hex. */
dv_str state_bytes(const struct state *state, const json_t *hex);

#endif
