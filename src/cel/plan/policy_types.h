/* policy_types.h - the types of what policies see that are known beforehand. */
#ifndef DV_CEL_POLICY_TYPES_H
#define DV_CEL_POLICY_TYPES_H

#include "base/str.h"
#include "cel/value/type.h"

struct dv_arena;

/* Of `request`: an AdmissionRequest without its objects. */
extern const struct dv_cel_type dv_cel_t_request;
/* Of `namespaceObject`. */
extern const struct dv_cel_type dv_cel_t_namespace;

/* The type that a variable is declared with, when its expression gives `type`: lists, maps and
 * simple values keep theirs, all else is dyn. */
const struct dv_cel_type *dv_cel_variable_type(const struct dv_cel_type *type,
                                               struct dv_arena *arena);

#endif
