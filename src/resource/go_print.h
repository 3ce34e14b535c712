/* go_print.h - values as the reference shows them in its messages.
 *
 * Its structs inside have the names of Go and print every field; only what is shared by all objects
 * (metadata, conditions) has the names of JSON there. */
#ifndef DV_RESOURCE_GO_PRINT_H
#define DV_RESOURCE_GO_PRINT_H

#include <stddef.h>

#include "base/str.h"

struct dv_arena;
struct dv_json;
struct dv_message;

struct dv_json *dv_go_value(const struct dv_message *message, const void *value,
                            struct dv_arena *arena);
/* Prints an array of messages that lie one after the other; null when `values` is NULL. */
struct dv_json *dv_go_list(const struct dv_message *message, const void *values, size_t n,
                           struct dv_arena *arena);

#endif
