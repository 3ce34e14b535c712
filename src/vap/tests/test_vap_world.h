/* test_vap_world.h - policies, what they may ask for, and writes that they judge. */
#ifndef DV_TEST_VAP_WORLD_H
#define DV_TEST_VAP_WORLD_H

#include "base/vec.h"
#include "resource/resource.h"
#include "vap/vap.h"

struct dv_json;

struct world {
    struct dv_arena *arena;
    struct dv_vap *vap;
    DV_VEC(struct dv_object *) objects; /* namespaces and parameters */
    size_t n_decided;                   /* questions to the authorizer */
};

void world_init(struct world *world);
void world_fini(struct world *world);
/* Decodes an object, with its defaults; NULL: it is none. */
void *world_read(struct world *world, const struct dv_kind *kind,
                 const struct dv_api_version *version, const struct dv_json *doc);
/* Adds a policy, a binding, a namespace or a parameter from YAML, or replaces the one of its name;
 * false: it is no object of that kind. */
bool world_add(struct world *world, enum dv_kind_id kind, const char *text);
void world_remove(struct world *world, enum dv_kind_id kind, const char *text);
struct dv_vap_world world_seam(struct world *world);

#endif
