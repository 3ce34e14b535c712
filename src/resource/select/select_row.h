/* select_row.h - what selectors ask of objects that are packed. */
#ifndef DV_RESOURCE_SELECT_ROW_H
#define DV_RESOURCE_SELECT_ROW_H

#include <stdbool.h>

struct dv_field_selector;

/* Whether dv_field_selector_matches may be asked of packed objects. */
bool dv_field_selector_reads_rows(const struct dv_field_selector *selector);

#endif
