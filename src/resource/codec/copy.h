/* copy.h - deep copies into memory of the caller's choice. */
#ifndef DV_RESOURCE_COPY_H
#define DV_RESOURCE_COPY_H

#include <stddef.h>

struct dv_message;

enum dv_copy_mode {
    DV_COPY_EXACT,
    DV_COPY_STORED, /* lists and maps that are empty are absent: see dv_object_new */
};

/* The size of what a value refers to, in bytes. */
struct dv_copy_size {
    size_t structs; /* a multiple of 8 */
    size_t texts;
    enum dv_copy_mode mode;
};

struct dv_copy_size dv_copy_measure(const struct dv_message *message, const void *value,
                                    enum dv_copy_mode mode);
/* Copies `value` into `copy`, and what it refers to into `room`, which has structs + texts bytes
 * and is aligned for any struct. */
void dv_copy_to(const struct dv_message *message, const void *value, struct dv_copy_size size,
                void *room, void *copy);

#endif
