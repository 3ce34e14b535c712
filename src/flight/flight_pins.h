/* flight_pins.h - what plugins said last about themselves, for the beginning of each file: a
 * recording whose first files are gone still says who they are, and can be played back. */
#ifndef DV_FLIGHT_PINS_H
#define DV_FLIGHT_PINS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/vec.h"

/* A message that counts until its plugin says it again, as a sealed frame. */
struct dv_flight_pin {
    uint64_t key;
    struct dv_buf frame;
};

struct dv_flight_pins {
    DV_VEC(struct dv_flight_pin) v; /* the oldest first */
    size_t n_bytes;
    size_t bytes_max;
};

void dv_flight_pins_init(struct dv_flight_pins *pins, size_t bytes_max);
void dv_flight_pins_fini(struct dv_flight_pins *pins);
/* Remembers the record of the frame, which is our own, if it is such a message. */
void dv_flight_pins_see(struct dv_flight_pins *pins, dv_str frame);
/* Adds all to the beginning of a file, marked as repeated. */
void dv_flight_pins_add(const struct dv_flight_pins *pins, struct dv_buf *head);

#endif
