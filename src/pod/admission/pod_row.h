/* pod_row.h - a pod as the store has it:
 *
 *     {"origin": "api", "ownerStart": "4711", "sinceMs": 1767225600000, "pod": {"spec": {...}}}
 *
 * What davit itself knows of a pod stands beside it, where nobody who writes pods can. Until 0.1
 * rows were the Pod alone, and annotations in it said the rest: they are still read, and `davit
 * state import` writes them. */
#ifndef DV_POD_ROW_H
#define DV_POD_ROW_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_buf;
struct dv_err;
struct dv_object;
struct dv_pod_spec;

/* The longest row: a Pod of the API has up to 3 MiB, perhaps as protobuf; as JSON it is longer. */
#define DV_POD_ROW_BYTES_MAX (16u << 20)

/* Prints the row of a Pod that came as text. */
dv_str dv_pod_row_print(const struct dv_pod_spec *spec, dv_str json, struct dv_arena *arena);
/* Prints the row of a typed Pod into an empty buffer, whose ceiling it may pass. It looks at
 * nothing else, so that a worker may call it. */
void dv_pod_row_print_object(const struct dv_pod_spec *spec, const struct dv_object *object,
                             struct dv_buf *row);
/* Keeps `row`, which lives as long as the arena. Fails as dv_pod_spec_parse. */
DV_CHECKED bool dv_pod_row_parse(dv_str row, struct dv_arena *arena, struct dv_pod_spec *spec,
                                 struct dv_err *err);

#endif
