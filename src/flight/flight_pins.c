#include "flight/flight_pins.h"

#include "base/buf.h"
#include "base/map.h"
#include "base/str.h"
#include "record/message.h"
#include "record/record.h"

/* More plugins than any node has, with a few messages each. */
#define N_PINS_MAX 256u

void dv_flight_pins_init(struct dv_flight_pins *pins, size_t bytes_max)
{
    *pins = (struct dv_flight_pins){.bytes_max = bytes_max};
}

static void drop(struct dv_flight_pins *pins, size_t i)
{
    pins->n_bytes -= pins->v.v[i].frame.n;
    dv_buf_fini(&pins->v.v[i].frame);
    dv_vec_remove(&pins->v, i);
}

void dv_flight_pins_fini(struct dv_flight_pins *pins)
{
    while (pins->v.n > 0)
        drop(pins, pins->v.n - 1);
    dv_vec_fini(&pins->v);
}

/* Makes the key of one plugin and one method. Plugins that register by a call all do so on one
 * socket, and are told apart by what they say. */
static uint64_t key_of(const struct dv_record *record)
{
    uint64_t key = dv_hash(record->name) * 31 + dv_hash(record->method);

    return record->is_served ? key * 31 + dv_hash(record->message) : key;
}

void dv_flight_pins_see(struct dv_flight_pins *pins, dv_str frame)
{
    const struct dv_record_method *method;
    struct dv_flight_pin *pin;
    struct dv_record record;
    uint64_t key;

    dv_record_get(frame, &record);
    /* Plugins say it as requests to us, or as answers: never is it a message of ours. */
    if (record.kind != DV_RECORD_MESSAGE || record.is_sent || !record.message.p ||
        frame.n > pins->bytes_max)
        return;
    method = dv_record_method_find(record.method);
    if (!method || !(method->flags & DV_RECORD_TELLS_OF_PLUGIN))
        return;
    key = key_of(&record);
    for (size_t i = 0; i < pins->v.n; i++)
        if (pins->v.v[i].key == key) {
            drop(pins, i);
            break;
        }
    pin = dv_vec_add(&pins->v);
    pin->key = key;
    dv_buf_init(&pin->frame, frame.n + DV_RECORD_FRAME_BYTES);
    record.is_repeated = true;
    dv_record_add(&pin->frame, &record);
    (void)dv_record_seal(pin->frame.p);
    pins->n_bytes += pin->frame.n;
    while (pins->v.n > N_PINS_MAX || pins->n_bytes > pins->bytes_max)
        drop(pins, 0);
}

void dv_flight_pins_add(const struct dv_flight_pins *pins, struct dv_buf *head)
{
    for (size_t i = 0; i < pins->v.n; i++)
        dv_buf_add(head, dv_buf_str(&pins->v.v[i].frame));
}
