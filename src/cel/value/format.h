/* format.h - formats that text may have, by their names. */
#ifndef DV_CEL_FORMAT_H
#define DV_CEL_FORMAT_H

#include <stdint.h>

struct dv_cel_format;

/* The size of the regular expression that the reference charges for. */
uint64_t dv_cel_format_regex_size(const struct dv_cel_format *format);

#endif
