/* davit/cel.h - selectors of devices: the Common Expression Language over one device (libdavit).
 *
 *     const char *expression = "device.driver == 'gpu.example.com'";
 *     struct davit_cel *cel = davit_cel_compile(expression, NULL, &error);
 *     bool is_match;
 *
 *     davit_cel_eval(cel, "gpu.example.com", device, &is_match, NULL, &error);
 *     davit_cel_free(cel);
 *
 * A device is JSON, as it stands in spec.devices of a ResourceSlice. A compiled expression may be
 * used by any number of threads at once. Text that a function returns is given back with davit_free
 * of davit/alloc.h. */
#ifndef DAVIT_CEL_H
#define DAVIT_CEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "davit/davit.h" /* IWYU pragma: export */

#ifdef __cplusplus
extern "C" {
#endif

struct davit_cel;

/* Zeroed, then filled in; NULL where it is asked for means zeros. */
struct davit_cel_options {
    bool is_new;              /* as if it were being created: without what a gate hides */
    bool consumable_capacity; /* DRAConsumableCapacity */
    bool list_attributes;     /* DRAListTypeAttributes */
};

/* DAVIT_INVALID_ARGUMENT: it does not compile; the message is the first problem.
 * DAVIT_RESOURCE_EXHAUSTED: it is longer than the API allows. */
DAVIT_API struct davit_cel *davit_cel_compile(const char *expression,
                                              const struct davit_cel_options *options,
                                              struct davit_error *error);
DAVIT_API void davit_cel_free(struct davit_cel *cel); /* NULL is fine */

/* All problems of an expression, with line, column and a caret; NULL when it compiles. */
DAVIT_API char *davit_cel_problems(const char *expression, const struct davit_cel_options *options);

/* In canonical form: what it prints compiles to an equal expression. */
DAVIT_API char *davit_cel_print(const struct davit_cel *cel);
/* The most that it may cost on any device; the API admits up to a million. UINT64_MAX: there is no
 * bound. */
DAVIT_API uint64_t davit_cel_max_cost(const struct davit_cel *cel);

/* Whether the driver's device matches, and what finding out cost (`cost` may be NULL).
 * DAVIT_INVALID_ARGUMENT: the device cannot be read, or the expression fails on it.
 * DAVIT_RESOURCE_EXHAUSTED: it costs more than the API allows. */
DAVIT_API bool davit_cel_eval(const struct davit_cel *cel, const char *driver, const char *device,
                              bool *is_match, uint64_t *cost, struct davit_error *error);

/* Which part decided, and the values that it saw:
 *
 *     {"verdict":"differs","part":"device.attributes[\"d\"].size > 3",
 *      "seen":[{"expression":"device.attributes[\"d\"].size","value":"2"}]}
 *
 * The verdict is "matches", "differs" or "fails", then with a "problem". NULL: the device cannot be
 * read. */
DAVIT_API char *davit_cel_explain(const struct davit_cel *cel, const char *driver,
                                  const char *device, struct davit_error *error);

#ifdef __cplusplus
}
#endif

#endif
