/* image_gc.h - which images are removed when the disk that they are on is nearly full.
 *
 * As the reference: when `high_percent` of the file system are used, images are removed until
 * `low_percent` are, the least recently used first; never one that a container has, that the
 * runtime has pinned, or that was first seen less than `min_age_ns` ago. Pure. */
#ifndef DV_POD_IMAGE_GC_H
#define DV_POD_IMAGE_GC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/str.h"
#include "pod/runner.h"

struct dv_arena;

/* An image as the runtime lists it. */
struct dv_image {
    dv_str id;
    const dv_str *names; /* tags and digests by which it is asked for */
    size_t n_names;
    uint64_t size_bytes;
    bool is_pinned;
};

/* Whether one of `used`, ids or names as containers and pods give them, is this image. A name
 * without a registry is of docker.io. */
bool dv_image_is_used(const struct dv_image *image, const dv_str *used, size_t n_used);

/* Remembers when images were seen first and used last. */
struct dv_image_book {
    struct dv_map seen; /* by id */
};
void dv_image_book_init(struct dv_image_book *book);
void dv_image_book_fini(struct dv_image_book *book);
/* Tells of all images that there are; those that are gone are forgotten. */
void dv_image_book_update(struct dv_image_book *book, const struct dv_image *images,
                          size_t n_images, const dv_str *used, size_t n_used, uint64_t now_ns);

/* How many bytes are to be freed; 0: none. `available` counts at most as `capacity`. */
uint64_t dv_image_gc_excess(const struct dv_image_policy *policy, uint64_t capacity,
                            uint64_t available);

/* Sets `chosen` to those that may be removed at the time of the last update, in the order in which
 * they go; returns how many. */
size_t dv_image_gc_choose(const struct dv_image_book *book, const struct dv_image_policy *policy,
                          const struct dv_image *images, size_t n_images, uint64_t now_ns,
                          struct dv_arena *arena, const struct dv_image ***chosen);

#endif
