/* discovery.h - the documents by which clients find what the API has. Pure. */
#ifndef DV_SERVE_DISCOVERY_H
#define DV_SERVE_DISCOVERY_H

#include <stdbool.h>

#include "base/str.h"

struct dv_arena;
struct dv_buf;
struct dv_custom_set;

/* All of these print JSON, except where they say otherwise. `customs` are the kinds that
 * definitions make; NULL: none. */
/* Prints APIVersions, for /api; `address` is where the server is. */
void dv_discovery_core(dv_str address, struct dv_buf *buf);
/* Prints APIGroupList, of /apis. */
void dv_discovery_groups(const struct dv_custom_set *customs, struct dv_arena *arena,
                         struct dv_buf *buf);
/* Prints APIGroup, for /apis/GROUP; nothing when there is no such group. */
void dv_discovery_group(const struct dv_custom_set *customs, dv_str group, struct dv_arena *arena,
                        struct dv_buf *buf);
/* Prints APIResourceList, for /api/v1 and /apis/GROUP/VERSION. */
void dv_discovery_resources(const struct dv_custom_set *customs, dv_str group, dv_str version,
                            struct dv_arena *arena, struct dv_buf *buf);
/* Prints APIGroupDiscoveryList, for /api or /apis: all groups and resources at once. */
void dv_discovery_aggregated(const struct dv_custom_set *customs, bool is_core,
                             struct dv_arena *arena, struct dv_buf *buf);
/* Prints APIGroupList in protobuf. */
void dv_discovery_groups_protobuf(const struct dv_custom_set *customs, struct dv_arena *arena,
                                  struct dv_buf *buf);
/* Prints the index of /. */
void dv_discovery_paths(const struct dv_custom_set *customs, struct dv_arena *arena,
                        struct dv_buf *buf);

#define DV_DISCOVERY_TYPE "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

#endif
