/* estimate.h - the parts of the estimator: sizes, calls, and the walk over the tree. */
#ifndef DV_CEL_ESTIMATE_H
#define DV_CEL_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "cel/read/ast.h"

struct dv_arena;

/* A variable of a comprehension, innermost first. */
struct dv_cel_local {
    const struct dv_cel_local *up;
    dv_str name;
    const struct dv_cel_path *path;
    const struct dv_cel_size *size;
    const struct dv_cel_entry_size *entry_size;
};

struct dv_cel_estimator {
    struct dv_arena *arena;
    const struct dv_cel_local *locals;
};

/* The cost of a new list, map or message. */
#define DV_CEL_LIST_COST 10u
#define DV_CEL_MAP_COST 30u
#define DV_CEL_STRUCT_COST 40u

/* -- Ranges of sizes and costs: sums and products stay at the largest number ----------------- */

#define DV_CEL_SIZE_UNKNOWN ((struct dv_cel_size){0, UINT64_MAX})

struct dv_cel_size dv_cel_range_fixed(uint64_t n);
struct dv_cel_size dv_cel_range_add(struct dv_cel_size a, struct dv_cel_size b);
struct dv_cel_size dv_cel_range_multiply(struct dv_cel_size a, struct dv_cel_size b);
struct dv_cel_size dv_cel_range_scale(struct dv_cel_size a, double factor); /* rounded up */
struct dv_cel_size dv_cel_range_join(struct dv_cel_size a, struct dv_cel_size b);
struct dv_cel_size dv_cel_range_of(const struct dv_cel_size *size); /* NULL: unknown */
const struct dv_cel_size *dv_cel_size_keep(struct dv_cel_estimator *e, struct dv_cel_size range);

/* -- What is known of an expression's value -------------------------------------------------- */

const struct dv_cel_local *dv_cel_local_find(const struct dv_cel_estimator *e, dv_str name);
const struct dv_cel_path *dv_cel_path_step(struct dv_cel_estimator *e, const struct dv_cel_path *up,
                                           dv_str name);
const struct dv_cel_path *dv_cel_path_of(const struct dv_cel_estimator *e,
                                         const struct dv_cel_ast *ast);
/* The size of the value at a place of the device. False: no bound is known. */
bool dv_cel_size_at(const struct dv_cel_path *path, struct dv_cel_size *size);
/* The size of the expression's value; NULL: unknown. */
const struct dv_cel_size *dv_cel_size_of(struct dv_cel_estimator *e, struct dv_cel_ast *ast);
struct dv_cel_size dv_cel_size_or_unknown(struct dv_cel_estimator *e, struct dv_cel_ast *ast);
const struct dv_cel_entry_size *dv_cel_entry_size_of(const struct dv_cel_estimator *e,
                                                     const struct dv_cel_ast *ast);
const struct dv_cel_entry_size *dv_cel_entry_join(struct dv_cel_estimator *e,
                                                  const struct dv_cel_entry_size *a,
                                                  const struct dv_cel_entry_size *b);

/* -- Costs ----------------------------------------------------------------------------------- */

struct dv_cel_size dv_cel_cost_of(struct dv_cel_estimator *e, struct dv_cel_ast *ast);
struct dv_cel_size dv_cel_cost_of_call(struct dv_cel_estimator *e, struct dv_cel_ast *ast);

#endif
