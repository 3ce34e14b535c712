/* table_service.h - the cells of services and of what is behind them. */
#ifndef DV_RESOURCE_TABLE_SERVICE_H
#define DV_RESOURCE_TABLE_SERVICE_H

#include "base/str.h"

struct dv_api_endpoint_slice;
struct dv_api_endpoints;
struct dv_api_service;
struct dv_arena;

/* Return texts in the arena. */
dv_str dv_service_external_cell(const struct dv_api_service *service, struct dv_arena *arena);
dv_str dv_service_ports_cell(const struct dv_api_service *service, struct dv_arena *arena);
dv_str dv_service_selector_cell(const struct dv_api_service *service, struct dv_arena *arena);
dv_str dv_endpoints_cell(const struct dv_api_endpoints *endpoints, struct dv_arena *arena);
dv_str dv_endpoint_slice_ports_cell(const struct dv_api_endpoint_slice *slice,
                                    struct dv_arena *arena);
dv_str dv_endpoint_slice_endpoints_cell(const struct dv_api_endpoint_slice *slice,
                                        struct dv_arena *arena);

#endif
