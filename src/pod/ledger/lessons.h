/* lessons.h - which nodes and paths of a resource or driver are common, learned from what it gave.
 *
 * An answer for several devices does not say which node is which device's. So of each node the
 * devices are kept that all answers with it had in common; when none is left, no single device
 * explains it: it is common. A device that is given again and again, in shares ("gpu0::1"), is one.
 *
 * What was learned stays, also when nobody holds the node any more. */
#ifndef DV_POD_LESSONS_H
#define DV_POD_LESSONS_H

#include <stdbool.h>

#include "base/map.h"

struct dv_identity;
struct dv_ledger_holder;

struct dv_lessons {
    struct dv_map by_key; /* by the kind of the giver, the giver and the identity */
};

void dv_lessons_init(struct dv_lessons *lessons);
void dv_lessons_fini(struct dv_lessons *lessons);
/* Learns from an answer that the giver gave this identity for these devices. */
void dv_lessons_learn(struct dv_lessons *lessons, const struct dv_ledger_holder *holder,
                      const struct dv_identity *identity);
/* Whether the identity is common for the holder's giver; with `counts_holder`, also when what the
 * holder is about to get makes it so. A PCI address or a UUID never is. */
bool dv_lessons_is_common(const struct dv_lessons *lessons, const struct dv_ledger_holder *holder,
                          const struct dv_identity *identity, bool counts_holder);

#endif
