/* cel.h - device selectors: expressions of the Common Expression Language over one device.
 *
 *     struct dv_cel_expr *expr = dv_cel_compile(text, &options, arena, err);
 *     struct dv_cel_device *device = dv_cel_device_new(&input, arena);
 *
 *     if (!dv_cel_eval(expr, device, &budget, scratch, &is_match, err)) ...
 *     dv_arena_reset(scratch);
 *
 * A compiled expression and a prepared device are immutable: any thread may use them, each with a
 * scratch arena of its own. Evaluating takes no memory from the system once the scratch arena has
 * grown to its working size. What an expression may do is bounded by its cost, counted as the
 * Kubernetes API counts it. */
#ifndef DV_CEL_H
#define DV_CEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "number/number.h"

struct dv_arena;
struct dv_buf;
struct dv_cel_device;
struct dv_cel_expr;
struct dv_err;

/* The API's limits on one selector: a text that is longer and an expression that may cost more are
 * not admitted. The same cost ends an evaluation. */
#define DV_CEL_EXPRESSION_BYTES_MAX 10240u
#define DV_CEL_COST_MAX 1000000u
/* Some of what an expression does costs next to nothing by the API's count, and takes long all the
 * same: values inside values that are compared, lists that are put together, texts that a pattern
 * goes back and forth in. That is counted beside the cost, in units that take about as long as
 * those. With more than this, some 0.2 s, an evaluation ends as with too high a cost. */
#define DV_CEL_WORK_MAX 20000000u

/* -- Compiling ------------------------------------------------------------------------------- */

enum dv_cel_env {
    /* for expressions that exist: everything is declared, whatever the gates say */
    DV_CEL_ENV_STORED,
    DV_CEL_ENV_NEW, /* for expressions that are created or changed: without what a gate hides */
};

/* Feature gates of the API. */
struct dv_cel_features {
    bool consumable_capacity;  /* device.allowMultipleAllocations */
    bool list_type_attributes; /* attributes that are lists; their type is then dyn */
};

/* Zeroed options, or a NULL pointer where they are asked for, mean: stored expressions, no
 * gates. */
struct dv_cel_options {
    enum dv_cel_env env;
    struct dv_cel_features features;
    bool skip_estimate; /* dv_cel_max_cost is then UINT64_MAX; saves a walk over the expression */
};

/* Parses, checks and plans `text`, of which nothing is kept. The result must be of type bool, or of
 * the unknown type of an attribute. DV_INVALID_ARGUMENT: it does not compile; the message is the
 * first problem, dv_cel_explain_error gives them all. DV_RESOURCE_EXHAUSTED: longer than
 * DV_CEL_EXPRESSION_BYTES_MAX. An estimate above DV_CEL_COST_MAX is no error here. */
struct dv_cel_expr *dv_cel_compile(dv_str text, const struct dv_cel_options *options,
                                   struct dv_arena *arena, struct dv_err *err);

/* Why `text` does not compile: one or more blocks of
 *     ERROR: <input>:1:7: undefined field 'foo'
 *      | device.foo
 *      | ......^
 * Adds nothing when it does compile. */
void dv_cel_explain_error(dv_str text, const struct dv_cel_options *options, struct dv_buf *buf);

/* The worst case of the cost, over all devices that the API allows; UINT64_MAX when it has no
 * bound. */
uint64_t dv_cel_max_cost(const struct dv_cel_expr *expr);
/* Prints the result's type: "bool", "google.protobuf.Any" or "dyn". */
void dv_cel_print_type(const struct dv_cel_expr *expr, struct dv_buf *buf);

/* Prints the expression in canonical form, which compiles to an equal expression. */
void dv_cel_print(const struct dv_cel_expr *expr, struct dv_buf *buf);

/* -- Devices --------------------------------------------------------------------------------- */

