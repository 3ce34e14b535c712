/* driver_probe.h - the first trial: what the driver offers, which decides which cases apply. */
#ifndef DV_VERIFY_DRIVER_PROBE_H
#define DV_VERIFY_DRIVER_PROBE_H

#include "verify/kit/verify_case.h"

struct dv_trial;

/* Sets trial->facts; fails the trial when the driver cannot be used at all. */
void dv_probe(struct dv_trial *trial);
/* After the last case of a DRA driver that runs already: leaves it without claims. */
extern const struct dv_verify_case dv_farewell;

#endif
