/* number.h - quantities and versions, as the API writes them.
 *
 * Both are plain values: copy them, compare them, read them from any thread. A zeroed struct is 0
 * or version 0.0.0. */
#ifndef DV_NUMBER_H
#define DV_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_buf;
struct dv_decimal;
struct dv_err;

/* -- Quantities ----------------------------------------------------------------------------- */

/* The family of suffixes that a quantity was written with, and is printed with. */
enum dv_quantity_format {
    DV_QUANTITY_DECIMAL_SI,       /* n u m k M G T P E */
    DV_QUANTITY_BINARY_SI,        /* Ki Mi Gi Ti Pi Ei */
    DV_QUANTITY_DECIMAL_EXPONENT, /* e3 */
};

/* The most digits of a whole part; more are refused. The API has no limit, and needs minutes for
 * some short texts. What is accepted is printed as a text that is accepted, too. */
#define DV_QUANTITY_DIGITS_MAX 10000

/* An exact number of billionths (1n). Nearly all fit into value * 10^scale; what does not is `big`,
 * in the arena that the quantity was made with. The fields are for src/number only. */
struct dv_quantity {
    int64_t value;
    const struct dv_decimal *big; /* NULL: value and scale count */
    int16_t scale;
    bool is_decimal; /* the reference keeps it as a big decimal: see dv_quantity_to_i64 */
    enum dv_quantity_format format;
};

/* "1.5Gi", "100m", "-3e6". Finer than 1n is rounded away from zero; with a binary suffix, what
 * passes +-(2^63 - 1) is that. Keeps nothing of `text`, and uses `arena` only for a number of about
 * 19 digits or more. DV_INVALID_ARGUMENT: not a quantity. DV_OUT_OF_RANGE: larger than we take. */
DV_CHECKED bool dv_quantity_parse(dv_str text, struct dv_arena *arena, struct dv_quantity *quantity,
                                  struct dv_err *err);
/* Like dv_quantity_parse, for a JSON string or number in an object: there blanks around it are left
 * out. */
DV_CHECKED bool dv_quantity_parse_json(dv_str text, struct dv_arena *arena,
                                       struct dv_quantity *quantity, struct dv_err *err);
struct dv_quantity dv_quantity_from_i64(int64_t value, enum dv_quantity_format format);
struct dv_quantity dv_quantity_copy(const struct dv_quantity *quantity, struct dv_arena *arena);
/* dv_quantity_copy_to is like dv_quantity_copy, into `room` of dv_quantity_room bytes, aligned for
 * pointers; nearly always that is none. */
size_t dv_quantity_room(const struct dv_quantity *quantity);
struct dv_quantity dv_quantity_copy_to(const struct dv_quantity *quantity, void *room);

/* Both print the canonical form: no fraction, and the largest suffix that leaves none. */
void dv_quantity_print(const struct dv_quantity *quantity, struct dv_buf *buf);
dv_str dv_quantity_text(const struct dv_quantity *quantity, struct dv_arena *arena);

int dv_quantity_sign(const struct dv_quantity *quantity); /* -1, 0, 1 */
/* -1, 0, 1 by value: 1Ki is 1024, whatever their formats. */
int dv_quantity_cmp(const struct dv_quantity *a, const struct dv_quantity *b);
/* Adds; the sum has the format of `a`, or of `b` when `a` is zero. */
struct dv_quantity dv_quantity_add(const struct dv_quantity *a, const struct dv_quantity *b,
                                   struct dv_arena *arena);
struct dv_quantity dv_quantity_sub(const struct dv_quantity *a, const struct dv_quantity *b,
                                   struct dv_arena *arena);

/* CEL's asInteger, false where that is an error. As in the reference, it is false not only for
 * fractions and for what does not fit: also for whole numbers written with a fraction or a small
 * suffix (1000m, 1.5Gi), and with many digits for their suffix (100Ti). */
DV_CHECKED bool dv_quantity_to_i64(const struct dv_quantity *quantity, int64_t *value);
bool dv_quantity_is_integer(const struct dv_quantity *quantity); /* CEL's isInteger: the same */
/* The value, and a thousand times the value, as the next whole number away from zero; false when
 * that does not fit. */
DV_CHECKED bool dv_quantity_to_i64_ceil(const struct dv_quantity *quantity, int64_t *value);
DV_CHECKED bool dv_quantity_to_milli_ceil(const struct dv_quantity *quantity, int64_t *value);
/* CEL's asApproximateFloat: nearly the closest double, and the reference's to the last bit;
 * infinite when it is too large, and not a number for 0e309. */
double dv_quantity_to_double(const struct dv_quantity *quantity);

/* -- Versions ------------------------------------------------------------------------------- */

/* A semantic version (semver.org, 2.0.0). `pre` and `build` are in the text that was parsed, and
 * empty when they are absent. */
struct dv_version {
    uint64_t major;
    uint64_t minor;
    uint64_t patch;
    dv_str pre;   /* identifiers between dots: "rc.1" */
    dv_str build; /* the same; counts for nothing in comparisons */
};

/* Exactly major.minor.patch[-pre][+build], each number below 2^64. Keeps `text`.
 * DV_INVALID_ARGUMENT: it is not that. */
DV_CHECKED bool dv_version_parse(dv_str text, struct dv_version *version, struct dv_err *err);
/* Like dv_version_parse, but takes also one `v` in front, zeros before the three numbers, and major
 * or major.minor alone: CEL's semver(text, true). */
DV_CHECKED bool dv_version_parse_tolerant(dv_str text, struct dv_version *version,
                                          struct dv_err *err);
/* Whether the text has the form of a semantic version, as validation asks; a number in it may be
 * too large for the parsers. */
bool dv_version_is_well_formed(dv_str text);

void dv_version_print(const struct dv_version *version, struct dv_buf *buf);
/* -1, 0, 1 by precedence; 0 is also CEL's ==. */
int dv_version_cmp(const struct dv_version *a, const struct dv_version *b);

#endif
