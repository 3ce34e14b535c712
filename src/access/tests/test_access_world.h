/* test_access_world.h - an index with the objects of a test, and users who ask. */
#ifndef DV_TEST_ACCESS_WORLD_H
#define DV_TEST_ACCESS_WORLD_H

#include <stdbool.h>

#include "access/access.h"
#include "resource/resource.h"

struct world {
    struct dv_arena *arena;
    struct dv_access *access;
};

int world_setup(void **state);
int world_teardown(void **state);
/* Adds an object, in YAML, or replaces the one of its name. */
void world_set(struct world *world, enum dv_kind_id kind, const char *text);
void world_remove(struct world *world, enum dv_kind_id kind, const char *text);
/* Decodes it, with its defaults. */
void *world_read(struct world *world, enum dv_kind_id kind, const char *text);
/* "alice dev ops": the name and the groups. */
struct dv_api_user_info world_user(struct world *world, const char *words);
/* "get pods/log x in ns", "list pods.apps", "get /path": whether that user may. */
bool world_may(struct world *world, const char *user, const char *request);
struct dv_access_request world_request(struct world *world, const char *request);

#endif
