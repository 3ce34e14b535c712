/* discovery.h - the documents by which clients find what the API has. Pure. */
#ifndef DV_SERVE_DISCOVERY_H
#define DV_SERVE_DISCOVERY_H

#include <stdbool.h>

#include "base/str.h"

struct dv_arena;
struct dv_buf;

/* All of these print JSON, except where they say otherwise. */
/* Prints APIVersions, for /api; `address` is where the server is. */
void dv_discovery_core(dv_str address, struct dv_buf *buf);
void dv_discovery_groups(struct dv_buf *buf); /* APIGroupList, of /apis */
/* Prints APIGroup, for /apis/GROUP; nothing when there is no such group. */
void dv_discovery_group(dv_str group, struct dv_buf *buf);
/* Prints APIResourceList, for /api/v1 and /apis/GROUP/VERSION. */
void dv_discovery_resources(dv_str group, dv_str version, struct dv_arena *arena,
                            struct dv_buf *buf);
/* Prints APIGroupDiscoveryList, for /api or /apis: all groups and resources at once. */
void dv_discovery_aggregated(bool is_core, struct dv_arena *arena, struct dv_buf *buf);
/* Prints APIGroupList in protobuf. */
void dv_discovery_groups_protobuf(struct dv_buf *buf);
/* Prints the index of /. */
void dv_discovery_paths(struct dv_buf *buf);

#define DV_DISCOVERY_TYPE "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

#endif
