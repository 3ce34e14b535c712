/* vec.h - growing arrays of one type.
 *
 *     DV_VEC(struct dv_device) devices = {0};
 *     *dv_vec_add(&devices) = device;        the new last element, zeroed
 *     devices.v[i], devices.n
 *     dv_vec_fini(&devices);
 *
 * The elements are on the heap; with dv_vec_add_in they are in an arena and never freed one by
 * one. A vector uses one of the two for its whole life. Adding may move the elements. */
#ifndef DV_BASE_VEC_H
#define DV_BASE_VEC_H

#include <stdlib.h> /* IWYU pragma: keep */
#include <string.h> /* IWYU pragma: keep */

struct dv_arena;

#define DV_VEC(type)                                                                               \
    struct {                                                                                       \
        type *v;                                                                                   \
        size_t n;                                                                                  \
        size_t size;                                                                               \
    }

/* The new last element, zeroed; a pointer to the element type. */
#define dv_vec_add(vec) dv_vec_add_in((vec), NULL)
#define dv_vec_add_in(vec, arena)                                                                  \
    ((vec)->v = dv_vec_grow((vec)->v, (vec)->n, &(vec)->size, sizeof((vec)->v[0]), (arena)),       \
     &(vec)->v[(vec)->n++])
/* Takes element i out; the last one takes its place. */
#define dv_vec_remove_swap(vec, i) ((vec)->v[(i)] = (vec)->v[(vec)->n - 1], (vec)->n--)
/* Takes element i out and keeps the order. */
#define dv_vec_remove(vec, i)                                                                      \
    (memmove(&(vec)->v[(i)], &(vec)->v[(i) + 1], ((vec)->n - (i)-1) * sizeof((vec)->v[0])),        \
     (vec)->n--)
#define dv_vec_clear(vec) ((vec)->n = 0) /* keeps the memory */
#define dv_vec_fini(vec) (free((vec)->v), (vec)->v = NULL, (vec)->n = 0, (vec)->size = 0)

/* For the macros: room for one more after `n` elements, that one zeroed. */
void *dv_vec_grow(void *elements, size_t n, size_t *size, size_t element_bytes,
                  struct dv_arena *arena);

#endif
