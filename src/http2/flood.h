/* flood.h - tells floods of frames that cost a client little from what real clients send. Pure.
 *
 * Two levels rise with what comes and fall with time and with useful work. A client that pings
 * every few seconds for days stays at zero, and one that fetches gigabytes has its window updates
 * paid for by the data that it got. */
#ifndef DV_HTTP2_FLOOD_H
#define DV_HTTP2_FLOOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dv_h2_flood {
    uint64_t idle;   /* frames that carry nothing, in thousandths */
    uint64_t broken; /* streams that ended without their answer, in thousandths */
    uint64_t now_ms;
};

/* Tells the time; both levels fall by what has passed. */
void dv_h2_flood_tick(struct dv_h2_flood *flood, uint64_t now_ms);

/* These return false when it is too much. */
/* A frame that carries nothing: PING, SETTINGS, WINDOW_UPDATE, PRIORITY, empty DATA. */
bool dv_h2_flood_on_idle_frame(struct dv_h2_flood *flood);
/* A stream that the client began and that ended before it was answered, whoever reset it
 * (CVE-2023-44487, CVE-2025-8671). */
bool dv_h2_flood_on_broken_stream(struct dv_h2_flood *flood);

/* A request was answered whole. */
void dv_h2_flood_on_answer(struct dv_h2_flood *flood);
/* A DATA frame went out; `is_whole`: with all that there was, so no small window has cut it. */
void dv_h2_flood_on_data(struct dv_h2_flood *flood, size_t n, bool is_whole);

#endif
