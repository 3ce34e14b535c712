#include "http2/flood.h"

#include "base/num.h"

/* Levels are in thousandths, so that what falls in a second falls evenly over its milliseconds. */
#define ONE 1000u
/* Frames that carry nothing: what a client may send at once, and in a second. Go sends one PING and
 * two WINDOW_UPDATEs for each DATA frame at its worst; the attacks send ten thousands a second. */
#define IDLE_MAX (10000u * ONE)
#define IDLE_PER_S 1000u
/* Streams that are given up: a client that stops may drop all its watches at once, and do so again
 * after it has connected anew; nghttp2's own limit is 1000 and 33 a second. */
#define BROKEN_MAX (500u * ONE)
#define BROKEN_PER_S 33u
/* A whole answer pays for the frames around it. */
#define IDLE_PER_ANSWER (4u * ONE)
/* A DATA frame pays for a WINDOW_UPDATE of the stream and one of the connection, twice, unless the
 * client's own small window made it small: then it pays by its size. */
#define IDLE_PER_DATA (4u * ONE)
#define BYTES_PER_IDLE 1024u

static void pay(uint64_t *level, uint64_t amount)
{
    *level -= dv_u64_min(*level, amount);
}

void dv_h2_flood_tick(struct dv_h2_flood *flood, uint64_t now_ms)
{
    uint64_t passed_ms = now_ms > flood->now_ms ? now_ms - flood->now_ms : 0;

    passed_ms = dv_u64_min(passed_ms, IDLE_MAX); /* all is forgotten by then */
    pay(&flood->idle, passed_ms * IDLE_PER_S);
    pay(&flood->broken, passed_ms * BROKEN_PER_S);
    flood->now_ms = dv_u64_max(now_ms, flood->now_ms);
}

bool dv_h2_flood_on_idle_frame(struct dv_h2_flood *flood)
{
    flood->idle += ONE;
    return flood->idle <= IDLE_MAX;
}

bool dv_h2_flood_on_broken_stream(struct dv_h2_flood *flood)
{
    flood->broken += ONE;
    return flood->broken <= BROKEN_MAX;
}

void dv_h2_flood_on_answer(struct dv_h2_flood *flood)
{
    pay(&flood->broken, ONE);
    pay(&flood->idle, IDLE_PER_ANSWER);
}

void dv_h2_flood_on_data(struct dv_h2_flood *flood, size_t n, bool is_whole)
{
    pay(&flood->idle, is_whole ? IDLE_PER_DATA : n / BYTES_PER_IDLE * ONE);
}
