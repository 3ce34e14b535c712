/* gates.h - fields of features that are off. */
#ifndef DV_RESOURCE_GATES_H
#define DV_RESOURCE_GATES_H

struct dv_kind;

/* Drops from `value` what belongs to features that are not in `gates` (enum dv_gate), unless `old`,
 * which may be NULL and stays as it is, has something of that feature. */
void dv_gates_drop(const struct dv_kind *kind, unsigned gates, void *old, void *value);

#endif
