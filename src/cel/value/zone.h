/* zone.h - the table of time zones. */
#ifndef DV_CEL_ZONE_H
#define DV_CEL_ZONE_H

#include <stddef.h>

/* Lines of words: one that begins with '|' is a rule, and stands before the names of its zones. */
extern const char *const dv_cel_zones[];
extern const size_t dv_cel_n_zones;

#endif
