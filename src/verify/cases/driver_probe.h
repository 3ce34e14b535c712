/* driver_probe.h - the first trial: what the driver offers, which decides which cases apply. */
#ifndef DV_VERIFY_DRIVER_PROBE_H
#define DV_VERIFY_DRIVER_PROBE_H

struct dv_trial;

/* Sets trial->facts; fails the trial when the driver cannot be used at all. */
void dv_probe(struct dv_trial *trial);

#endif
