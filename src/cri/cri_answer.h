/* cri_answer.h - what the answer of a runtime must have, besides being a message of its type. */
#ifndef DV_CRI_ANSWER_H
#define DV_CRI_ANSWER_H

#include <stdbool.h>

#include "base/defs.h"
#include "cri/cri.h"

/* DV_INTERNAL: something is missing without which nobody can use it, or a state is none of CRI's.
 * Unknown values elsewhere are harmless. */
DV_CHECKED bool dv_cri_answer_check(enum dv_cri_method method, const void *answer,
                                    struct dv_err *err);

#endif
