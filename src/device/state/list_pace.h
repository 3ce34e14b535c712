/* list_pace.h - how often a plugin's lists are read. Pure.
 *
 * A plugin may send lists without end. A few in a row are read as they come; after that, and always
 * in proportion to what reading them costs, only the newest of an interval is. */
#ifndef DV_DEVICE_LIST_PACE_H
#define DV_DEVICE_LIST_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct dv_list_pace {
    uint64_t free_ns;  /* when the last of the burst will have been paid for; 0: nothing is owed */
    uint64_t quiet_ns; /* until then nothing is read, because of what the last one cost */
};

/* Whether a list may be read now; else *at_ns is when. */
bool dv_list_pace_may_read(const struct dv_list_pace *pace, uint64_t now_ns, uint64_t *at_ns);
/* Notes that a list was read, and how long that took. */
void dv_list_pace_note(struct dv_list_pace *pace, uint64_t now_ns, uint64_t cost_ns);

#endif
