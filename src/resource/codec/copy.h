/* copy.h - deep copies into memory of the caller's choice. */
#ifndef DV_RESOURCE_COPY_H
#define DV_RESOURCE_COPY_H

#include <stddef.h>

#include "base/str.h"

struct dv_kind;
struct dv_message;
struct dv_object;

enum dv_copy_mode {
    DV_COPY_EXACT,
    DV_COPY_STORED, /* lists and maps that are empty are absent: see dv_object_new */
};

/* The size of what a value refers to, in bytes, or more than that. */
struct dv_copy_size {
    size_t structs; /* a multiple of 8 */
    size_t texts;
    enum dv_copy_mode mode;
    dv_str lasting; /* texts in here live as long as the copy: they are not copied */
};

/* What a struct of `n` bytes takes of the structs. */
static inline size_t dv_copy_struct_bytes(size_t n)
{
    return (n + 7) & ~(size_t)7;
}

struct dv_copy_size dv_copy_measure(const struct dv_message *message, const void *value,
                                    enum dv_copy_mode mode);
/* Copies `value` into `copy`, and what it refers to into `room`, which has structs + texts bytes
 * and is aligned for any struct. */
void dv_copy_to(const struct dv_message *message, const void *value, struct dv_copy_size size,
                void *room, void *copy);
/* Like dv_object_new, for a value whose size is known. */
struct dv_object *dv_object_new_sized(const struct dv_kind *kind, const void *value,
                                      struct dv_copy_size size);

#endif