enum dv_cel_attribute_kind {
    DV_CEL_ATTRIBUTE_NONE, /* no value that we know: every expression fails on the device */
    DV_CEL_ATTRIBUTE_INT,
    DV_CEL_ATTRIBUTE_BOOL,
    DV_CEL_ATTRIBUTE_STRING,
    DV_CEL_ATTRIBUTE_VERSION,
    DV_CEL_ATTRIBUTE_INTS, /* lists count with list_type_attributes; otherwise as NONE */
    DV_CEL_ATTRIBUTE_BOOLS,
    DV_CEL_ATTRIBUTE_STRINGS,
    DV_CEL_ATTRIBUTE_VERSIONS,
};

/* An attribute of a device. All that it points to is borrowed, and must live as long as the
 * prepared device. */
struct dv_cel_attribute {
    dv_str name; /* "domain/id", or "id" in the domain of the driver */
    enum dv_cel_attribute_kind kind;
    union {
        int64_t i;
        bool b;
        dv_str s; /* a string, or the text of a version */
        const int64_t *ints;
        const bool *bools;
        const dv_str *strings; /* strings, or texts of versions */
    };
    size_t n; /* of the lists */
};

struct dv_cel_capacity {
    dv_str name;
    struct dv_quantity value;
};

struct dv_cel_device_input {
    dv_str driver;
    const struct dv_cel_attribute *attributes;
    size_t n_attributes;
    const struct dv_cel_capacity *capacities;
    size_t n_capacities;
    bool allow_multiple_allocations;
    bool list_type_attributes; /* the gate */
};

/* Sorts names into domains and parses versions, once for many evaluations. Never fails: an
 * attribute that cannot be used makes every evaluation on the device fail, and say which. */
struct dv_cel_device *dv_cel_device_new(const struct dv_cel_device_input *input,
                                        struct dv_arena *arena);

/* -- Evaluating ------------------------------------------------------------------------------ */

/* What an evaluation may cost, and what it did cost: `cost` and `work` are set also when it
 * fails. */
struct dv_cel_budget {
    uint64_t cost_max; /* DV_CEL_COST_MAX: the API's */
    uint64_t cost;
    uint64_t work_max; /* 0: DV_CEL_WORK_MAX */
    uint64_t work;     /* beside the cost */
    /* Called every hundred rounds of a comprehension; true ends the evaluation with DV_CANCELLED.
     * NULL: nobody cancels. */
    bool (*is_cancelled)(void *ctx);
    void *ctx;
};

/* Whether the device matches. `scratch` is for the evaluation alone: reset it afterwards, or after
 * a few. DV_INVALID_ARGUMENT: the expression fails on this device. DV_RESOURCE_EXHAUSTED: it costs
 * more than the budget has. */
DV_CHECKED bool dv_cel_eval(const struct dv_cel_expr *expr, const struct dv_cel_device *device,
                            struct dv_cel_budget *budget, struct dv_arena *scratch, bool *is_match,
                            struct dv_err *err);

/* -- Explaining ------------------------------------------------------------------------------ */

enum dv_cel_verdict {
    DV_CEL_MATCHES,
    DV_CEL_DIFFERS, /* `part` is false */
    DV_CEL_FAILS,   /* `part` is an error, which `problem` tells */
};

/* One operand of the part that decided, and what it was on this device. */
struct dv_cel_seen {
    dv_str expression; /* device.attributes["gpu.example.com"].memory */
    dv_str value;      /* 40Gi */
};

struct dv_cel_report {
    enum dv_cel_verdict verdict;
    dv_str part; /* the smallest conjunct that decided */
    dv_str problem;
    const struct dv_cel_seen *seen;
    size_t n_seen;
    uint64_t cost; /* with the work */
};

/* Finds which part of a conjunction was false, and the values that it saw; into `arena`. */
void dv_cel_explain(const struct dv_cel_expr *expr, const struct dv_cel_device *device,
                    struct dv_arena *arena, struct dv_cel_report *report);

#endif
