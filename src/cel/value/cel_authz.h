/* cel_authz.h - what expressions hold of an authorizer: itself, a question that is being put
 * together, or a decision. */
#ifndef DV_CEL_AUTHZ_H
#define DV_CEL_AUTHZ_H

#include "cel/cel_policy.h"

struct dv_cel_authz {
    const struct dv_cel_authorizer *authorizer;
    struct dv_cel_check check;
    struct dv_cel_decision decision;
};

#endif
