/* fuzz_check.h - what always holds for a state, for fuzz targets. */
#ifndef DV_DEVICE_FUZZ_CHECK_H
#define DV_DEVICE_FUZZ_CHECK_H

struct dv_device_state;

/* Aborts unless counts, free devices and holders agree with each other, and no device is held
 * twice but by init containers, whose names begin with an i. */
void fuzz_check_state(const struct dv_device_state *state);

#endif
