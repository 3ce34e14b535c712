/* string_format.h - "%s has %d".format([...]). */
#ifndef DV_CEL_STRING_FORMAT_H
#define DV_CEL_STRING_FORMAT_H

struct dv_cel_run;
struct dv_cel_val;

/* Formats; `args` are the format and the list. */
void dv_cel_string_format(struct dv_cel_run *run, const struct dv_cel_val *args,
                          struct dv_cel_val *out);

#endif
